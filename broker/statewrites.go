package broker

import (
	"github.com/droverhq/drover/schemas"
)

// What an owner knows of the writes in the records of state keys: those of its partition's runs are settled once the histories
// have the answers, and it alone can tell. So it takes them out: with the next write of the key, or by one for that alone when
// they are many, or when the key is quiet. Thus a key that nobody writes any more names no writes, and one that was cleared goes.

// stateSettled notes that the history has the answer to a write.
func (p *partition) stateSettled(name, scope string, w schemas.StateWrite) {
	k := p.keys.states.of(name, scope)
	if k.settled == nil {
		k.settled = make(map[schemas.StateWrite]bool)
	}
	id := nameOf(&w)
	delete(k.judged, id)
	k.settled[id] = true
	switch {
	case p.leaving != nil:
	case len(k.settled) >= settledMany:
		p.tidyState(k)
	case k.quiet == nil:
		k.quiet = p.loop.after(settledQuiet, func() {
			if k.quiet = nil; len(k.settled) > 0 {
				p.tidyState(k)
			}
			p.keys.states.drop(k)
		})
	}
}

// tidyState takes settled writes out although nobody writes.
func (p *partition) tidyState(k *stateKey) {
	if p.leaving == nil {
		k.tidy = true
		p.keys.states.queue.Look(k.key)
	}
}

// forgetSettled drops what is known of writes that are not in the record any more.
func (k *stateKey) forgetSettled(r *schemas.StateRecord) {
	if len(k.settled) == 0 {
		return
	}
	left := make(map[schemas.StateWrite]bool)
	for i := range r.Unsettled {
		if id := nameOf(&r.Unsettled[i]); k.settled[id] {
			left[id] = true
		}
	}
	k.settled = left
}

// judgeWrites looks up the writes of this partition's runs that former owners have left in the record. It does so when it is time
// to take writes out, or if they are many, or if the key is cleared and could go.
func (p *partition) judgeWrites(k *stateKey, r *schemas.StateRecord) {
	look := k.tidied || len(r.Unsettled) >= settledMany || r.Cleared
	k.tidied = false
	if p.leaving != nil || !look {
		return
	}
	for i := range r.Unsettled {
		w := nameOf(&r.Unsettled[i])
		if p.b.partitionOf(w.WorkflowID) != p.n || k.settled[w] || k.judged[w] {
			continue
		}
		if k.judged == nil {
			k.judged = make(map[schemas.StateWrite]bool)
		}
		k.judged[w] = true
		p.judgeWrite(k, w)
	}
}

// judgeWrite compares a write with its run, once that is loaded and the history has all that is in memory of it.
func (p *partition) judgeWrite(k *stateKey, w schemas.StateWrite) {
	r := p.get(w.WorkflowID)
	p.whenKnown(r, func() {
		p.behind(r, func() {
			switch {
			case p.runs[w.WorkflowID] != r || r.loading:
				p.judgeWrite(k, w)
			case r.open() && r.state.Run == w.Run && r.state.Requests[w.EventID] != nil:
				delete(k.judged, w) // it has none yet, and is settled when it gets one
				p.keys.states.drop(k)
			case !r.isSettled():
				p.judgeWrite(k, w)
			default:
				p.stateSettled(k.name, k.scope, w)
			}
		})
	}, func() {}) // nobody knows whether it has an answer; the next owner looks again
}

// stating tells whether a state key is being used for a run.
func (p *partition) stating(r *run) bool {
	return r.live() && len(r.state.Requests) > 0
}
