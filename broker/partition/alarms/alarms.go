package alarms

import (
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/deadlines"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/schemas"
)

// Host is the partition as this package needs it. Its methods are called on the loop.
type Host interface {
	Now() schemas.Timestamp
	CanWrite() bool
	// Leaving tells whether the owner is about to give the partition away; Sealed, whether it
	// changes nothing any more.
	Leaving() bool
	Sealed() bool
	// Fence is the sequence of the owner's fence record.
	Fence() uint64
	// Outside sends what is no history.
	Outside() *natsconn.Outbox

	// Get returns the run of a workflow id, loading it if need be; When calls f once it is loaded.
	Get(wid string) *actor.Run
	When(r *actor.Run, f func())
	Deliver(r *actor.Run, e *actor.Message)
	// Mark has the run looked at after this batch of the loop.
	Mark(r *actor.Run)
	// Retire notes that the run is closed and nothing of it is armed.
	Retire(r *actor.Run)
	// BacklogApart is how far apart two questions for one run of the backlog are.
	BacklogApart() schemas.Duration

	// NothingKnown tells whether nothing of a workflow id is in memory; ReadResult answers how a run
	// has ended by its last record alone, and calls otherwise if it has not ended.
	NothingKnown(wid string) bool
	ReadResult(q *schemas.ExecutionRequest, reply func(any), otherwise func())
}

// Alarms are those of the runs of a partition.
type Alarms struct {
	env.Owner
	host      Host
	deadlines *deadlines.Deadlines[*actor.Run]
	sending   int // alarms that are on their way

	head   natsconn.Header // of the alarm that is being sent
	record schemas.Alarm   // and what it says
}

// New returns the alarms of a new owner, which has armed none.
func New(host Host, o env.Owner, d *deadlines.Deadlines[*actor.Run]) *Alarms {
	return &Alarms{
		host: host, Owner: o, deadlines: d,
		head: make(natsconn.Header, 1),
	}
}

// Busy tells whether an alarm is on its way.
func (a *Alarms) Busy() bool { return a.sending > 0 }
