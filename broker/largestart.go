package broker

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/oklog/ulid/v2"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/payloads"
	"github.com/droverhq/drover/schemas"
)

// A start that is too large for a record is stored nowhere before it is known that it begins a run,
// or signals one (ADR 0063). The owner judges it as any other, then looks for room, then stores
// what is too large under names that are the start's own, and then the record. If the start is
// refused after all, those objects go at once, and so does an input that its client has uploaded
// for it.

// largeOf are the payloads of a start that have to be stored before it happens: those of the new
// run, or only the one of the signal.
func (b *env) largeOf(e *message, q *schemas.StartRequest, signalOnly bool) []*schemas.Payload {
	if e.log != noLog || len(e.body) <= b.smallBody() { // the reader of a log has done it
		return nil
	}
	fields := []*schemas.Payload{&q.Input, nil}
	if q.Signal != nil {
		fields[1] = &q.Signal.Input
	}
	size := len(e.body)
	if signalOnly {
		size, fields = len(q.Signal.Input), fields[1:]
	}
	return b.excess(fields, size)
}

// smallBody is the size in bytes up to which no part of a body is too large for any message: text
// may grow threefold when it is decoded, and sixfold in JSON.
func (b *env) smallBody() int { return payloads.InlineLimit(b.maxPayload()) / smallPart }

// excess is [payloads.Excess] for a message of a log or a start, and what JSON makes too large for
// a decider.
func (b *env) excess(fields []*schemas.Payload, size int) []*schemas.Payload {
	moved := payloads.Excess(fields, size, payloads.InlineLimit(b.maxPayload()), b.messageLimit())
	for _, f := range fields {
		if f != nil && b.outgrows(*f) > 0 && !slices.Contains(moved, f) {
			moved = append(moved, f)
		}
	}
	return moved
}

// storeLarge stores payloads of a start, which is then judged again. The workflow id waits
// meanwhile.
func (p *partition) storeLarge(
	r *run,
	e *message,
	q *schemas.StartRequest,
	fields []*schemas.Payload,
) {
	r.loading = true
	r.mailbox = append([]*message{e}, r.mailbox...)
	contents, prefix := make(
		[]schemas.Payload,
		len(fields),
	), payloads.StartPrefix(
		q.WorkflowID,
		q.Run,
	)
	for i, f := range fields {
		contents[i] = *f
	}
	readAsync(p.b, p.loop, func(ctx context.Context) ([]*schemas.PayloadRef, error) {
		return p.b.storeForStart(ctx, prefix, contents)
	}, func(refs []*schemas.PayloadRef, err error) {
		r.loading = false
		if err != nil {
			r.mailbox = r.mailbox[1:]
			p.settleStart(r, e, verdict{refused: notStored(err).About(q.WorkflowID, "")})
		} else {
			for i, f := range fields {
				*f = schemas.RefPayload(refs[i])
			}
			if body, err := schemas.Marshal(q); err == nil {
				e.body = body
			}
		}
		p.loadedNow(r)
	})
}

// storeForStart stores payloads of a start if there is room for it, and else nothing.
func (b *env) storeForStart(
	ctx context.Context, prefix string, contents []schemas.Payload,
) (refs []*schemas.PayloadRef, err error) {
	var bytes int64
	for _, c := range contents {
		bytes += int64(len(c))
	}
	b.storing.Add(bytes)
	defer b.storing.Add(-bytes)
	if refused := b.refuseStart(ctx, 0); refused != nil {
		return nil, refused
	}
	for i, c := range contents {
		object := prefix + ulid.Make().String()
		ref, err := b.store.Put(ctx, object, c)
		if err != nil {
			b.removeObjects(objectsOf(refs, object))
			return nil, fmt.Errorf("payload %d of the start: %w", i+1, err)
		}
		refs = append(refs, ref)
	}
	return refs, nil
}

func objectsOf(refs []*schemas.PayloadRef, more ...string) []string {
	for _, ref := range refs {
		more = append(more, ref.Object)
	}
	return more
}

// notStored is the refusal of a start whose payloads are not stored.
func notStored(err error) *schemas.Error {
	if refused, ok := errors.AsType[*schemas.Error](err); ok {
		return refused
	}
	if errors.Is(err, natsconn.ErrFull) {
		return schemas.Errorf(schemas.CodeLimit, "the object store is full: %v", err).
			InField("input").
			WithHint("nothing was stored; give the namespace more room, or pass less")
	}
	return schemas.Errorf(schemas.CodeUnavailable, "the input cannot be stored now: %v", err).
		InField("input").
		WithHint("nothing was begun; try again")
}

// dropStored removes what was stored for a start that is refused, and for nothing else.
func (b *env) dropStored(e *message) {
	start, ok := e.event.(execution.Start)
	if !ok || e.verdict.refused == nil {
		return
	}
	q := start.Request
	all := []schemas.Payload{q.Input}
	if q.Signal != nil {
		all = append(all, q.Signal.Input)
	}
	var objects []string
	for _, v := range all {
		if ref, ok := v.Ref(); ok && payloads.OfStart(ref.Object, q.WorkflowID, q.Run) {
			objects = append(objects, ref.Object)
		}
	}
	b.removeObjects(objects)
}

// removeObjects removes objects that nothing names. What cannot be removed now goes with the next
// sweep.
func (b *env) removeObjects(objects []string) {
	if len(objects) == 0 {
		return
	}
	b.wg.Go(func() {
		ctx, cancel := context.WithTimeout(b.ctx, readTimeout)
		defer cancel()
		for _, object := range objects {
			if err := b.store.Remove(ctx, object); err != nil {
				b.o.Logger.WithError(err).WithField("object", object).
					Info("the payload of a refused start cannot be removed; it goes with the next sweep")
			}
		}
	})
}
