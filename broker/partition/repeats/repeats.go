package repeats

import (
	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/internal/idset"
	"github.com/droverhq/drover/schemas"
)

// Host is the partition as this package needs it. Its methods are called on the loop.
type Host interface {
	// Mark has the run looked at once the batch of the loop is done.
	Mark(r *actor.Run)
	// Step lets a message happen to the run, which judges it.
	Step(r *actor.Run, e *actor.Message)
	// Drop answers a message that the chain of the run has had, and does nothing else.
	Drop(r *actor.Run, e *actor.Message)
	// Loaded has the run go on that has waited for a read.
	Loaded(r *actor.Run)
	// WhenSettled calls f once all of the run is in the history, or after a while.
	WhenSettled(r *actor.Run, f func(*actor.Run))
}

// Repeats is what one owner of a partition knows of requests and starts that it, or an owner before
// it, has had.
type Repeats struct {
	env.Owner
	host Host

	index  *index
	known  *idset.Set // workflow ids that the history may have records of
	listed bool       // none of them is missing
}

// New returns what a new owner knows: nothing yet.
func New(host Host, o env.Owner) *Repeats {
	return &Repeats{
		host: host, Owner: o,
		index: newIndex(MostIDs, BlockIDs), known: idset.New(mostKnown),
	}
}

// Note adds the ids in a record that is committed to the index of its chain, if there is one.
func (rp *Repeats) Note(r *actor.Run, c *actor.Commit) {
	m := rp.index.find(r.WorkflowID, r.State.FirstRun())
	if m == nil {
		return
	}
	at := rp.Env.Now()
	for _, e := range c.Events {
		for id := range execution.RequestsIn(e.Attributes) {
			rp.index.add(m, placedID{hash: rp.index.hash(id), sequence: c.Sequence}, at)
		}
	}
}

// Age forgets what is older than it needs to be remembered.
func (rp *Repeats) Age() {
	rp.index.age(rp.Env.Now().Add(-RememberFor - schemas.Duration(env.ClockSkew)))
}

// Since is since when the ids of a workflow are remembered, if there was no room for all of the
// last ten minutes; else 0.
func (rp *Repeats) Since(wid string) schemas.Timestamp { return rp.index.since(wid, rp.Env.Now()) }

// Len is how much the index of request ids has: ids, and some for each chain.
func (rp *Repeats) Len() int { return rp.index.n }
