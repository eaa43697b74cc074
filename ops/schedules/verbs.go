package schedules

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/droverhq/drover/internal/runid"
	"github.com/droverhq/drover/ops/service"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/timers/calendar"
)

const (
	// tries bounds how often a change is made anew because somebody else has made one meanwhile.
	tries = 5
	// verbLimit bounds the work on a request.
	verbLimit = 20 * time.Second
	// warnTimes is how many of the next times a creation tells.
	warnTimes = 5
)

// verbs are what is answered while this node is the master.
func (t *turn) verbs() []service.Verb {
	return []service.Verb{
		{
			Name:  "scheduleCreate",
			About: "make a schedule: ScheduleCreateRequest → ScheduleResponse",
			Serve: service.Answer(bounded(t.create), refuse),
		},
		{
			Name:  "scheduleUpdate",
			About: "change a schedule: ScheduleUpdateRequest → ScheduleResponse",
			Serve: service.Answer(bounded(t.update), refuse),
		},
		{
			Name:  "schedulePause",
			About: "pause a schedule: ScheduleRequest → ScheduleResponse",
			Serve: service.Answer(bounded(t.pause), refuse),
		},
		{
			Name:  "scheduleResume",
			About: "resume a schedule: ScheduleRequest → ScheduleResponse",
			Serve: service.Answer(bounded(t.resume), refuse),
		},
		{
			Name:  "scheduleTrigger",
			About: "do the action of a schedule now: ScheduleTriggerRequest → ScheduleResponse",
			Serve: service.Answer(bounded(t.trigger), refuse),
		},
		{
			Name:  "scheduleBackfill",
			About: "do slots of the past: ScheduleBackfillRequest → ScheduleResponse",
			Serve: service.Answer(bounded(t.backfill), refuse),
		},
		{
			Name:  "scheduleDelete",
			About: "delete a schedule: ScheduleRequest → ScheduleResponse",
			Serve: service.Answer(bounded(t.remove), refuse),
		},
		{
			Name:  "scheduleShow",
			About: "a schedule, what it has done, and its next times: ScheduleRequest → ScheduleResponse",
			Serve: service.Answer(bounded(t.show), refuse),
		},
		{
			Name:  "scheduleList",
			About: "schedules by their ids: ScheduleListRequest → ScheduleListResponse",
			Serve: service.Answer(bounded(t.list), refuseList),
		},
	}
}

func refuse[Q any](_ *Q, e *schemas.Error) *schemas.ScheduleResponse {
	return &schemas.ScheduleResponse{V: schemas.Version, Error: e}
}

func refuseList(_ *schemas.ScheduleListRequest, e *schemas.Error) *schemas.ScheduleListResponse {
	return &schemas.ScheduleListResponse{
		V:         schemas.Version,
		Schedules: []schemas.ScheduleLine{},
		Error:     e,
	}
}

func bounded[Q, A any](
	do func(context.Context, *Q) (*A, error),
) func(context.Context, *Q) (*A, error) {
	return func(ctx context.Context, q *Q) (*A, error) {
		ctx, cancel := context.WithTimeout(ctx, verbLimit)
		defer cancel()
		return do(ctx, q)
	}
}

// with calls fn with a schedule, and has it served then. Fn is called again if somebody else has
// changed the schedule.
func (t *turn) with(
	ctx context.Context,
	id string,
	fn func(e *entry) (*schemas.ScheduleResponse, error),
) (*schemas.ScheduleResponse, error) {
	if err := checkID("id", id); err != nil {
		return nil, err
	}
	e := t.entry(id)
	if e == nil {
		return nil, notFound(id)
	}
	if err := e.enter(ctx); err != nil {
		return nil, err
	}
	a, err := t.inside(e, fn)
	e.leave()
	t.kick(e)
	return a, err
}

