package schedules

import (
	"cmp"
	"fmt"
	"maps"
	"time"

	"github.com/droverhq/drover/broker/stats"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

const (
	// late is how late a slot is that counts as missed while nobody could fire it.
	late = 10 * time.Second
	// pace is the time between two slots of a schedule that were missed and are made up for.
	pace = 100 * time.Millisecond
	// recheck is how often it is looked whether too many are overdue.
	recheck = time.Minute
	// startWithin is how long a start may take after it was decided upon; a repeat is decided upon
	// anew after freshFor.
	startWithin = time.Minute
	freshFor    = 20 * time.Second
	// A start that is refused for now, or has no answer, is repeated after firstRetry, and less and
	// less often.
	firstRetry, lastRetry = time.Second, time.Minute
	// reloadRetry is the pause before a key is read again that could not be written.
	reloadRetry = time.Second
	// mostAtOnce bounds the slots that are settled in one write.
	mostAtOnce = 1000
)

// serve does what is to be done now for a schedule, and returns when to look again; the zero time
// for never.
func (t *turn) serve(e *entry) time.Time {
	for t.ctx.Err() == nil {
		start, until, err := t.plan(e)
		switch {
		case err != nil:
			if t.ctx.Err() != nil {
				return time.Time{}
			}
			t.log.WithField("err", err).WithField("schedule", e.id).
				Debug("a schedule cannot be served now; trying again")
			if changed(err) {
				continue
			}
			return t.now().Add(reloadRetry)
		case start == nil:
			return until
		default:
			t.start(e, start)
		}
	}
	return time.Time{}
}

// plan decides on all slots that are due, and writes what it has decided. It returns the start that
// is to be made, if there is one.
func (t *turn) plan(e *entry) (start *startOf, until time.Time, err error) {
	if err := e.enter(t.ctx); err != nil {
		return nil, until, err
	}
	defer e.leave()
	if ok, err := t.fresh(e); !ok {
		return nil, until, err
	}
	now := t.now()
	b := e.slots.clone()
	dirty, until := t.decide(e, b, now)
	if s := b.Starting; s != nil {
		if now.Before(e.retryAt) && e.answered == nil {
			if until.IsZero() || until.After(e.retryAt) {
				until = e.retryAt
			}
		} else {
			if now.Sub(s.At.Time()) > freshFor && e.answered == nil {
				s.At, dirty = schemas.At(now), true
			}
			start = t.startOf(e, b)
		}
	}
	if dirty {
		if err := t.save(e, b); err != nil {
			return nil, until, err
		}
	}
	t.endOthers(e)
	return start, until, nil
}

// decide brings a state up to a time. It returns when the next slot is due, and the zero time if
// that is to wait for the one which is being started, or never comes.
func (t *turn) decide(e *entry, b *slotState, now time.Time) (dirty bool, until time.Time) {
	at := schemas.At(now)
	for range mostAtOnce {
		if b.advance(e.paused(at), at) {
			dirty = true
		}
		if b.Starting != nil && b.Starting.Manual == "" || e.times.cal == nil || b.rests() {
			return dirty, time.Time{}
		}
		slot, due, ok := e.times.after(e.last(b))
		if !ok {
			return dirty, time.Time{}
		}
		if due.After(now) {
			return dirty, due
		}
		if now.Sub(due) > late {
			if now.Sub(e.checked) >= recheck || e.checked.IsZero() {
				e.checked = now
				if n, upTo := e.times.overdue(e.last(b), now, e.catchUp()); n > 0 {
					t.miss(e, b, n, upTo, now)
					dirty = true
					continue
				}
			}
			if now.Before(e.pacing) {
				return dirty, e.pacing
			}
		}
		dirty = true
		b.LastSlot = schemas.At(slot)
		s := ops.ScheduleSlot{Slot: b.LastSlot}
		switch {
		case e.paused(b.LastSlot):
			b.leaveOut(s, ops.SlotSkipped, at, "the schedule was paused")
		case b.accept(s, at) && now.Sub(due) > late:
			e.pacing = now.Add(pace)
		case b.overrunBegins(s.Slot):
			t.noteSlot(e, ops.OperationSlotsOverrun, b.Recent[0], 1)
		}
	}
	return dirty, now
}

// last is the instant after which slots count.
func (e *entry) last(b *slotState) time.Time {
	since := e.rec.Since.Time().Add(-1)
	if last := b.LastSlot.Time(); b.LastSlot != 0 && last.After(since) {
		return last
	}
	return since
}

func (e *entry) paused(at schemas.Timestamp) bool {
	s := &e.rec.Schedule
	return s.Paused && (s.PausedUntil == 0 || at < s.PausedUntil)
}

func (e *entry) catchUp() time.Duration {
	return cmp.Or(e.rec.Schedule.CatchUp.Std(), defaultCatchUp)
}

// miss counts n slots, up to one, that nobody could fire in time.
func (t *turn) miss(e *entry, b *slotState, n int64, upTo, now time.Time) {
	reason := fmt.Sprintf(
		"nobody could fire it in time: at most %v late, and of more than %d the latest",
		e.catchUp(), mostMissed)
	if n == mostCounted {
		reason = "or more: " + reason
	}
	b.LastSlot = schemas.At(upTo)
	b.missed(ops.ScheduleSlot{Slot: b.LastSlot}, n, schemas.At(now), reason)
	t.noteSlot(e, ops.OperationSlotsMissed, b.Recent[0], n)
}

// startOf is a start that is to be made.
type startOf struct {
	slot   ops.ScheduleSlot
	wid    string
	run    string
	start  *schemas.StartRequest // one of the two
	signal *schemas.SignalRequest
	err    error // why it cannot be made
	known  *answered
}

// startOf makes the request for the slot that is being started.
func (t *turn) startOf(e *entry, b *slotState) *startOf {
	s := *b.Starting
	run := RunID(t.o.Namespace, e.id, e.rec.Incarnation, s.Slot, s.Manual)
	o := &startOf{slot: s, run: run}
	if e.answered != nil && e.answered.run == run {
		o.known = e.answered
		return o
	}
	v := &values{slot: slotText(s.Slot), lastSlot: slotText(b.LastDone), lastResult: b.LastResult}
	a := &e.rec.Schedule.Action
	if a.Signal != nil {
		q := *a.Signal
		q.V, q.RequestID = schemas.Version, run
		q.Input, o.err = fill(q.Input, v)
		o.signal, o.wid = &q, q.WorkflowID
		return o
	}
	q := *a.Start
	q.V, q.Run, q.RequestID, q.StartMode = schemas.Version, run, run, schemas.ModeSchedule
	q.WorkflowID = cmp.Or(q.WorkflowID, workflowID(e.id, s.Slot, s.Manual))
	q.Identity = cmp.Or(q.Identity, "schedule "+e.id)
	q.NotAfter = s.At.Add(schemas.Duration(startWithin))
	q.Attributes = maps.Clone(q.Attributes)
	if q.Attributes == nil {
		q.Attributes = map[string]string{}
	}
	q.Attributes["schedule"], q.Attributes["slot"] = e.id, v.slot
	if q.Input, o.err = fill(q.Input, v); o.err == nil && q.Signal != nil {
		signal := *q.Signal
		signal.Input, o.err = fill(signal.Input, v)
		q.Signal = &signal
	}
	o.start, o.wid = &q, q.WorkflowID
	return o
}

// start makes a start, and writes what became of it.
func (t *turn) start(e *entry, o *startOf) {
	a, err := t.make(o)
	if t.ctx.Err() != nil {
		return
	}
	if e.enter(t.ctx) != nil {
		return
	}
	defer e.leave()
	if err == nil {
		e.answered = a
	}
	refusal, final := refusedForGood(err)
	if err == nil || refusal != nil && refusal.Code != schemas.CodeUnavailable &&
		refusal.Code != schemas.CodeTimeout {
		t.isSettled(e)
	}
	if ok, _ := t.fresh(e); !ok || e.slots.Starting == nil || e.slots.Starting.Slot != o.slot.Slot ||
		e.slots.Starting.Manual != o.slot.Manual {
		return
	}
	now := t.now()
	at := schemas.At(now)
	b := e.slots.clone()
	if err == nil && o.slot.Manual == "" {
		stats.From(t.ctx).Fired(now.Sub(o.slot.Slot.Time()))
	}
	tooLate := now.Sub(o.slot.Slot.Time()) > e.catchUp() && e.catchUp() > 0 && o.slot.Manual == ""
	switch {
	case err == nil && o.signal == nil && !e.rec.Schedule.Action.Signals():
		b.started(a.wid, a.real, at)
	case err == nil:
		b.signaled(a.wid, a.real, at)
	case final:
		b.refused(ops.SlotRefused, at, reasonOf(err))
	case tooLate:
		b.refused(ops.SlotMissed, at, "it could not be started in time: "+reasonOf(err))
	default:
		e.retryAt = now.Add(min(firstRetry<<min(e.retries, 10), lastRetry))
		e.retries++
		return
	}
	if e.retryAt, e.retries = (time.Time{}), 0; t.save(e, b) != nil {
		return // it is read again, and the answer is known
	}
	e.answered = nil
	switch {
	case final && b.refusalBegins():
		t.noteSlot(e, ops.OperationSlotRefused, b.Recent[0], 0)
	case err != nil && !final:
		t.noteSlot(e, ops.OperationSlotsMissed, b.Recent[0], 1)
	}
	t.watchAll(e)
}

// make does a start.
func (t *turn) make(o *startOf) (*answered, error) {
	switch {
	case o.known != nil:
		return o.known, nil
	case o.err != nil:
		return nil, schemas.Errorf(schemas.CodeInvalid, "its input cannot be filled in: %v", o.err)
	}
	select {
	case t.starts <- struct{}{}:
		defer func() { <-t.starts }()
	case <-t.ctx.Done():
		return nil, t.ctx.Err()
	}
	if o.signal != nil {
		a, err := t.engine.Signal(t.ctx, o.signal)
		if err != nil {
			return nil, err
		}
		return &answered{run: o.run, wid: o.wid, real: a.Run}, nil
	}
	a, err := t.engine.Start(t.ctx, o.start)
	if err != nil {
		return nil, err
	}
	return &answered{run: o.run, wid: cmp.Or(a.WorkflowID, o.wid), real: cmp.Or(a.Run, o.run)}, nil
}

func reasonOf(err error) string {
	if e, ok := refusedForGood(err); ok || e != nil {
		return fmt.Sprintf("%s (%s)", e.Error(), e.Code)
	}
	return err.Error()
}

// noteSlot tells of a slot in the stream of operations.
func (t *turn) noteSlot(e *entry, kind ops.OperationKind, s ops.ScheduleSlot, count int64) {
	o := ops.Operation{
		Kind: kind, Subject: e.id, Slot: s.Slot, Count: count, WorkflowID: s.WorkflowID,
		Reason: s.Reason, At: t.stamp(),
	}
	t.work.Go(func() { t.note(t.ctx, o) })
}
