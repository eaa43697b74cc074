package schedules

import (
	"bytes"
	"context"

	"github.com/droverhq/drover/internal/runid"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
	"github.com/oklog/ulid/v2"
)

func (t *turn) create(
	ctx context.Context, q *ops.ScheduleCreateRequest,
) (*ops.ScheduleResponse, error) {
	now := t.now()
	warnings, err := t.check(ctx, &q.Schedule, now)
	if err != nil {
		return nil, in("schedule.", err)
	}
	e, err := t.enterNew(ctx, q.Schedule.ID)
	if err != nil {
		return nil, err
	}
	a, made, err := t.createIn(e, q, schemas.At(now))
	e.leave()
	if err != nil {
		return nil, err
	}
	t.kick(e)
	a.Warnings = append(warnings, a.Warnings...)
	if made {
		t.noteChange(ops.OperationScheduleCreated, q.Schedule.ID, q.Identity, q.Schedule.Note, 0)
	}
	return a, nil
}

// enterNew enters the schedule of an id, which may have none.
func (t *turn) enterNew(ctx context.Context, id string) (*entry, error) {
	for {
		t.mu.Lock()
		e := t.entries[id]
		if e == nil {
			e = newEntry(id)
			e.stale = true
			t.entries[id] = e
		}
		t.mu.Unlock()
		if err := e.enter(ctx); err != nil {
			return nil, err
		}
		if !e.gone {
			return e, nil
		}
		e.leave()
	}
}

func (t *turn) createIn(
	e *entry, q *ops.ScheduleCreateRequest, now schemas.Timestamp,
) (a *ops.ScheduleResponse, made bool, err error) {
	if e.rec == nil && e.damage == "" || e.stale {
		if e.recRev == 0 {
			made, err = t.store(e, q, now)
			if err != nil {
				return nil, false, err
			}
		}
		if !made {
			if err := t.reload(e); err != nil {
				return nil, false, err
			}
		}
	}
	if e.gone {
		return nil, false, schemas.Errorf(schemas.CodeUnavailable,
			"schedule %q was deleted while it was made", e.id).WithHint("try again")
	}
	if !made && (e.rec == nil || !sameSchedule(&e.rec.Schedule, &q.Schedule)) {
		return nil, false, schemas.Errorf(schemas.CodeAlreadyExists, "there is a schedule %q, "+
			"and it is another one", e.id).InField("schedule.id").
			WithHint("change it with: drover schedule update; or name another id")
	}
	a = t.response(e, warnTimes)
	a.Changed = made
	return a, made, nil
}

// store writes a new schedule. It reports false if there is one.
func (t *turn) store(e *entry, q *ops.ScheduleCreateRequest, now schemas.Timestamp) (bool, error) {
	r := &ops.ScheduleRecord{
		V: schemas.Version, Schedule: q.Schedule, Incarnation: ulid.Make().String(), CreatedAt: now,
		Since: now, Identity: q.Identity,
	}
	if q.RequestID != "" {
		r.Incarnation = runid.Of(now.Time().UnixMilli(), q.RequestID)
	}
	body, err := schemas.MarshalJSON(r)
	if err != nil {
		return false, err
	}
	rev, err := t.bucket.Put(t.ctx, Key(e.id), body, 0)
	if changed(err) {
		return false, nil
	}
	if err != nil {
		t.forget(e) // whether it is there the bucket tells
		return false, err
	}
	// that of a schedule which was deleted
	state, stateRev, err := t.bucket.Get(t.ctx, stateKey(e.id))
	if err != nil {
		t.forget(e)
		return false, err
	}
	t.install(e, stored{body, rev}, stored{state, stateRev})
	return true, nil
}

func sameSchedule(a, b *ops.Schedule) bool {
	x, err := schemas.MarshalJSON(a)
	if err != nil {
		return false
	}
	y, err := schemas.MarshalJSON(b)
	return err == nil && bytes.Equal(x, y)
}
