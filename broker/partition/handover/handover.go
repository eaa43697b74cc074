package handover

import (
	"context"

	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/alarms"
	"github.com/droverhq/drover/broker/partition/deadlines"
	"github.com/droverhq/drover/broker/partition/decisions"
	"github.com/droverhq/drover/broker/partition/dispatch"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/partition/intake"
	"github.com/droverhq/drover/broker/partition/watermark"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/schemas"
)

// Host is the partition as this package needs it. Its methods are called on the loop, or before it
// runs.
type Host interface {
	Now() schemas.Timestamp

	// Get returns the run of a workflow id, loading it if need be; InMemory is nil if it is not
	// there.
	Get(wid string) *actor.Run
	InMemory(wid string) *actor.Run
	// WhenKept calls f once the run is loaded, and aside if its history cannot be followed.
	WhenKept(r *actor.Run, f, aside func())
	// LoadRun reads a run that may have closed. It may be called from any goroutine.
	LoadRun(ctx context.Context, wid, run string) (*runs.Run, error)
	// Mark has the run looked at after this batch of the loop.
	Mark(r *actor.Run)
	// Perform performs an effect of the run; Exchange, one of a closed run that reaches others.
	Perform(r *actor.Run, e actor.Effect, t *watermark.Completion)
	Exchange(s *execution.State, e actor.Effect, t *watermark.Completion)
	// SayDamaged tells operators of a history that cannot be followed.
	SayDamaged(subj string, err error)
	// OpenLog begins to read a log after what a witness says is consumed.
	OpenLog(ctx context.Context, log int, stream, filter string, witness schemas.Position) error
}

// Parts are those parts of the partition that take part in it.
type Parts struct {
	Lease     *claims.Lease
	Intake    *intake.Intake[*actor.Message]
	Deadlines *deadlines.Deadlines[*actor.Run]
	Decisions *decisions.Decisions
	Dispatch  *dispatch.Dispatch
	Alarms    *alarms.Alarms
}

// Handover is what an owner takes from the one before, and leaves to the next.
type Handover struct {
	env.Owner
	host      Host
	lease     *claims.Lease
	intake    *intake.Intake[*actor.Message]
	deadlines *deadlines.Deadlines[*actor.Run]
	decisions *decisions.Decisions
	dispatch  *dispatch.Dispatch
	alarms    *alarms.Alarms

	Fence   uint64 // sequence of our fence record
	Before  uint64 // that of the former owner; 0 if there was none
	Orderly bool   // it has left in good order

	// Recovered are the workflow ids and their runs met at take-over, until the backlog is read.
	Recovered map[string]map[string]bool
	Recovery  *watermark.Completion
	// toRepeat is what of them is left then, unrepeated their ids in the order of their records, in
	// which they are read from one block of the history after the other; repeating is how many are
	// being loaded.
	toRepeat   map[string]map[string]bool
	unrepeated []string
	repeating  int

	Server  string // the NATS server at take-over
	written string // the one that the checkpoint may name
	// Replicated streams are the same whichever server of the cluster we have reached.
	Replicated bool

	Top           top // the highest record that is committed
	Checkpointed  schemas.Checkpoint
	CheckpointRev uint64
	Checkpointing bool
}

// New returns that of a new owner, which has taken nothing over yet.
func New(host Host, o env.Owner, parts Parts) *Handover {
	return &Handover{
		host: host, Owner: o, lease: parts.Lease,
		intake: parts.Intake, deadlines: parts.Deadlines, decisions: parts.Decisions,
		dispatch: parts.Dispatch, alarms: parts.Alarms, Recovered: make(map[string]map[string]bool),
	}
}
