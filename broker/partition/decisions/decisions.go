package decisions

import (
	"iter"
	"time"

	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/deciders"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/schemas"
)

// Host is the partition as this package needs it. Its methods are called on the loop.
type Host interface {
	Now() schemas.Timestamp
	CanWrite() bool
	// Leaving tells whether the owner is about to give the partition away. It is Settling until it
	// has nothing more to write, and Sealed when it changes nothing any more.
	Leaving() bool
	Settling() bool
	Sealed() bool
	// Fence is the sequence of the owner's fence record.
	Fence() uint64
	// Replies is the prefix of the subjects on which the owner hears answers.
	Replies() string

	// Runs are those in memory, InMemory one of them or nil. Get loads it if need be.
	Runs() iter.Seq[*actor.Run]
	InMemory(wid string) *actor.Run
	Get(wid string) *actor.Run
	// When calls f once the run is loaded; WhenKept, unless it is set aside because its history
	// cannot be followed.
	When(r *actor.Run, f func())
	WhenKept(r *actor.Run, f, aside func())
	// Mark has the run looked at after this batch of the loop.
	Mark(r *actor.Run)
	// Step lets a message happen to the run, Drain all that waits in its mailbox.
	Step(r *actor.Run, e *actor.Message)
	Drain(r *actor.Run)
	// Loaded goes on with a run whose events were read. Unread tells that they could not be, and
	// calls again in a while; IsIntact, whether they follow each other.
	Loaded(r *actor.Run)
	Unread(r *actor.Run, err error, again func())
	IsIntact(r *actor.Run) bool

	// JudgeReply lets the answer of a decider happen, which may have to be spilled first.
	JudgeReply(r *actor.Run, reply *schemas.DecisionReply, e *actor.Message, size int)
	// Bury makes a dead letter of a message.
	Bury(e *actor.Message, reason, details string)
	// ScheduleProbes looks for workers that are gone in a while.
	ScheduleProbes(in time.Duration)
}

// Decisions are the decision tasks of a partition and what is known of those who answer them.
type Decisions struct {
	env.Owner
	host Host

	Asks     map[uint64]*actor.Run // by the id of the ask
	Deciders deciders.Deciders
	nextAsk  uint64
	twice    map[uint64]struct{} // asks that were sent a second time
	sweeping bool
	scratch  scratch

	// What the former owner has told: see inherit.go.
	Inheriting    map[string]schemas.HandedDecision // by workflow id, until the run is loaded
	inherited     map[string]string                 // workflow ids by token; empty once answered
	formers       []string
	probingFormer bool
}

// New returns those of a new owner, which has asked nobody.
func New(host Host, o env.Owner) *Decisions {
	ds := &Decisions{
		host: host, Owner: o,
		Asks: make(map[uint64]*actor.Run),
	}
	ds.Deciders = deciders.New(deciderHost{ds})
	return ds
}
