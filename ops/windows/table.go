package windows

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/internal/bucketkey"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
	"github.com/droverhq/drover/timers/calendar"
)

// held is the key of a period of a schedule, with its revision.
type held struct {
	rec          *ops.PeriodRecord
	rev          uint64
	first, tried time.Time // when this node first and last tried to start its run again
	// settled is when this node saw the mark, by the local clock.
	settled time.Time
}

// table is what this node knows of the bucket: schedules with a window, and the keys of their
// periods.
type table struct {
	log logrus.FieldLogger
	// changed has a word when there is something new.
	changed chan struct{}

	mu      sync.Mutex
	entries map[string]*entry // by the escaped id
	// of those, and of all while not all has come: a state may come before its schedule
	states  map[string]*ops.ScheduleState
	periods map[string]*held // by key
	whole   bool             // whether all that was there has come
}

func newTable(log logrus.FieldLogger) *table {
	return &table{
		log: log, changed: make(chan struct{}, 1), entries: map[string]*entry{},
		states: map[string]*ops.ScheduleState{}, periods: map[string]*held{},
	}
}

// begin forgets everything; a bucket that was made anew has other keys.
func (t *table) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.entries)
	clear(t.states)
	clear(t.periods)
	t.whole = false
}

// end says that all that was there has come.
func (t *table) end() {
	t.mu.Lock()
	t.whole = true
	maps.DeleteFunc(t.states,
		func(id string, _ *ops.ScheduleState) bool { return t.entries[id] == nil })
	t.mu.Unlock()
	t.wake()
}

func (t *table) wake() {
	select {
	case t.changed <- struct{}{}:
	default:
	}
}

// take puts what the watch brings into the table. What is damaged is told to the log and passed
// over.
func (t *table) take(key string, value []byte, rev uint64, deleted bool) {
	news, err := t.put(key, value, rev, deleted)
	if err != nil {
		t.log.WithField("key", key).WithField("err", err).
			Warn("a key of the bucket of schedules cannot be read; its window does not fire")
	}
	if news {
		t.wake()
	}
}

// put tells whether a window is concerned: most of what comes is of schedules without one.
func (t *table) put(key string, value []byte, rev uint64, deleted bool) (news bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if isWindowKey(key) {
		return true, t.takePeriod(key, value, rev, deleted)
	}
	id, ok := strings.CutPrefix(key, schedulePrefix)
	if !ok {
		return false, nil
	}
	if id, ok := strings.CutSuffix(id, stateSuffix); ok {
		if t.whole && t.entries[id] == nil {
			return false, nil
		}
		return true, t.takeState(id, value, deleted)
	}
	was := t.entries[id]
	err = t.takeSchedule(id, value, deleted)
	if t.whole && t.entries[id] == nil {
		delete(t.states, id)
	}
	return was != nil || t.entries[id] != nil, err
}

func (t *table) takePeriod(key string, value []byte, rev uint64, deleted bool) error {
	was := t.periods[key]
	if was != nil && rev <= was.rev {
		return nil // this node wrote something newer itself
	}
	delete(t.periods, key)
	if deleted {
		return nil
	}
	rec := &ops.PeriodRecord{}
	if err := schemas.Unmarshal(value, rec); err != nil {
		return err
	}
	h := &held{rec: rec, rev: rev}
	if rec.Started {
		h.settled = time.Now()
	}
	t.periods[key] = h
	return nil
}

func (t *table) takeState(id string, value []byte, deleted bool) error {
	delete(t.states, id)
	var err error
	if !deleted {
		state := &ops.ScheduleState{}
		if err = schemas.Unmarshal(value, state); err == nil {
			t.states[id] = state
		}
	}
	if e := t.entries[id]; e != nil {
		e.count(t.states[id])
	}
	return err
}

func (t *table) takeSchedule(id string, value []byte, deleted bool) error {
	was := t.entries[id]
	delete(t.entries, id)
	if deleted {
		return nil
	}
	rec := &ops.ScheduleRecord{}
	if err := schemas.Unmarshal(value, rec); err != nil {
		return err
	}
	if rec.Schedule.Window == nil {
		return nil
	}
	win, err := calendar.CompileWindow(rec.Schedule.Window)
	if err != nil {
		return err
	}
	e := &entry{rec: rec, win: win}
	if was != nil && was.rec.Incarnation == rec.Incarnation {
		e.seen = was.seen
		if was.rec.Since == rec.Since { // its times are the same
			e.due = was.due
		}
	}
	e.count(t.states[id])
	t.entries[id] = e
	return nil
}

