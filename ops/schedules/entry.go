package schedules

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
	"github.com/droverhq/drover/timers/calendar"
)

// entry is a schedule.
type entry struct {
	id string

	// turn holds one while somebody works with what follows. It is a channel, since they wait for
	// the bucket.
	turn     chan struct{}
	rec      *ops.ScheduleRecord // nil if it cannot be read
	recRev   uint64
	slots    slotState
	stateRev uint64
	times    times  // without a calendar for a window
	damage   string // why it cannot be served; empty if it can
	stale    bool   // what is in the bucket is not known
	gone     bool
	// answered is the answer to a start whose slot is not written yet as running.
	answered *answered
	watched  map[string]func() // by run: ends the wait for its end
	asked    map[string]bool   // runs that were asked to end, by run and how
	pacing   time.Time         // before which no slot is begun that was missed
	checked  time.Time         // when it was last seen that not too many are overdue
	retryAt  time.Time         // before which the start is not repeated
	retries  int

	// The mu of the turn guards what follows.
	due       time.Time
	place     int // in the heap; -1 if it is not in it
	busy      bool
	again     bool
	unsettled bool
}

// answered is what became of a start.
type answered struct {
	run  string // the id that the start has asked for
	wid  string
	real string // the run that there is
}

func newEntry(id string) *entry {
	return &entry{
		id: id, turn: make(chan struct{}, 1), place: -1, watched: map[string]func(){},
		asked: map[string]bool{},
	}
}

func (e *entry) enter(ctx context.Context) error {
	select {
	case e.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (e *entry) leave() { <-e.turn }

// heard takes up what the bucket tells of a schedule. State is what was read before, if it was.
func (t *turn) heard(id string, value []byte, rev uint64, deleted bool, state stored, known bool) {
	t.mu.Lock()
	e := t.entries[id]
	if e == nil && deleted {
		t.mu.Unlock()
		return
	}
	fresh := e == nil
	if fresh {
		e = newEntry(id)
		t.entries[id] = e
	}
	t.mu.Unlock()
	if e.enter(t.ctx) != nil {
		return
	}
	switch {
	case e.recRev >= rev || e.gone: // it is ours, or old
		e.leave()
		return
	case deleted:
		t.forget(e)
		e.leave()
		return
	case fresh && known:
		t.install(e, stored{value, rev}, state)
	case fresh && t.loading():
		t.install(e, stored{value, rev}, stored{})
	default:
		e.stale = true
	}
	e.leave()
	t.kick(e)
}

// loading tells whether the schedules are being read that there were at the beginning.
func (t *turn) loading() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.unsettled < 0
}

// reload reads a schedule from the bucket. The caller is in it.
func (t *turn) reload(e *entry) error {
	rec, recRev, err := t.bucket.Get(t.ctx, Key(e.id))
	if err != nil {
		return err
	}
	if recRev == 0 {
		t.forget(e)
		return nil
	}
	state, stateRev, err := t.bucket.Get(t.ctx, stateKey(e.id))
	if err != nil {
		return err
	}
	t.install(e, stored{rec, recRev}, stored{state, stateRev})
	return nil
}

// install takes what is stored for what is true.
func (t *turn) install(e *entry, rec, state stored) {
	e.stale, e.damage = false, ""
	e.recRev, e.stateRev = rec.rev, state.rev
	e.rec, e.slots, e.times = nil, slotState{}, times{}
	damage := func(err error) {
		e.damage = err.Error()
		t.log.WithField("err", err).WithField("schedule", e.id).
			Warn("a schedule cannot be read: it is not served")
	}
	r := new(ops.ScheduleRecord)
	if err := schemas.Unmarshal(rec.value, r); err != nil {
		damage(fmt.Errorf("its record cannot be read: %w", err))
		return
	}
	if r.Schedule.ID != e.id {
		damage(fmt.Errorf("its record is that of schedule %q", r.Schedule.ID))
		return
	}
	switch sch := &r.Schedule; {
	case sch.Action.Start == nil && sch.Action.Signal == nil:
		damage(errors.New("its action is missing"))
		return
	case (sch.Times == nil) == (sch.Window == nil):
		damage(errors.New("it has not either times or a window"))
		return
	}
	e.rec = r
	if r.Schedule.Times != nil {
		cal, err := calendar.Compile(r.Schedule.Times)
		if err != nil {
			damage(fmt.Errorf("its times cannot be read: %w", err))
			return
		}
		e.times = times{id: e.id, cal: cal}
	}
	st := ops.ScheduleState{}
	if state.rev > 0 {
		if err := schemas.Unmarshal(state.value, &st); err != nil {
			damage(fmt.Errorf("its state cannot be read: %w", err))
			return
		}
	}
	if st.Incarnation != r.Incarnation { // that of a schedule which was deleted
		st = ops.ScheduleState{
			V: schemas.Version, Incarnation: r.Incarnation, Remaining: r.Schedule.Remaining,
			Updates: r.Updates,
		}
	}
	if st.Updates != r.Updates {
		st.Remaining, st.Updates = r.Schedule.Remaining, r.Updates
	}
	e.slots = slotState{ScheduleState: st, overlap: r.Schedule.Overlap}
	if st.Starting != nil && t.loading() {
		t.mu.Lock()
		e.unsettled = true
		t.mu.Unlock()
	}
	t.watchAll(e)
}

// forget drops a schedule that was deleted. The caller is in it.
func (t *turn) forget(e *entry) {
	e.gone = true
	for _, stop := range e.watched {
		stop()
	}
	t.mu.Lock()
	if t.entries[e.id] == e {
		delete(t.entries, e.id)
	}
	t.mu.Unlock()
	t.isSettled(e)
}

// save writes a state. The caller is in the entry. After an error it is not known what stands
// there.
func (t *turn) save(e *entry, b *slotState) error {
	b.V = schemas.Version
	body, err := schemas.MarshalJSON(&b.ScheduleState)
	if err != nil {
		return err
	}
	rev, err := t.bucket.Put(t.ctx, stateKey(e.id), body, e.stateRev)
	if err != nil {
		e.stale = true
		return err
	}
	e.slots, e.stateRev = *b, rev
	return nil
}

// saveRecord is save for the record.
func (t *turn) saveRecord(e *entry, r *ops.ScheduleRecord) error {
	r.V = schemas.Version
	body, err := schemas.MarshalJSON(r)
	if err != nil {
		return err
	}
	rev, err := t.bucket.Put(t.ctx, Key(e.id), body, e.recRev)
	if err != nil {
		e.stale = true
		return err
	}
	e.rec, e.recRev = r, rev
	e.slots.overlap = r.Schedule.Overlap
	return nil
}

// fresh reloads a schedule if it must be. It reports false if the schedule is gone, or cannot be
// served.
func (t *turn) fresh(e *entry) (bool, error) {
	if e.stale && !e.gone {
		if err := t.reload(e); err != nil {
			return false, err
		}
	}
	return !e.gone && e.damage == "", nil
}

// changed tells whether somebody else has written a key.
func changed(err error) bool { return errors.Is(err, natsconn.ErrWrongSequence) }
