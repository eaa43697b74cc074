package exchange

import (
	"context"

	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/dispatch"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/runs"
)

// Host is the partition as this package needs it. Its methods are called on the loop.
type Host interface {
	// Get returns the run of a workflow id, loading it if need be; WhenKept calls f once it is
	// loaded, and aside if its history cannot be followed.
	Get(wid string) *actor.Run
	WhenKept(r *actor.Run, f, aside func())
	// LoadRun reads a run that may have closed. It may be called from any goroutine.
	LoadRun(ctx context.Context, wid, run string) (*runs.Run, error)
	// Owe keeps the positions of the run before a message that leaves no event, and something
	// elsewhere that is not stored yet.
	Owe(r *actor.Run, e *actor.Message)
	// Bury makes a dead letter of a message.
	Bury(e *actor.Message, reason, details string)
}

// Exchange sends and answers the messages between workflows.
type Exchange struct {
	env.Owner
	host     Host
	dispatch *dispatch.Dispatch
	// repeatedStarts are the children, by their run, whose start this owner has repeated.
	repeatedStarts map[string]bool
}

// New returns that of a new owner.
func New(host Host, o env.Owner, d *dispatch.Dispatch) *Exchange {
	return &Exchange{
		host: host, Owner: o, dispatch: d,
		repeatedStarts: make(map[string]bool),
	}
}