func (t *turn) inside(
	e *entry,
	fn func(e *entry) (*schemas.ScheduleResponse, error),
) (a *schemas.ScheduleResponse, err error) {
	for range tries {
		if e.stale && !e.gone {
			if err := t.reload(e); err != nil {
				return nil, err
			}
		}
		if e.gone {
			return nil, notFound(e.id)
		}
		if a, err = fn(e); !changed(err) {
			return a, err
		}
	}
	return nil, err
}

func notFound(id string) error {
	return schemas.Errorf(schemas.CodeNotFound, "there is no schedule %q", id).
		InField("id").
		WithHint("see what there is with: drover schedule list")
}

// whole calls fn with a schedule that can be read.
func whole(
	fn func(e *entry) (*schemas.ScheduleResponse, error),
) func(e *entry) (*schemas.ScheduleResponse, error) {
	return func(e *entry) (*schemas.ScheduleResponse, error) {
		if e.damage != "" {
			return nil, schemas.Errorf(schemas.CodeConflict, "schedule %q is damaged: %s", e.id, e.damage).
				InField("id").
				WithHint("delete it and make it anew: drover schedule delete")
		}
		return fn(e)
	}
}

func (t *turn) create(
	ctx context.Context,
	q *schemas.ScheduleCreateRequest,
) (*schemas.ScheduleResponse, error) {
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
		t.noteChange(
			schemas.OperationScheduleCreated,
			q.Schedule.ID,
			q.Identity,
			q.Schedule.Note,
			0,
		)
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
	e *entry,
	q *schemas.ScheduleCreateRequest,
	now schemas.Timestamp,
) (a *schemas.ScheduleResponse, made bool, err error) {
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
		return nil, false, schemas.Errorf(schemas.CodeUnavailable, "schedule %q was deleted while it was made", e.id).
			WithHint("try again")
	}
	if !made && (e.rec == nil || !sameSchedule(&e.rec.Schedule, &q.Schedule)) {
		return nil, false, schemas.Errorf(schemas.CodeAlreadyExists, "there is a schedule %q, "+
			"and it is another one", e.id).
			InField("schedule.id").
			WithHint("change it with: drover schedule update; or name another id")
	}
	a = t.response(e, warnTimes)
	a.Changed = made
	return a, made, nil
}

