package schedules

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

func (t *turn) pause(ctx context.Context, q *ops.ScheduleRequest) (*ops.ScheduleResponse, error) {
	if q.Until != 0 && q.Until <= t.stamp() {
		return nil, invalid("until", "%s is past", q.Until).
			WithHint("give a time to come, or leave it out")
	}
	return t.setPause(ctx, q, true)
}

func (t *turn) resume(ctx context.Context, q *ops.ScheduleRequest) (*ops.ScheduleResponse, error) {
	if q.Until != 0 {
		return nil, invalid("until", "it ends a pause").WithHint("leave it out")
	}
	return t.setPause(ctx, q, false)
}

func (t *turn) setPause(
	ctx context.Context, q *ops.ScheduleRequest, paused bool,
) (*ops.ScheduleResponse, error) {
	if len(q.Reason) > mostNote {
		return nil, invalid("reason", "%d bytes; want at most %d", len(q.Reason), mostNote)
	}
	if q.Next != 0 {
		return nil, invalid("next", "it is for scheduleShow").WithHint("leave it out")
	}
	return t.with(ctx, q.ID, whole(func(e *entry) (*ops.ScheduleResponse, error) {
		s := &e.rec.Schedule
		if s.Paused == paused && s.PausedUntil == q.Until &&
			(!paused || q.Reason == "" || q.Reason == s.Note) {
			return t.response(e, warnTimes), nil
		}
		r := *e.rec
		r.Schedule.Paused, r.Schedule.PausedUntil = paused, q.Until
		r.Schedule.Note = q.Reason
		r.UpdatedAt, r.Identity = t.stamp(), q.Identity
		if err := t.saveRecord(e, &r); err != nil {
			return nil, err
		}
		// The state is written too, so that a master which has not heard of it decides on no slot
		// any more.
		if err := t.save(e, e.slots.clone()); err != nil && !changed(err) {
			return nil, err
		}
		a := t.response(e, warnTimes)
		a.Changed = true
		kind := ops.OperationSchedulePaused
		if !paused {
			kind = ops.OperationScheduleResumed
		}
		t.noteChange(kind, e.id, q.Identity, q.Reason, 0)
		return a, nil
	}))
}

func (t *turn) trigger(
	ctx context.Context, q *ops.ScheduleTriggerRequest,
) (*ops.ScheduleResponse, error) {
	if err := q.Overlap.Validate("overlap"); err != nil {
		return nil, schemas.Errorf(schemas.CodeInvalid, "%v", err).InField("overlap")
	}
	now := t.now()
	manual := nonce(q.RequestID, now)
	return t.with(ctx, q.ID, whole(func(e *entry) (*ops.ScheduleResponse, error) {
		if e.slots.knows(manual) {
			return t.response(e, warnTimes), nil
		}
		b := e.slots.clone()
		b.accept(ops.ScheduleSlot{
			Slot: schemas.At(now.Truncate(time.Millisecond)), Manual: manual, Overlap: q.Overlap,
		}, schemas.At(now))
		if err := t.save(e, b); err != nil {
			return nil, err
		}
		a := t.response(e, warnTimes)
		a.Changed = true
		if r := b.Recent; len(r) > 0 && r[0].Manual == manual {
			a.Warnings = append(a.Warnings, fmt.Sprintf("it is %s: %s", r[0].Outcome, r[0].Reason))
		}
		t.noteChange(ops.OperationScheduleTrigger, e.id, q.Identity, q.Reason, 1)
		return a, nil
	}))
}

func (t *turn) backfill(
	ctx context.Context, q *ops.ScheduleBackfillRequest,
) (*ops.ScheduleResponse, error) {
	now := t.now()
	switch {
	case q.From == 0:
		return nil, invalid("from", "it is missing").WithHint("give the first instant")
	case q.Until == 0:
		return nil, invalid("until", "it is missing").
			WithHint("give the first instant that is not done any more")
	case q.Until <= q.From:
		return nil, invalid("until", "%s is not after from, %s", q.Until, q.From)
	case q.Until > schemas.At(now):
		return nil, invalid("until", "%s is to come: what is due then is done then", q.Until).
			WithHint("give a time that is past")
	}
	if err := q.Overlap.Validate("overlap"); err != nil {
		return nil, schemas.Errorf(schemas.CodeInvalid, "%v", err).InField("overlap")
	}
	overlap := cmp.Or(q.Overlap, ops.OverlapBufferAll)
	manual := nonce(q.RequestID, now)
	return t.with(ctx, q.ID, whole(func(e *entry) (*ops.ScheduleResponse, error) {
		if e.times.cal == nil {
			return nil, invalid("id", "schedule %q has a window, which has no slots", e.id).
				WithHint("trigger it: drover schedule trigger")
		}
		slots := e.times.between(q.From.Time(), q.Until.Time(), mostWaiting)
		if len(slots) > mostWaiting {
			return nil, invalid("until", "there are more than %d slots", mostWaiting).
				WithHint("end before %s, and do the rest later", slotText(slots[mostWaiting]))
		}
		a := t.response(e, 0)
		a.Slots = len(slots)
		if len(slots) == 0 || e.slots.knows(manual) {
			return a, nil
		}
		b := e.slots.clone()
		for _, s := range slots {
			b.accept(ops.ScheduleSlot{Slot: s, Manual: manual, Overlap: overlap}, schemas.At(now))
		}
		if err := t.save(e, b); err != nil {
			return nil, err
		}
		a = t.response(e, warnTimes)
		a.Slots, a.Changed = len(slots), true
		t.noteChange(ops.OperationScheduleBackfill, e.id, q.Identity, q.Reason, int64(len(slots)))
		return a, nil
	}))
}

func (t *turn) remove(ctx context.Context, q *ops.ScheduleRequest) (*ops.ScheduleResponse, error) {
	if q.Next != 0 || q.Until != 0 {
		return nil, invalid("next", "a deletion takes neither next nor until").
			WithHint("leave them out")
	}
	return t.with(ctx, q.ID, func(e *entry) (*ops.ScheduleResponse, error) {
		a := t.response(e, 0)
		if n := e.slots.open(); n > 0 {
			a.Warnings = append(a.Warnings,
				fmt.Sprintf("runs that it has started and that go on: %d", n))
		}
		if err := t.bucket.Delete(t.ctx, Key(e.id), e.recRev); err != nil {
			e.stale = true
			return nil, err
		}
		stateRev := e.stateRev
		t.forget(e)
		if stateRev > 0 { // what is left is taken for that of a schedule which was deleted
			if err := t.bucket.Delete(t.ctx, stateKey(e.id), stateRev); err != nil {
				t.log.WithField("err", err).WithField("schedule", e.id).
					Debug("the state of a schedule that was deleted stays until the next master")
			}
		}
		a.Changed = true
		t.noteChange(ops.OperationScheduleDeleted, e.id, q.Identity, q.Reason, int64(e.slots.open()))
		return a, nil
	})
}

// noteChange tells in the stream of operations what somebody has done.
func (t *turn) noteChange(kind ops.OperationKind, id, identity, reason string, count int64) {
	o := ops.Operation{
		Kind: kind, Subject: id, Identity: identity, Reason: reason, Count: count, At: t.stamp(),
	}
	t.work.Go(func() { t.note(t.ctx, o) })
}
