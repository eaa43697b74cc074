package env

import (
	"context"
	"fmt"
	"slices"

	"github.com/oklog/ulid/v2"

	"github.com/droverhq/drover/broker/payloads"
	"github.com/droverhq/drover/schemas"
)

// SmallBody is the size in bytes up to which no part of a body is too large for any message: text
// may grow threefold when it is decoded, and sixfold in JSON.
func (e *Env) SmallBody() int { return payloads.InlineLimit(e.MaxPayload()) / SmallPart }

// Excess is [payloads.Excess] for a message of a log or a start, and what JSON makes too large for
// a decider.
func (e *Env) Excess(fields []*schemas.Payload, size int) []*schemas.Payload {
	moved := payloads.Excess(fields, size, payloads.InlineLimit(e.MaxPayload()), e.MessageLimit())
	for _, f := range fields {
		if f != nil && e.Outgrows(*f) > 0 && !slices.Contains(moved, f) {
			moved = append(moved, f)
		}
	}
	return moved
}

// StoreForStart stores payloads of a start if there is room for it, and else nothing.
func (e *Env) StoreForStart(
	ctx context.Context, prefix string, contents []schemas.Payload,
) (refs []*schemas.PayloadRef, err error) {
	var bytes int64
	for _, c := range contents {
		bytes += int64(len(c))
	}
	e.storing.Add(bytes)
	defer e.storing.Add(-bytes)
	if refused := e.RefuseStart(ctx, 0); refused != nil {
		return nil, refused
	}
	for i, c := range contents {
		object := prefix + ulid.Make().String()
		ref, err := e.Store.Put(ctx, object, c)
		if err != nil {
			e.RemoveObjects(objectsOf(refs, object))
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

// RemoveObjects removes objects that nothing names. What cannot be removed now goes with the next
// sweep.
func (e *Env) RemoveObjects(objects []string) {
	if len(objects) == 0 {
		return
	}
	e.Work.Go(func() {
		ctx, cancel := context.WithTimeout(e.Background, ReadTimeout)
		defer cancel()
		for _, object := range objects {
			if err := e.Store.Remove(ctx, object); err != nil {
				e.Options.Logger.WithError(err).WithField("object", object).Info(
					"the payload of a refused start cannot be removed; it goes with the next sweep")
			}
		}
	})
}

// Outgrows tells how many bytes a payload takes in a message of JSON that has little else, 0 if
// such a message can be sent.
func (e *Env) Outgrows(v schemas.Payload) int {
	if 6*len(v) <= e.BodyLimit() {
		return 0
	}
	body, err := schemas.MarshalJSON(&schemas.Report{Result: v})
	if err != nil || len(body) <= e.BodyLimit() {
		return 0
	}
	return len(body)
}

// SmallPart is the part of the inline limit up to which a body has nothing that is too large: text
// may grow threefold when it is decoded, and sixfold in JSON.
const SmallPart = 6
