package large

import (
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/schemas"
)

// Host is the partition as this package needs it. Its methods are called on the loop.
type Host interface {
	Now() schemas.Timestamp
	// Sealed tells whether the owner changes nothing any more.
	Sealed() bool

	// Step applies a message to a run. Loaded goes on with what waits in the run's mailbox.
	Step(r *actor.Run, e *actor.Message)
	Loaded(r *actor.Run)
	// SettleStart answers a start that begins nothing.
	SettleStart(r *actor.Run, e *actor.Message, v actor.Verdict)
}

// Large looks after the payloads of a partition that are too large for a message.
type Large struct {
	env.Owner
	host    Host
	sending int // replies whose payloads are on their way to the store
}

// New returns the Large of a new owner, which stores nothing yet.
func New(host Host, o env.Owner) *Large {
	return &Large{host: host, Owner: o}
}

// Busy tells whether the payloads of a reply are on their way to the store.
func (l *Large) Busy() bool { return l.sending > 0 }
