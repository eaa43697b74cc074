package broker

import (
	"time"

	"github.com/droverhq/drover/broker/execution"
)

// What wakes a decider is not written down at once: the decider is asked first, and what has happened and what it decides
// about it become one record (ADR 0020).
//
//   - Nothing is lost by it: whoever caused an event is told that it is stored only by the record, or it stands in a log
//     behind the position that the record would move.
//   - A decision about events that never were cannot be committed: its answer dies with the owner that asked. A worker that
//     keeps a run in memory proves what it rests on with each task (P-11).
//   - It is bounded: a decider that does not answer within holdFor costs its type the favour for a while.

const (
	// holdFor is how long a record waits for a decision.
	holdFor = 20 * time.Millisecond
	// holdSize bounds the events that wait, in bytes, and the window that their task carries.
	holdSize = 64 << 10
	// mostPatience caps how many decisions of a slow type are asked behind their record before the next one is tried.
	mostPatience = 64
)

// held is a run whose record waits.
type held struct {
	run   *run
	id    uint64 // of the ask
	until time.Time
}

// pace is what is known of the deciders of a type.
type pace struct {
	late int // answers in a row that came too late
	skip int // decisions that are not waited for
}

// holdBack tells whether the run's next record waits for a decision, and asks for that.
func (p *partition) holdBack(r *run) bool {
	if r.holding {
		if r.ask != nil && p.leaving == nil {
			return true
		}
		r.holding, r.released = false, true
		return false
	}
	if r.released || r.ask != nil || r.forlorn || !r.open() || p.leaving != nil {
		return false
	}
	if r.state.Base.CompletedID > r.committed {
		return false // a decision is among what waits: it takes effect first
	}
	w, wanted := r.state.WantsDecider(p.b.config())
	if !wanted || w.Started || w.NotBefore != 0 || r.windowFrom > r.state.Decision.Previous || !p.soon(r) {
		return false
	}
	p.holdFor(r, w)
	return r.holding
}

func (p *partition) holdFor(r *run, w execution.Wanted) {
	p.request(r, w)
	if r.ask == nil {
		return
	}
	r.holding = true
	p.holds = append(p.holds, held{run: r, id: r.ask.id, until: time.Now().Add(holdFor)})
	if len(p.holds) == 1 {
		p.loop.after(holdFor, p.letGo)
	}
	p.confirm(r)
}

// soon tells whether a decision is worth waiting for.
func (p *partition) soon(r *run) bool {
	size := len(r.state.Context)
	for i := range r.pending {
		size += r.pending[i].size
	}
	for _, e := range r.window {
		size += sizeOf(e)
	}
	if size > min(holdSize, p.b.recordLimit/4) {
		return false
	}
	pace := p.paces[r.state.Start.WorkflowType]
	if pace == nil || pace.skip == 0 {
		return true
	}
	pace.skip--
	return false
}

// letGo publishes what has waited long enough.
func (p *partition) letGo() {
	now, n := time.Now(), 0
	for ; n < len(p.holds) && !p.holds[n].until.After(now); n++ {
		h := p.holds[n]
		p.holds[n] = held{}
		if r := h.run; r.holding && r.ask != nil && r.ask.id == h.id {
			p.paced(r, false)
			r.holding, r.released = false, true
			p.mark(r)
		}
	}
	if p.holds = p.holds[n:]; len(p.holds) == 0 {
		p.holds = nil
		return
	}
	p.loop.after(p.holds[0].until.Sub(now), p.letGo)
}

// paced notes whether a decider has answered while its record waited.
func (p *partition) paced(r *run, inTime bool) {
	typ := r.state.Start.WorkflowType
	s := p.paces[typ]
	switch {
	case inTime && s != nil:
		delete(p.paces, typ)
	case !inTime && s == nil:
		p.paces[typ] = &pace{late: 1, skip: 1}
	case !inTime:
		s.late++
		s.skip = min(1<<min(s.late, 10), mostPatience)
	}
}
