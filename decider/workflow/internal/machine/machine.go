package machine

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/droverhq/drover/decider/workflow/internal/coroutine"
	"github.com/droverhq/drover/decider/workflow/internal/match"
	"github.com/droverhq/drover/decider/workflow/internal/turns"
	"github.com/droverhq/drover/schemas"
)

// Code is the main function of a workflow. It runs in the main coroutine of its run. The decision
// that ends the run is made at the end of the turn: by then [Machine.Unreceived] has all signals
// that the decision has seen.
type Code func(m *Machine, started *schemas.WorkflowStarted) (end func() schemas.Decision)

// Machine runs the code of one run.
type Machine struct {
	code      Code
	execution schemas.Execution
	scheduler *coroutine.Dispatcher
	cutter    turns.Cutter
	root      *Scope

	turn     *turns.Turn // that is being played
	live     atomic.Bool // it has no block yet; steps look at it beside the coroutines
	left     []schemas.Event
	decided  int64 // DeciderStarted of the turn that was decided here last
	now      schemas.Timestamp
	asks     []match.Ask
	closing  func() schemas.Decision
	mismatch error

	names      map[string]int      // how often a name was given
	open       map[string]*Future  // by kind and name
	scheduled  map[int64]*Future   // by the event that scheduled it
	signals    map[string]*Channel // by name
	places     map[string]*place   // in locks
	changes    map[string]bool     // what Changed has said
	conditions conditions
	draws      map[string]uint64
	steps      steps
	suggested  bool // to continue as new
	inputs     bool // are compared
	start      *schemas.WorkflowStarted
}

// New returns the machine of a run without events.
func New(code Code, e schemas.Execution) *Machine {
	return &Machine{
		code: code, execution: e, scheduler: coroutine.New(), root: NewScope(nil),
		names: map[string]int{}, open: map[string]*Future{}, scheduled: map[int64]*Future{},
		signals: map[string]*Channel{}, places: map[string]*place{}, changes: map[string]bool{},
		draws: map[string]uint64{},
	}
}

// CompareInputs has what the code gives to activities and others compared, too.
func (m *Machine) CompareInputs() { m.inputs = true }

// MismatchError says that the code does not do what the history says.
type MismatchError struct {
	Run   string
	Event int64 // the DeciderCompleted of the decision
	Diff  error
}

// Error implements error.
func (e *MismatchError) Error() string {
	return fmt.Sprintf("the code does not do what the history of run %s says, in the decision at "+
		"event %d:\n%v\nIf the code was changed: guard what is new by workflow.Changed, or let a "+
		"worker with the old code answer. If not: it does not do the same each time, as with "+
		"time.Now, random numbers, or calls in a range over a map", e.Run, e.Event, e.Diff)
}

// Unwrap returns the difference.
func (e *MismatchError) Unwrap() error { return e.Diff }

// Add adds the next event of the history, and replays the decision that it completes, if it does.
// An error is a [*MismatchError], or what the code has done wrong.
func (m *Machine) Add(e schemas.Event) error {
	if t := m.cutter.Add(e); t != nil {
		return m.replay(t)
	}
	return nil
}

// Flush replays the last decision of a history that has no further one: of a closed run.
func (m *Machine) Flush() error {
	if t := m.cutter.Flush(); t != nil {
		return m.replay(t)
	}
	return nil
}

// Decide makes a decision. again says that there is to be another one directly after it, since
// steps are to be done.
func (m *Machine) Decide(l Live) (all []schemas.Decision, again bool, err error) {
	if err := m.Flush(); err != nil {
		return nil, false, err
	}
	if err := m.stepMistake(); err != nil {
		return nil, false, err
	}
	m.steps.live, m.steps.quick = l, 0
	err = m.play(m.cutter.Live(l.Started, l.At))
	if err == nil {
		again, err = m.waitForSteps()
	}
	if err == nil && l.Context.Err() != nil { // what a quick step has said is worth nothing
		err = context.Cause(l.Context)
	}
	if err != nil {
		return nil, false, err
	}
	m.decided = l.Started
	all = make([]schemas.Decision, 0, len(m.asks))
	for _, a := range m.asks {
		all = append(all, a.Decision)
	}
	return all, again, nil
}

// replay plays a turn that the history has, unless it is the one that was decided here.
func (m *Machine) replay(t *turns.Turn) error {
	if t.Started == m.decided {
		m.decided = 0
		return nil
	}
	if err := m.play(t); err != nil {
		return err
	}
	m.replaySteps()
	m.steps.spend(t.Took)
	diff := m.mismatch
	if diff == nil {
		diff = match.Compare(m.asks, t.Block)
	}
	if diff == nil && m.inputs {
		diff = match.CompareInputs(m.asks, t.Block)
	}
	if diff != nil {
		return &MismatchError{Run: m.execution.Run, Event: t.Completed, Diff: m.beside(diff)}
	}
	return nil
}

