package ahead

import (
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/deciders"
	"github.com/droverhq/drover/broker/partition/decisions"
	"github.com/droverhq/drover/broker/partition/dispatch"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/internal/adapt"
	"github.com/droverhq/drover/schemas"
)

// Host is the partition as this package needs it. Its methods are called on the loop.
type Host interface {
	Now() schemas.Timestamp
	// Leaving tells whether the owner is about to give the partition away.
	Leaving() bool
	// Fence is the sequence of the owner's fence record.
	Fence() uint64
	// Mark has the run looked at after this batch of the loop.
	Mark(r *actor.Run)
	// Step judges whether a message may happen to the run, and lets it; Happen lets it.
	Step(r *actor.Run, e *actor.Message)
	Happen(r *actor.Run, e *actor.Message)
}

// Ahead offers tasks to the workers that decide after them.
type Ahead struct {
	env.Owner
	host      Host
	decisions *decisions.Decisions
	dispatch  *dispatch.Dispatch

	vain      adapt.Backoff[aheadType] // decisions that came with outcomes
	aheadTask schemas.AheadTask        // of the task that is being sent
}

// New returns that of a new owner.
func New(host Host, o env.Owner, d *decisions.Decisions, tasks *dispatch.Dispatch) *Ahead {
	return &Ahead{
		host: host, Owner: o, decisions: d, dispatch: tasks,
		vain: adapt.Backoff[aheadType]{Most: deciders.MostPatience},
	}
}