// store writes a new schedule. It reports false if there is one.
func (t *turn) store(
	e *entry,
	q *schemas.ScheduleCreateRequest,
	now schemas.Timestamp,
) (bool, error) {
	r := &schemas.ScheduleRecord{
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

func sameSchedule(a, b *schemas.Schedule) bool {
	x, err := schemas.MarshalJSON(a)
	if err != nil {
		return false
	}
	y, err := schemas.MarshalJSON(b)
	return err == nil && bytes.Equal(x, y)
}

func (t *turn) update(
	ctx context.Context,
	q *schemas.ScheduleUpdateRequest,
) (*schemas.ScheduleResponse, error) {
	now := t.now()
	warnings, err := t.check(ctx, &q.Schedule, now)
	if err != nil {
		return nil, in("schedule.", err)
	}
	updated := false
	a, err := t.with(ctx, q.Schedule.ID, whole(func(e *entry) (*schemas.ScheduleResponse, error) {
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
				"revision %d, not %d", e.id, e.recRev, q.Revision).
				InField("revision").
				WithHint("read it again with: drover schedule show; and make the change anew")
		}
		r := *e.rec
		r.Schedule, r.UpdatedAt, r.Identity = next, schemas.At(now), q.Identity
		r.Updates++
		b := e.book.clone()
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
		t.noteChange(schemas.OperationScheduleUpdated, q.Schedule.ID, q.Identity, "", 0)
	}
	return a, nil
}

// dropDue counts what was due by times that are changed now.
func (t *turn) dropDue(e *entry, b *book, now time.Time) {
	if e.times.cal == nil || b.rests() {
		return
	}
	n, upTo := e.times.overdue(e.last(b), now, 0)
	if n > 0 {
		b.LastSlot = schemas.At(upTo)
		b.missed(
			schemas.ScheduleSlot{Slot: b.LastSlot},
			n,
			schemas.At(now),
			"the schedule was changed before",
		)
		t.noteSlot(e, schemas.OperationSlotsMissed, b.Recent[0], n)
	}
}

func sameTimes(a, b *schemas.Schedule) bool {
	return sameSchedule(
		&schemas.Schedule{Times: a.Times, Window: a.Window},
		&schemas.Schedule{Times: b.Times, Window: b.Window},
	)
}

// current is the schedule with what remains of its limit.
func (e *entry) current() schemas.Schedule {
	s := e.rec.Schedule
	if e.book.Remaining != nil {
		n := *e.book.Remaining
		s.Remaining = &n
	}
	return s
}

func (t *turn) pause(
	ctx context.Context,
	q *schemas.ScheduleRequest,
) (*schemas.ScheduleResponse, error) {
	if q.Until != 0 && q.Until <= t.stamp() {
		return nil, invalid(
			"until",
			"%s is past",
			q.Until,
		).WithHint("give a time to come, or leave it out")
	}
	return t.setPause(ctx, q, true)
}

func (t *turn) resume(
	ctx context.Context,
	q *schemas.ScheduleRequest,
) (*schemas.ScheduleResponse, error) {
	if q.Until != 0 {
		return nil, invalid("until", "it ends a pause").WithHint("leave it out")
	}
	return t.setPause(ctx, q, false)
}

func (t *turn) setPause(
	ctx context.Context,
	q *schemas.ScheduleRequest,
	paused bool,
) (*schemas.ScheduleResponse, error) {
	if len(q.Reason) > mostNote {
		return nil, invalid("reason", "%d bytes; want at most %d", len(q.Reason), mostNote)
	}
	if q.Next != 0 {
		return nil, invalid("next", "it is for scheduleShow").WithHint("leave it out")
	}
	return t.with(ctx, q.ID, whole(func(e *entry) (*schemas.ScheduleResponse, error) {
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
		if err := t.save(e, e.book.clone()); err != nil && !changed(err) {
			return nil, err
		}
		a := t.response(e, warnTimes)
		a.Changed = true
		kind := schemas.OperationSchedulePaused
		if !paused {
			kind = schemas.OperationScheduleResumed
		}
		t.noteChange(kind, e.id, q.Identity, q.Reason, 0)
		return a, nil
	}))
}

func (t *turn) trigger(
	ctx context.Context,
	q *schemas.ScheduleTriggerRequest,
) (*schemas.ScheduleResponse, error) {
	if err := q.Overlap.Validate("overlap"); err != nil {
		return nil, schemas.Errorf(schemas.CodeInvalid, "%v", err).InField("overlap")
	}
	now := t.now()
	manual := nonce(q.RequestID, now)
	return t.with(ctx, q.ID, whole(func(e *entry) (*schemas.ScheduleResponse, error) {
		if e.book.knows(manual) {
			return t.response(e, warnTimes), nil
		}
		b := e.book.clone()
		b.accept(
			schemas.ScheduleSlot{
				Slot:    schemas.At(now.Truncate(time.Millisecond)),
				Manual:  manual,
				Overlap: q.Overlap,
			},
			schemas.At(now),
		)
		if err := t.save(e, b); err != nil {
			return nil, err
		}
		a := t.response(e, warnTimes)
		a.Changed = true
		if r := b.Recent; len(r) > 0 && r[0].Manual == manual {
			a.Warnings = append(a.Warnings, fmt.Sprintf("it is %s: %s", r[0].Outcome, r[0].Reason))
		}
		t.noteChange(schemas.OperationScheduleTrigger, e.id, q.Identity, q.Reason, 1)
		return a, nil
	}))
}

func (t *turn) backfill(
	ctx context.Context,
	q *schemas.ScheduleBackfillRequest,
) (*schemas.ScheduleResponse, error) {
	now := t.now()
	switch {
	case q.From == 0:
		return nil, invalid("from", "it is missing").WithHint("give the first instant")
	case q.Until == 0:
		return nil, invalid(
			"until",
			"it is missing",
		).WithHint("give the first instant that is not done any more")
	case q.Until <= q.From:
		return nil, invalid("until", "%s is not after from, %s", q.Until, q.From)
	case q.Until > schemas.At(now):
		return nil, invalid(
			"until",
			"%s is to come: what is due then is done then",
			q.Until,
		).WithHint("give a time that is past")
	}
	if err := q.Overlap.Validate("overlap"); err != nil {
		return nil, schemas.Errorf(schemas.CodeInvalid, "%v", err).InField("overlap")
	}
	overlap := cmp.Or(q.Overlap, schemas.OverlapBufferAll)
	manual := nonce(q.RequestID, now)
	return t.with(ctx, q.ID, whole(func(e *entry) (*schemas.ScheduleResponse, error) {
		if e.times.cal == nil {
			return nil, invalid(
				"id",
				"schedule %q has a window, which has no slots",
				e.id,
			).WithHint("trigger it: drover schedule trigger")
		}
		slots := e.times.between(q.From.Time(), q.Until.Time(), mostWaiting)
		if len(slots) > mostWaiting {
			return nil, invalid(
				"until",
				"there are more than %d slots",
				mostWaiting,
			).WithHint("end before %s, and do the rest later", slotText(slots[mostWaiting]))
		}
		a := t.response(e, 0)
		a.Slots = len(slots)
		if len(slots) == 0 || e.book.knows(manual) {
			return a, nil
		}
		b := e.book.clone()
		for _, s := range slots {
			b.accept(
				schemas.ScheduleSlot{Slot: s, Manual: manual, Overlap: overlap},
				schemas.At(now),
			)
		}
		if err := t.save(e, b); err != nil {
			return nil, err
		}
		a = t.response(e, warnTimes)
		a.Slots, a.Changed = len(slots), true
		t.noteChange(
			schemas.OperationScheduleBackfill,
			e.id,
			q.Identity,
			q.Reason,
			int64(len(slots)),
		)
		return a, nil
	}))
}

func (t *turn) remove(
	ctx context.Context,
	q *schemas.ScheduleRequest,
) (*schemas.ScheduleResponse, error) {
	if q.Next != 0 || q.Until != 0 {
		return nil, invalid(
			"next",
			"a deletion takes neither next nor until",
		).WithHint("leave them out")
	}
	return t.with(ctx, q.ID, func(e *entry) (*schemas.ScheduleResponse, error) {
		a := t.response(e, 0)
		if n := e.book.open(); n > 0 {
			a.Warnings = append(
				a.Warnings,
				fmt.Sprintf("runs that it has started and that go on: %d", n),
			)
		}
		if err := t.bucket.Delete(t.ctx, Key(e.id), e.recRev); err != nil {
			e.stale = true
			return nil, err
		}
		stateRev := e.stateRev
		t.forget(e)
		if stateRev > 0 { // what is left is taken for that of a schedule which was deleted
			if err := t.bucket.Delete(t.ctx, stateKey(e.id), stateRev); err != nil {
				t.log.WithField("err", err).
					WithField("schedule", e.id).
					Debug("the state of a schedule that was deleted stays until the next master")
			}
		}
		a.Changed = true
		t.noteChange(
			schemas.OperationScheduleDeleted,
			e.id,
			q.Identity,
			q.Reason,
			int64(e.book.open()),
		)
		return a, nil
	})
}

// noteChange tells in the stream of operations what somebody has done.
func (t *turn) noteChange(kind schemas.OperationKind, id, identity, reason string, count int64) {
	o := schemas.Operation{
		Kind:     kind,
		Subject:  id,
		Identity: identity,
		Reason:   reason,
		Count:    count,
		At:       t.stamp(),
	}
	t.work.Go(func() { t.note(t.ctx, o) })
}