// play delivers the events of a turn.
func (m *Machine) play(t *turns.Turn) error {
	m.turn, m.asks, m.left = t, nil, t.Events
	m.live.Store(t.Completed == 0)
	m.seeSuggestion()
	for len(m.left) > 0 && m.closing == nil && m.mismatch == nil {
		e := m.left[0]
		m.left = m.left[1:]
		m.now = e.Time
		m.deliver(e)
		if err := m.runAll(); err != nil {
			return err
		}
	}
	if m.closing != nil {
		for _, e := range m.left {
			if a, ok := e.Attributes.(*schemas.Signal); ok {
				m.deliver(schemas.Event{ID: e.ID, Time: e.Time, Attributes: a})
			}
		}
		end := m.closing()
		m.leaveChildren()
		m.asks = append(keepable(m.asks), match.Ask{Decision: end})
	}
	if m.Live() && m.mismatch != nil {
		return m.mismatch
	}
	return nil
}

// runAll lets coroutines run until all of them wait, and no condition holds that one waits for.
func (m *Machine) runAll() error {
	for {
		if err := m.scheduler.Run(); m.mismatch == nil && err != nil {
			return err
		}
		if m.closing != nil || m.mismatch != nil {
			return nil
		}
		if again, err := m.lookAtConditions(); err != nil || !again {
			return err
		}
	}
}

// keepable are the asks that may stand beside the end of a run: the broker refuses a reply that
// begins something and ends the run.
func keepable(asks []match.Ask) (kept []match.Ask) {
	for _, a := range asks {
		switch a.Decision.Attributes.(type) {
		case *schemas.RecordMarker, *schemas.SetAttributes, *schemas.SignalExternal,
			*schemas.CancelExternal, *schemas.StartChild, *schemas.ReleaseLock:
			kept = append(kept, a)
		}
	}
	return kept
}

// Dropped are the activities and children that the code asks for in the turn that ends its run: they
// never begin, but for abandoned children. It is for the function that makes the decision to end it.
func (m *Machine) Dropped() (names []string) {
	for _, a := range m.asks {
		switch a := a.Decision.Attributes.(type) {
		case *schemas.ScheduleActivity:
			names = append(names, a.ActivityID)
		case *schemas.StartChild:
			if f := m.open[childKey(a.WorkflowID, a.Control)]; f != nil && !f.abandoned {
				names = append(names, f.Name)
			}
		}
	}
	return names
}

// begin starts the main coroutine.
func (m *Machine) begin(a *schemas.WorkflowStarted) {
	m.start = a
	m.scheduler.Go(coroutine.Main, func(*coroutine.Coroutine) {
		m.closing = m.code(m, a)
		m.scheduler.Stop()
	})
}

// Now is the time of the event that is being delivered.
func (m *Machine) Now() time.Time { return m.now.Time() }

// Live tells whether the decision of this turn is not in the history yet.
func (m *Machine) Live() bool { return m.live.Load() }

// Root is the scope of the run.
func (m *Machine) Root() *Scope { return m.root }

// Started is what the run was started with.
func (m *Machine) Started() *schemas.WorkflowStarted { return m.start }

// Close ends all coroutines and steps: deferred functions run, and can ask for nothing. The error
// tells of those that do not end.
func (m *Machine) Close() error {
	m.steps.stop()
	return errors.Join(append(m.scheduler.Evict(evictLimit), m.steps.wait())...)
}

// evictLimit is how long a coroutine has to end.
const evictLimit = time.Second

// Scheduler runs the coroutines.
func (m *Machine) Scheduler() *coroutine.Dispatcher { return m.scheduler }

// differ says that code and history differ, in the midst of a turn; the caller does not return.
func (m *Machine) differ(c *coroutine.Coroutine, format string, args ...any) {
	if m.mismatch == nil {
		m.mismatch = fmt.Errorf(format, args...)
	}
	m.scheduler.Stop()
	for {
		c.Park() // until the end of the run
	}
}

// Draw returns the path of the running coroutine, and a number that no other call of it gets: the
// same ones in a replay.
func (m *Machine) Draw() (path string, n uint64) {
	path = m.MustEnter("workflow.Rand").Name()
	m.draws[path]++
	return path, m.draws[path]
}
