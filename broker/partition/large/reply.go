package large

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"reflect"
	"slices"

	"github.com/oklog/ulid/v2"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/payloads"
	"github.com/droverhq/drover/schemas"
)

// A reply whose decisions fit no record is not refused while it has payloads that may stand
// elsewhere: the largest go to the object store, until the rest fits. Go workers do so themselves,
// with what they know of the server; what they cannot know, and what comes from other languages, is
// seen to here.

// JudgeReply applies a reply of some bytes, or refuses it.
func (l *Large) JudgeReply(r *actor.Run, reply *schemas.DecisionReply, e *actor.Message, size int) {
	if unfit := l.unfit(r, reply, e.At, size); unfit == "" {
		digest := sha256.Sum256(e.Body)
		e.Event = execution.Reply{
			Reply: reply, Digest: string(hex.AppendEncode(make([]byte, 0, 16), digest[:8])),
		}
	} else {
		if moved := l.unfitting(r, reply, size); len(moved) > 0 {
			l.storeReply(r, reply, e, moved, unfit)
			return
		}
		e.Event = execution.Refuse{Cause: schemas.CauseDecisionTooLarge, Identity: reply.Identity, Reason: unfit}
	}
	l.host.Step(r, e)
}

// unfit says why a reply of some size cannot be applied, "" if it can.
func (l *Large) unfit(
	r *actor.Run, reply *schemas.DecisionReply, at schemas.Timestamp, size int,
) string {
	if size+256*len(reply.Decisions) > l.Env.BodyLimit() {
		return fmt.Sprintf(
			"%d bytes in %d decisions do not fit one record of at most %d bytes; pass "+
				"references instead of data, or decide in several steps", size,
			len(reply.Decisions), l.Env.BodyLimit())
	}
	return l.tooLarge(r.State, reply, at, size)
}

// unfitting are the payloads of a reply that have to go for the rest to fit. The context goes last:
// deciders in other languages may not expect a reference there. Nil if there are none.
func (l *Large) unfitting(r *actor.Run, reply *schemas.DecisionReply, size int) []*schemas.Payload {
	var fields []*schemas.Payload
	for _, d := range reply.Decisions {
		fields = append(fields, portions(d.Attributes)...)
	}
	most := l.Env.BodyLimit() - recordBudget - max(l.mostSaid(r.State, reply, l.Env.Config()),
		256*len(reply.Decisions))
	moved := payloads.Excess(fields, size, math.MaxInt, most)
	for _, f := range fields {
		if _, is := f.Ref(); !is && l.Env.Outgrows(*f) > 0 && !slices.Contains(moved, f) {
			moved = append(moved, f)
		}
	}
	if len(moved) == 0 {
		moved = payloads.Excess([]*schemas.Payload{&reply.Context}, math.MaxInt, math.MaxInt, 0)
	}
	return moved
}

// portions are the payloads of a decision that may stand elsewhere. State values are compared byte
// by byte, so they may not.
func portions(attributes schemas.DecisionAttributes) (all []*schemas.Payload) {
	if _, state := attributes.(*schemas.SetState); state {
		return nil
	}
	for i := range schemas.PayloadFields(attributes) {
		if f, ok := reflect.ValueOf(attributes).Elem().Field(i).Addr().Interface().(*schemas.Payload); ok {
			all = append(all, f)
		}
	}
	return all
}

// storeReply stores payloads of a reply, and judges it again. The run waits meanwhile. unfit is
// what is said if they cannot be stored.
func (l *Large) storeReply(
	r *actor.Run, reply *schemas.DecisionReply, e *actor.Message, moved []*schemas.Payload,
	unfit string,
) {
	contents := make([]schemas.Payload, len(moved))
	for i, f := range moved {
		contents[i] = *f
	}
	r.Load.Begin()
	l.sending++ // an owner that leaves waits for it
	env.ReadAsync(l.Env, l.Loop, func(ctx context.Context) (refs []schemas.Payload, err error) {
		for _, c := range contents {
			ref, err := l.Env.Store.Put(ctx, "reply-"+ulid.Make().String(), c)
			if err != nil {
				return nil, err
			}
			refs = append(refs, schemas.RefPayload(ref))
		}
		return refs, nil
	}, func(refs []schemas.Payload, err error) {
		r.Load.End()
		if l.sending--; l.host.Sealed() {
			return // nobody has heard of the decision: the next owner asks again
		}
		e.At = l.host.Now()
		if err == nil {
			for i, f := range moved {
				*f = refs[i]
			}
			var body []byte
			if body, err = schemas.Marshal(reply); err == nil {
				l.JudgeReply(r, reply, e, len(body))
			}
		}
		if err != nil {
			e.Event = execution.Refuse{
				Cause: schemas.CauseDecisionTooLarge, Identity: reply.Identity,
				Reason: unfit + "; and it cannot be stored elsewhere: " + err.Error(),
			}
			l.host.Step(r, e)
		}
		if !r.Load.Waits() {
			l.host.Loaded(r)
		}
	})
}
