package locking

import (
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/schemas"
)

// The owner takes out of the records of state keys the writes that are settled: see [keyed.Writes].

// stateSettled notes that the history has the answer to a write.
func (ks *Keys) stateSettled(name, scope string, w schemas.StateWrite) {
	k := ks.states.of(name, scope)
	many := k.writes.Settled(w)
	switch {
	case ks.host.Leaving():
	case many:
		ks.tidyState(k)
	case k.quiet == nil:
		k.quiet = ks.Loop.After(settledQuiet, func() {
			if k.quiet = nil; k.writes.Left() {
				ks.tidyState(k)
			}
			ks.states.drop(k)
		})
	}
}

// tidyState takes settled writes out although nobody writes.
func (ks *Keys) tidyState(k *stateKey) {
	if !ks.host.Leaving() {
		k.writes.Tidy()
		ks.states.queue.Look(k.key)
	}
}

// judgeWrites looks up the writes of this partition's runs that former owners have left in the
// record.
func (ks *Keys) judgeWrites(k *stateKey, r *schemas.StateRecord) {
	if ks.host.Leaving() {
		return
	}
	for _, w := range k.writes.Unknown(r, keyHost{ks}.Ours) {
		ks.judgeWrite(k, w)
	}
}

// judgeWrite compares a write with its run, once that is loaded and the history has all that is in
// memory of it.
func (ks *Keys) judgeWrite(k *stateKey, w schemas.StateWrite) {
	r := ks.host.Get(w.WorkflowID)
	ks.host.WhenKnown(r, func() {
		ks.host.AfterPending(r, func() {
			switch {
			case ks.host.InMemory(w.WorkflowID) != r || r.Load.Waits():
				ks.judgeWrite(k, w)
			case r.Open() && r.State.Run == w.Run && r.State.Requests[w.EventID] != nil:
				k.writes.Unanswered(w)
				ks.states.drop(k)
			case !r.IsSettled():
				ks.judgeWrite(k, w)
			default:
				ks.stateSettled(k.name, k.scope, w)
			}
		})
	}, func() {}) // nobody knows whether it has an answer; the next owner looks again
}

// Stating tells whether a state key is being used for a run.
func (ks *Keys) Stating(r *actor.Run) bool {
	return r.Live() && len(r.State.Requests) > 0
}
