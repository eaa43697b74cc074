package partition

import (
	"iter"
	"slices"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/partition/deadlines"
	"github.com/droverhq/drover/broker/partition/deciders"
	"github.com/droverhq/drover/broker/partition/loop"
	"github.com/droverhq/drover/broker/partition/watermark"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/schemas"
)

// run is the actor of one workflow id: the state of its latest run and what waits for it.
//
// The state may be ahead of the history by inflight and pending; everything in them is committed in
// order, and nothing outside learns of it before.
type run struct {
	wid string
	// state is nil while loading, and when the workflow id has no run.
	state   *execution.State
	loading bool
	mailbox []*message
	then    []awaited // the loading
	// tries counts the loads that failed in a row. broken is why the history cannot be followed;
	// aside: nothing waits for it; overflown: of what waits some is not in the mailbox. look is
	// when it is read again, by again. See damage.go.
	tries     int
	broken    error
	aside     bool
	overflown bool
	look      *loop.Timer
	again     func()
	// queued: the mailbox waits so that the decider can be asked between two commits.
	queued bool

	pending  []group
	inflight *commit
	deferral deciders.Deferral // of pending: whether it waits for a decision

	// positions is how far the workflow id has taken messages of the two logs; a record tells its
	// own group's.
	positions [2]schemas.Position
	committed int64 // the last event in the history
	unproved  bool  // nobody has looked whether the id has runs: the first record says so
	loaded    int64 // the last event when the run was loaded
	end       runs.End

	// window holds the committed events with an id above windowFrom.
	window     []schemas.Event
	windowFrom int64

	ask    *ask
	sticky string
	marked bool // flush will look at it
	// of its tasks that are being stored, those that no completion waits for
	loose int32
	// and has not been decided since: sticky is what was remembered (sticky.go)
	slept bool
	// nobody listened when the decider was last asked; as the queues have it, and looked at in
	// every step
	noPoller  bool
	recalled  *deciders.Queue // that it was called back from
	reasks    int
	backingUp bool // a timer will settle the run when the decider's backoff is over

	alarm     alarm
	uncovered []*watermark.Completion // released once an alarm covers the run, or nothing is due

	offers  []*offer // of its tasks, without an outcome in the history
	copies  []taskCopy
	waiters []*waiter
	use     deadlines.Use  // its place among those in memory
	passive *deadlines.Run // while it is being loaded: what was kept of it
	ended   bool           // in the partition's list of closed runs

	// owing is how many messages have left no event, and something elsewhere that is not stored
	// yet. Until it is, the positions stay before them: see owe.
	owing int32
}

// idle tells whether the run can be forgotten: the history has everything.
func (r *run) idle() bool {
	if r.marked || r.loose > 0 || r.owing > 0 || r.loading || r.inflight != nil || r.ask != nil ||
		r.noPoller && !r.canPassivate() || r.backingUp || r.alarm.way != nil || r.alarm.queued ||
		len(r.mailbox)+len(r.pending)+len(r.uncovered)+len(r.waiters)+len(r.offers) > 0 {
		return false
	}
	if r.state == nil || r.state.Closed() {
		return !r.continues()
	}
	for _, a := range r.state.Activities {
		if a.LastBeat != 0 || len(a.BeatDetails) > 0 {
			// a heartbeat is nowhere but here; one may come before the start of its attempt
			return false
		}
	}
	return true
}

// dispatching tells whether a task is on its way that no completion waits for: nothing was written
// for it, since its time alone has come. The alarm that rang has done its part, so the next one
// must be near enough for another owner to find that the time has come.
func (r *run) dispatching() bool {
	return r.loose > 0 ||
		slices.ContainsFunc(r.offers, func(f *offer) bool { return f.completion == nil })
}

// waits tells whether messages must wait in the mailbox.
func (r *run) waits() bool {
	return r.loading || r.queued || r.ask != nil && !r.ask.confirmed || r.continues() ||
		r.owing > 0 && (r.open() || !r.isSettled())
}

// waitsWith is waits for one message. Where nothing but a start makes a record, the others need not
// wait for each other's letters.
func (r *run) waitsWith(e *message) bool {
	_, isStart := e.event.(execution.Start)
	return r.waits() || r.owing > 0 && isStart
}

// continues tells whether the run has ended in favour of one that has not begun: nothing may come
// between (P-4).
func (r *run) continues() bool {
	return r.state != nil && r.state.Status == schemas.StatusContinuedAsNew
}

func (r *run) live() bool { return r.state != nil && r.state.Start != nil }

func (r *run) open() bool { return r.live() && !r.state.Closed() }

// closed tells whether the workflow id has no run that could take anything: one that continues is
// about to.
func (r *run) closed() bool { return r.state.Closed() && !r.continues() }

// unseen are the events after the last completed decision, those included that wait to be written.
func (r *run) unseen() iter.Seq[schemas.Event] {
	return func(yield func(schemas.Event) bool) {
		for _, e := range r.window {
			if !yield(e) {
				return
			}
		}
		for i := range r.pending {
			for _, e := range r.pending[i].events {
				if !yield(e) {
					return
				}
			}
		}
	}
}

// isSettled tells whether the state is that of the history.
func (r *run) isSettled() bool { return !r.loading && r.inflight == nil && len(r.pending) == 0 }

// canPassivate tells whether enough is known of a run to park it.
func (r *run) canPassivate() bool { return r.open() && !r.alarm.strange && r.end.Sequence != 0 }

// firedOnly tells whether nothing but alarms has caused what waits to be written.
func (r *run) firedOnly() bool {
	for i := range r.pending {
		if !r.pending[i].alarmFired {
			return false
		}
	}
	return len(r.pending) > 0
}

// waiter is a request that is held back until something is committed.
type waiter struct {
	ready  func(r *run) bool
	answer func(r *run) // says how things stand
	end    *loop.Timer  // when it is answered in any case
}

// awaited waits for a run to be loaded.
type awaited struct {
	run func()
	// broken is called in place of run if the history cannot be followed; nil: nobody minds. Who is
	// patient waits for as long as a later version may have written it.
	broken  func()
	patient bool
}