// count takes over what the state of the schedule counts.
func (e *entry) count(s *ops.ScheduleState) {
	e.lastSlot, e.left = time.Time{}, -1
	left := e.rec.Schedule.Remaining
	if s != nil && s.Incarnation == e.rec.Incarnation {
		if s.LastSlot != 0 {
			e.lastSlot = s.LastSlot.Time()
		}
		if s.Updates == e.rec.Updates {
			left = s.Remaining
		}
	}
	if left != nil {
		e.left = max(*left, 0)
	}
}

// task is a step of a schedule, or a period that is to be mended.
type task struct {
	step
	rec  *ops.ScheduleRecord // nil if there is none any more
	mend *held
	key  string
	// paused tells whether the schedule is, at the time of the plan.
	paused bool
}

// plan says what is to be done at a time, and when to ask again at the latest; the zero time is
// never. before is when this node began to live: it sees no earlier trigger.
func (t *table) plan(now, before time.Time) (tasks []task, wake time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.whole {
		return nil, time.Time{}
	}
	soonest := func(at time.Time) {
		if !at.IsZero() && (wake.IsZero() || at.Before(wake)) {
			wake = at
		}
	}
	for _, key := range slices.Sorted(maps.Keys(t.periods)) {
		h := t.periods[key]
		if h.rec.Started {
			continue
		}
		if due := later(h.rec.At.Time(), h.tried).Add(unmarked); now.Before(due) {
			soonest(due)
			continue
		}
		h.tried = now
		if h.first.IsZero() {
			h.first = now
		}
		soonest(now.Add(unmarked))
		mend := task{mend: h, key: key}
		if e := t.entryOf(key); e != nil {
			mend.rec = e.rec
		}
		tasks = append(tasks, mend)
	}
	for _, id := range slices.Sorted(maps.Keys(t.entries)) {
		e := t.entries[id]
		if e.seen.IsZero() {
			e.seen = before
		}
		steps, at := e.plan(now, func(period string) *ops.PeriodRecord {
			if h := t.periods[windowKey(e.rec.Schedule.ID, e.rec.Incarnation, period)]; h != nil {
				return h.rec
			}
			return nil
		})
		soonest(at)
		for _, s := range steps {
			tasks = append(tasks, task{step: s, rec: e.rec, paused: e.paused(now)})
		}
	}
	return tasks, wake
}

// entryOf finds the schedule of the key of a period; nil if there is none any more. The caller
// holds mu.
func (t *table) entryOf(key string) *entry {
	token := strings.Split(key, ".") // period, schedule, incarnation, period
	e := t.entries[token[1]]
	if e == nil || bucketkey.Escape(e.rec.Incarnation) != token[2] {
		return nil
	}
	return e
}

// wrote notes what this node wrote itself, before the watch brings it.
func (t *table) wrote(key string, rec *ops.PeriodRecord, rev uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := &held{rec: rec, rev: rev}
	if was := t.periods[key]; was != nil && was.rev >= rev {
		return
	}
	if rec.Started {
		h.settled = time.Now()
	}
	t.periods[key] = h
}

// state is what a schedule has done, as far as it is known; nil if it is not.
func (t *table) state(rec *ops.ScheduleRecord) *ops.ScheduleState {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.states[bucketkey.Escape(rec.Schedule.ID)]; s != nil &&
		s.Incarnation == rec.Incarnation {
		return s
	}
	return nil
}

// counted notes a state that this node wrote itself.
func (t *table) counted(id string, s *ops.ScheduleState) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.states[id] = s
	if e := t.entries[id]; e != nil {
		e.count(s)
	}
}

// holds tells whether a start may be repeated: a key has no mark, or has got it not long ago.
func (t *table) holds(for_ time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.whole {
		return true
	}
	for _, h := range t.periods {
		if !h.rec.Started || time.Since(h.settled) < for_ {
			return true
		}
	}
	return false
}
