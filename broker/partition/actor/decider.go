package actor

import "github.com/droverhq/drover/broker/partition/deciders"

// Asking says where a run stands with its decider.
type Asking uint8

const (
	notAsked    Asking = iota
	unconfirmed        // a decision task was sent; whether anybody has it is not known
	confirmed          // somebody has it: DeciderStarted is a fact
	noPoller           // nobody listened: the run stands in the backlog
	askingStates
)

// askEvent is what changes an Asking.
type askEvent uint8

const (
	sent    askEvent = iota // a decision task
	resent                  // one whose DeciderStarted is a fact already
	taken                   // somebody has the task
	over                    // it is answered, refused or given up
	entered                 // the run has entered the backlog
	left                    // it has left the backlog
	askEvents
)

// askMoves is the transition table: the next state, by state and event. What does not fit a state
// leaves it as it is.
var askMoves = [askingStates][askEvents]Asking{
	//           sent         resent     taken      over      entered      left
	notAsked:    {unconfirmed, confirmed, notAsked, notAsked, noPoller, notAsked},
	unconfirmed: {unconfirmed, confirmed, confirmed, notAsked, unconfirmed, unconfirmed},
	confirmed:   {unconfirmed, confirmed, confirmed, notAsked, confirmed, confirmed},
	noPoller:    {unconfirmed, confirmed, noPoller, noPoller, noPoller, notAsked},
}

func (s *Asking) on(e askEvent) { *s = askMoves[*s][e] }

// None tells whether nobody is asked, and the run does not stand in the backlog either.
func (s Asking) None() bool { return s == notAsked }

// Open tells whether a decision task is on its way: Unconfirmed or Confirmed.
func (s Asking) Open() bool { return s == unconfirmed || s == confirmed }

// Unconfirmed tells whether a decision task was sent, and it is not known whether anybody has it.
func (s Asking) Unconfirmed() bool { return s == unconfirmed }

// Confirmed tells whether somebody has a decision task: its DeciderStarted is a fact.
func (s Asking) Confirmed() bool { return s == confirmed }

// NoPoller tells whether nobody listened when the decider was last asked. The backlog knows it too;
// it is here because every step looks at it.
func (s Asking) NoPoller() bool { return s == noPoller }

// ManyReasks is after how many questions in vain a run is asked about, and looked at, as seldom as
// any.
const ManyReasks = 8

// Decider is what is known of asking the run's decider.
type Decider struct {
	Asking   Asking
	Ask      *Ask              // while Asking.Open; else nil
	Deferral deciders.Deferral // of Pending: whether it waits for a decision
	// Queued: the mailbox waits so that the decider can be asked between two commits.
	Queued bool
	Sticky string // the worker that is asked first
	// Slept: the run has not been decided since it was loaded, and Sticky is what was remembered.
	Slept    bool
	Recalled *deciders.Queue // that it was called back from
	Reasks   int             // questions in vain since the last answer
	// BackingOff: a timer will settle the run when the decider's backoff is over. Until then the run
	// stays in memory. It is no state of Asking: a run that is paused and resumed meanwhile is asked
	// at once, and then both are true.
	BackingOff bool
}

// Sent notes that a decision task was sent. Started: its DeciderStarted is a fact already.
func (d *Decider) Sent(a *Ask, started bool) {
	d.Ask = a
	if started {
		d.Asking.on(resent)
	} else {
		d.Asking.on(sent)
	}
}

// Taken notes that somebody has the decision task.
func (d *Decider) Taken() { d.Asking.on(taken) }

// Over forgets the decision task, if there is one.
func (d *Decider) Over() {
	d.Ask = nil
	d.Asking.on(over)
}

// EnterBacklog notes that the run has entered the backlog.
func (d *Decider) EnterBacklog() { d.Asking.on(entered) }

// LeaveBacklog notes that the run has left the backlog.
func (d *Decider) LeaveBacklog() { d.Asking.on(left) }
