package partition

import (
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/schemas"
)

// The owner takes out of the records of state keys the writes that are settled: see [keyed.Writes].

// stateSettled notes that the history has the answer to a write.
func (p *Partition) stateSettled(name, scope string, w schemas.StateWrite) {
	k := p.keys.states.of(name, scope)
	many := k.writes.Settled(w)
	switch {
	case p.leaving != nil:
	case many:
		p.tidyState(k)
	case k.quiet == nil:
		k.quiet = p.loop.After(settledQuiet, func() {
			if k.quiet = nil; k.writes.Left() {
				p.tidyState(k)
			}
			p.keys.states.drop(k)
		})
	}
}

// tidyState takes settled writes out although nobody writes.
func (p *Partition) tidyState(k *stateKey) {
	if p.leaving == nil {
		k.writes.Tidy()
		p.keys.states.queue.Look(k.key)
	}
}

// judgeWrites looks up the writes of this partition's runs that former owners have left in the
// record.
func (p *Partition) judgeWrites(k *stateKey, r *schemas.StateRecord) {
	if p.leaving != nil {
		return
	}
	for _, w := range k.writes.Unknown(r, keyHost{p}.Ours) {
		p.judgeWrite(k, w)
	}
}

// judgeWrite compares a write with its run, once that is loaded and the history has all that is in
// memory of it.
func (p *Partition) judgeWrite(k *stateKey, w schemas.StateWrite) {
	r := p.get(w.WorkflowID)
	p.whenKnown(r, func() {
		p.afterPending(r, func() {
			switch {
			case p.runs[w.WorkflowID] != r || r.Loading:
				p.judgeWrite(k, w)
			case r.Open() && r.State.Run == w.Run && r.State.Requests[w.EventID] != nil:
				k.writes.Unanswered(w)
				p.keys.states.drop(k)
			case !r.IsSettled():
				p.judgeWrite(k, w)
			default:
				p.stateSettled(k.name, k.scope, w)
			}
		})
	}, func() {}) // nobody knows whether it has an answer; the next owner looks again
}

// stating tells whether a state key is being used for a run.
func (p *Partition) stating(r *actor.Run) bool {
	return r.Live() && len(r.State.Requests) > 0
}
