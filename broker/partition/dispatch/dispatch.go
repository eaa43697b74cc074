package dispatch

import (
	"time"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/partition/watermark"
	"github.com/droverhq/drover/schemas"
)

// Host is the partition as this package needs it. Its methods are called on the loop.
type Host interface {
	Now() schemas.Timestamp
	CanWrite() bool
	// Leaving tells whether the owner is about to give the partition away; Valid, whether its claim
	// is still good.
	Leaving() bool
	Valid() bool
	// Fence is the sequence of the owner's fence record.
	Fence() uint64
	// Outside publishes what is no history.
	Outside() *natsconn.Outbox
	// Replies is the prefix of the subjects at which the owner is answered.
	Replies() string

	// Get returns the run of a workflow id, loading it if need be.
	Get(wid string) *actor.Run
	Deliver(r *actor.Run, e *actor.Message)
	// Mark has the run looked at after this batch of the loop.
	Mark(r *actor.Run)
	// ScheduleProbes has silent workers looked for after this time, or sooner.
	ScheduleProbes(in time.Duration)

	// OfferAhead offers a task to the worker that keeps the run, which may decide after it as well,
	// and tells whether it has; t is held as by an offer to whoever is idle. RefusedAhead is told
	// what became of such an offer that nobody has taken; StoredAfter, that the message of an
	// activity is stored.
	OfferAhead(r *actor.Run, a *execution.Activity, t *watermark.Completion) bool
	RefusedAhead(f *actor.Offer, nobody bool)
	StoredAfter(r *actor.Run, a *execution.Activity)
}

// Dispatch gives out the tasks of the activities of a partition, and sends what is no history.
type Dispatch struct {
	env.Owner
	host    Host
	sending int // messages that are on their way
	offers  offers

	missingStreams map[string][]func()     // what waits for a list that is being made
	refusedLists   map[string]*refusedList // those that could not be made
	checkedLists   map[string]bool         // those that were looked at when tasks were repeated
}

// New returns the dispatch of a new owner, which has sent nothing yet.
func New(host Host, o env.Owner) *Dispatch {
	return &Dispatch{
		host: host, Owner: o,
		offers:         offers{policy: newOfferPolicy()},
		missingStreams: make(map[string][]func()), refusedLists: make(map[string]*refusedList),
	}
}

// Busy tells whether a message is on its way.
func (d *Dispatch) Busy() bool { return d.sending > 0 }
