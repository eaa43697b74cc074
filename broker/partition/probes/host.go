package probes

import (
	"time"

	"github.com/droverhq/drover/broker/partition/ahead"
	"github.com/droverhq/drover/broker/partition/decisions"
	"github.com/droverhq/drover/broker/partition/dispatch"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/schemas"
)

// Host is the partition as this package needs it. Its methods are called on the loop.
type Host interface {
	Now() schemas.Timestamp
	// Leaving tells whether the owner is about to give the partition away; Sealed, whether it
	// changes nothing any more.
	Leaving() bool
	Sealed() bool
	// Replies is the prefix of the subjects on which the owner hears answers.
	Replies() string
}

// Probes look for workers that are gone.
type Probes struct {
	env.Owner
	host      Host
	decisions *decisions.Decisions
	dispatch  *dispatch.Dispatch
	ahead     *ahead.Ahead

	nextProbes time.Time // when it will be looked for silent workers; zero if it will not
}

// New returns those of a new owner.
func New(
	host Host, o env.Owner, d *decisions.Decisions, tasks *dispatch.Dispatch, a *ahead.Ahead,
) *Probes {
	return &Probes{
		host:      host,
		Owner:     o,
		decisions: d,
		dispatch:  tasks,
		ahead:     a,
	}
}
