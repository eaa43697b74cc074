package schedules

import (
	"context"
	"errors"
	"time"

	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
	"github.com/droverhq/drover/timers/calendar"
)

func (t *turn) update(
	ctx context.Context, q *ops.ScheduleUpdateRequest,
) (*ops.ScheduleResponse, error) {
	now := t.now()
	warnings, err := t.check(ctx, &q.Schedule, now)
	if err != nil {
		return nil, in("schedule.", err)
	}
	updated := false
	a, err := t.with(ctx, q.Schedule.ID, whole(func(e *entry) (*ops.ScheduleResponse, error) {
		next := q.Schedule
		if !next.Paused && e.rec.Schedule.Paused { // it is resumed by its own verb
			next.Paused, next.PausedUntil = true, e.rec.Schedule.PausedUntil
		}
		current := e.current()
		if sameSchedule(&current, &next) {
			return t.response(e, warnTimes), nil
		}
		if q.Revision != 0 && q.Revision != e.recRev {
			return nil, schemas.Errorf(schemas.CodeConflict, "schedule %q was changed: it has "+
				"revision %d, not %d", e.id, e.recRev, q.Revision).InField("revision").
				WithHint("read it again with: drover schedule show; and make the change anew")
		}
		r := *e.rec
		r.Schedule, r.UpdatedAt, r.Identity = next, schemas.At(now), q.Identity
		r.Updates++
		b := e.slots.clone()
		b.Updates, b.Remaining = r.Updates, next.Remaining
		otherTimes := !sameTimes(&e.rec.Schedule, &next)
		if otherTimes {
			t.dropDue(e, b, now)
			r.Since = schemas.At(now)
		}
		if err := t.saveRecord(e, &r); err != nil {
			return nil, err
		}
		if otherTimes {
			e.times = times{}
			if next.Times != nil {
				cal, err := calendar.Compile(next.Times)
				if err != nil {
					return nil, err
				}
				e.times = times{id: e.id, cal: cal}
			}
		}
		b.overlap = next.Overlap
		if err := t.save(e, b); err != nil && !changed(err) {
			return nil, err // what is stored is true; a repeat finds nothing to change
		}
		updated = true
		a := t.response(e, warnTimes)
		a.Changed = true
		return a, nil
	}))
	if e, ok := errors.AsType[*schemas.Error](err); ok && e.Field == "id" {
		return nil, in("schedule.", err)
	}
	if err != nil {
		return nil, err
	}
	a.Warnings = append(warnings, a.Warnings...)
	if updated {
		t.noteChange(ops.OperationScheduleUpdated, q.Schedule.ID, q.Identity, "", 0)
	}
	return a, nil
}

// dropDue counts what was due by times that are changed now.
func (t *turn) dropDue(e *entry, b *slotState, now time.Time) {
	if e.times.cal == nil || b.rests() {
		return
	}
	n, upTo := e.times.overdue(e.last(b), now, 0)
	if n > 0 {
		b.LastSlot = schemas.At(upTo)
		b.missed(ops.ScheduleSlot{Slot: b.LastSlot}, n, schemas.At(now),
			"the schedule was changed before")
		t.noteSlot(e, ops.OperationSlotsMissed, b.Recent[0], n)
	}
}

func sameTimes(a, b *ops.Schedule) bool {
	return sameSchedule(&ops.Schedule{Times: a.Times, Window: a.Window},
		&ops.Schedule{Times: b.Times, Window: b.Window})
}

// current is the schedule with what remains of its limit.
func (e *entry) current() ops.Schedule {
	s := e.rec.Schedule
	if e.slots.Remaining != nil {
		n := *e.slots.Remaining
		s.Remaining = &n
	}
	return s
}
