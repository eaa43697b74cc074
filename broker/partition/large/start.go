package large

import (
	"context"
	"errors"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/partition/intake"
	"github.com/droverhq/drover/broker/payloads"
	"github.com/droverhq/drover/schemas"
)

// A start that is too large for a record is stored nowhere before it is known that it begins a run,
// or signals one (ADR 0063). The owner judges it as any other, then looks for room, then stores
// what is too large under names that are the start's own, and then the record. If the start is
// refused after all, those objects go at once, and so does an input that its client has uploaded
// for it.

// OfStart are the payloads of a start that have to be stored before it happens: those of the new
// run, or only the one of the signal.
func (l *Large) OfStart(
	e *actor.Message, q *schemas.StartRequest, signalOnly bool,
) []*schemas.Payload {
	if e.Log != intake.None || len(e.Body) <= l.Env.SmallBody() { // the reader of a log has done it
		return nil
	}
	fields := []*schemas.Payload{&q.Input, nil}
	if q.Signal != nil {
		fields[1] = &q.Signal.Input
	}
	size := len(e.Body)
	if signalOnly {
		size, fields = len(q.Signal.Input), fields[1:]
	}
	return l.Env.Excess(fields, size)
}

// StoreStart stores payloads of a start, which is then judged again. The workflow id waits
// meanwhile.
func (l *Large) StoreStart(
	r *actor.Run, e *actor.Message, q *schemas.StartRequest, fields []*schemas.Payload,
) {
	r.Load.Begin()
	r.Mailbox = append([]*actor.Message{e}, r.Mailbox...)
	contents, prefix := make([]schemas.Payload, len(fields)), payloads.StartPrefix(q.WorkflowID,
		q.Run)
	for i, f := range fields {
		contents[i] = *f
	}
	env.ReadAsync(l.Env, l.Loop, func(ctx context.Context) ([]*schemas.PayloadRef, error) {
		return l.Env.StoreForStart(ctx, prefix, contents)
	}, func(refs []*schemas.PayloadRef, err error) {
		r.Load.End()
		if err != nil {
			r.Mailbox = r.Mailbox[1:]
			l.host.SettleStart(r, e, actor.Verdict{Refused: notStored(err).About(q.WorkflowID, "")})
		} else {
			for i, f := range fields {
				*f = schemas.RefPayload(refs[i])
			}
			if body, err := schemas.Marshal(q); err == nil {
				e.Body = body
			}
		}
		l.host.Loaded(r)
	})
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

// DropStart removes what was stored for a start that is refused, and for nothing else.
func (l *Large) DropStart(e *actor.Message) {
	start, ok := e.Event.(execution.Start)
	if !ok || e.Verdict.Refused == nil {
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
	l.Env.RemoveObjects(objects)
}
