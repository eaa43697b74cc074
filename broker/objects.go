package broker

import (
	"context"
	"fmt"
	"slices"

	"github.com/droverhq/drover/broker/payloads"
	"github.com/droverhq/drover/schemas"
	"github.com/oklog/ulid/v2"
)

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

// outgrows tells how many bytes a payload takes in a message of JSON that has little else, 0 if
// such a message can be sent.
func (b *env) outgrows(v schemas.Payload) int {
	if 6*len(v) <= b.bodyLimit() {
		return 0
	}
	body, err := schemas.MarshalJSON(&schemas.Report{Result: v})
	if err != nil || len(body) <= b.bodyLimit() {
		return 0
	}
	return len(body)
}

// smallPart is the part of the inline limit up to which a body has nothing that is too large: text
// may grow threefold when it is decoded, and sixfold in JSON.
const smallPart = 6
