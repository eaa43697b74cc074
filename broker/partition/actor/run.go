package actor

import (
	"iter"
	"slices"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/partition/deadlines"
	"github.com/droverhq/drover/broker/partition/loop"
	"github.com/droverhq/drover/broker/partition/watermark"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/schemas"
)

// Run is the actor of one workflow id: the state of its latest run and what waits for it.
//
// The state may be ahead of the history by Inflight and Pending; everything in them is committed in
// order, and nothing outside learns of it before.
type Run struct {
	WorkflowID string
	// State is nil while loading, and when the workflow id has no run.
	State   *execution.State
	Load    Load
	Damage  Damage
	Mailbox []*Message
	Then    []Awaited // the loading
	Waiters []*Waiter

	Pending  []Group
	Inflight *Commit

	// Positions is how far the workflow id has taken messages of the two logs; a record tells its
	// own group's.
	Positions [2]schemas.Position
	Committed int64 // the last event in the history
	Unproved  bool  // nobody has looked whether the id has runs: the first record says so
	Loaded    int64 // the last event when the run was loaded
	End       runs.End
	Window    Window

	Decider   Decider
	Tasks     Tasks
	Alarm     Alarm
	Uncovered []*watermark.Completion // released once an alarm covers the run, or nothing is due

	Marked  bool           // it is looked at after this batch of the loop
	Use     deadlines.Use  // its place among those in memory
	Passive *deadlines.Run // while it is being loaded: what was kept of it
	Ended   bool           // in the partition's list of closed runs

	// Owing is how many messages have left no event, and something elsewhere that is not stored
	// yet. Until it is, the positions stay before them.
	Owing int32
}

// Window holds the committed events with an id above From, which the next decision task may need.
type Window struct {
	Events []schemas.Event
	From   int64
}

// Tasks are those of the run that are on their way to workers.
type Tasks struct {
	Offers []*Offer // without an outcome in the history
	Copies []TaskCopy
	Loose  int32 // tasks that are being stored and that no completion waits for
}

// Idle tells whether the run can be forgotten: the history has everything.
func (r *Run) Idle() bool {
	if r.Marked || r.Tasks.Loose > 0 || r.Owing > 0 || r.Load.Waits() || r.Inflight != nil ||
		r.Decider.Asking.Open() || r.Decider.Asking.NoPoller() && !r.CanPassivate() ||
		r.Decider.BackingOff ||
		r.Alarm.Way != nil || r.Alarm.Queued ||
		len(r.Mailbox)+len(r.Pending)+len(r.Uncovered)+len(r.Waiters)+len(r.Tasks.Offers) > 0 {
		return false
	}
	if r.State == nil || r.State.Closed() {
		return !r.Continues()
	}
	for _, a := range r.State.Activities {
		if a.LastBeat != 0 || len(a.BeatDetails) > 0 {
			// a heartbeat is nowhere but here; one may come before the start of its attempt
			return false
		}
	}
	return true
}

// Dispatching tells whether a task is on its way that no completion waits for: nothing was written
// for it, since its time alone has come. The alarm that fired has done its part, so the next one
// must be near enough for another owner to find that the time has come.
func (r *Run) Dispatching() bool {
	return r.Tasks.Loose > 0 ||
		slices.ContainsFunc(r.Tasks.Offers, func(f *Offer) bool { return f.Completion == nil })
}

// waits tells whether messages must wait in the mailbox.
func (r *Run) waits() bool {
	return r.Load.Waits() || r.Decider.Queued || r.Decider.Asking.Unconfirmed() ||
		r.Continues() || r.Owing > 0 && (r.Open() || !r.IsSettled())
}

// WaitsWith tells whether a message must wait in the mailbox. Where nothing but a start makes a
// record, the others need not wait for each other's letters.
func (r *Run) WaitsWith(e *Message) bool {
	_, isStart := e.Event.(execution.Start)
	return r.waits() || r.Owing > 0 && isStart
}

// Continues tells whether the run has ended in favour of one that has not begun: nothing may come
// between (P-4).
func (r *Run) Continues() bool {
	return r.State != nil && r.State.Status == schemas.StatusContinuedAsNew
}

// Live tells whether the workflow id has a run, open or closed.
func (r *Run) Live() bool { return r.State != nil && r.State.Start != nil }

// Open tells whether it has an open run.
func (r *Run) Open() bool { return r.Live() && !r.State.Closed() }

// Closed tells whether the workflow id has no run that could take anything: one that continues is
// about to.
func (r *Run) Closed() bool { return r.State.Closed() && !r.Continues() }

// Unseen are the events after the last completed decision, those included that wait to be written.
func (r *Run) Unseen() iter.Seq[schemas.Event] {
	return func(yield func(schemas.Event) bool) {
		for _, e := range r.Window.Events {
			if !yield(e) {
				return
			}
		}
		for i := range r.Pending {
			for _, e := range r.Pending[i].Events {
				if !yield(e) {
					return
				}
			}
		}
	}
}

// IsSettled tells whether the state is that of the history.
func (r *Run) IsSettled() bool {
	return !r.Load.Waits() && r.Inflight == nil && len(r.Pending) == 0
}

// CanPassivate tells whether enough is known of a run to passivate it.
func (r *Run) CanPassivate() bool { return r.Open() && !r.Alarm.Strange && r.End.Sequence != 0 }

// Waiter is a request that is held back until something is committed.
type Waiter struct {
	Ready  func(r *Run) bool
	Answer func(r *Run) // says how things stand
	End    *loop.Timer  // when it is answered in any case
}

// Awaited waits for a run to be loaded.
type Awaited struct {
	Run func()
	// Broken is called in place of run if the history cannot be followed; nil: nobody minds. Who is
	// patient waits for as long as a later version may have written it.
	Broken  func()
	Patient bool
}
