package inspect

import (
	"context"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/schemas"
)

// Host is the partition as this package needs it. Its methods are called on the loop, except LoadRun
// and SingleReplica, which are called off it too.
type Host interface {
	// Get returns the run of a workflow id, loading it if need be; InMemory is nil if it is not there.
	Get(wid string) *actor.Run
	InMemory(wid string) *actor.Run
	// NothingKnown tells whether nothing of a workflow id is in memory.
	NothingKnown(wid string) bool
	// WhenSound calls f once the run is loaded; if its history is damaged, it answers with a refusal.
	WhenSound(r *actor.Run, reply func(any), f func())
	// Wait answers when ready first holds, or at the latest when the wait is over.
	Wait(
		r *actor.Run, wait schemas.Duration, ready func(*actor.Run) bool, answer func(*actor.Run),
	)
	// AfterPending calls f once all that is in memory of the run is in the history.
	AfterPending(r *actor.Run, f func())

	// LoadRun reads one run of a workflow id from its history; nil if there is none.
	LoadRun(ctx context.Context, wid, run string) (*runs.Run, error)
	// SingleReplica tells whether the history has one copy.
	SingleReplica() bool

	// Recovering tells whether effects of runs met at take-over are still to be repeated.
	Recovering() bool
	// InboxRead is the sequence of the last message that came in from the inbox.
	InboxRead() uint64
	// RequestIDsSince is that of [schemas.AuditRun].
	RequestIDsSince(wid string) schemas.Timestamp
	// InBacklog tells whether a workflow waits for a decider of its type to come.
	InBacklog(wid string) bool
	// WantedAlarm is the earliest instant at which somebody must look at the run.
	WantedAlarm(r *actor.Run) schemas.Timestamp
	// KeysBusy tells whether a lock or a state key is being changed for the run.
	KeysBusy(r *actor.Run) bool
	// DeadLetter is the clause about a report to the run that was made a dead letter; "" without one.
	DeadLetter(s *execution.State) string
	// ListRefusal is why a task list could not be made lately; nil if it could, or nobody has tried.
	ListRefusal(list string) error
}

// Inspector answers who asks about the runs of a partition.
type Inspector struct {
	env.Owner
	host Host
}

// New returns the inspector of a new owner.
func New(host Host, o env.Owner) *Inspector {
	return &Inspector{host: host, Owner: o}
}
