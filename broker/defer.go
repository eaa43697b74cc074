package broker

import (
	"time"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/internal/adapt"
)

// What wakes a decider is not written down at once: the decider is asked first, and what has happened and what it decides
// about it become one record (ADR 0020).
//
//   - Nothing is lost by it: whoever caused an event is told that it is stored only by the record, or it stands in a log
//     behind the position that the record would move.
//   - A decision about events that never were cannot be committed: its answer dies with the owner that asked. A worker that
//     keeps a run in memory proves what it rests on with each task (P-11).
//   - It is bounded: a decider that does not answer within deferFor costs its type the favour for a while.
//   - Where nothing but alarms has woken the run nobody waits for the record, so it may wait for alarmDefer: when many wake at once
//     their decisions come late, and two records for each of them would make all of them later. Types pay for that apart.

const (
	// deferFor is how long a record waits for a decision.
	deferFor = 20 * time.Millisecond
	// alarmDefer is how long one waits that holds nothing but what alarms have caused.
	alarmDefer = 200 * time.Millisecond
	// deferSize bounds the events that wait, in bytes, and the window that their task carries.
	deferSize = 64 << 10
	// mostPatience caps how many decisions of a slow type are asked behind their record before the next one is tried.
	mostPatience = 64
)

// deferredRun is a run whose record waits.
type deferredRun struct {
	run   *run
	id    uint64 // of the ask
	until time.Time
}

// held runs stand in two lists, each in the order of its ends.
const (
	forOthers = iota // for deferFor
	forAlarms        // for alarmDefer
	deferLists
)

// newLate is what is known of types whose deciders were late, for each of the two lists.
func newLate() [deferLists]adapt.Backoff[string] {
	return [deferLists]adapt.Backoff[string]{{Most: mostPatience}, {Most: mostPatience}}
}

// deferRecord tells whether the run's next record waits for a decision, and asks for that.
func (p *partition) deferRecord(r *run) bool {
	if r.deferring {
		if r.ask != nil && p.leaving == nil {
			if r.deferList == forAlarms && !r.firedOnly() { // somebody waits by now
				p.deferUntil(r, forOthers)
			}
			return true
		}
		r.deferring, r.deferred = false, true
		return false
	}
	if r.deferred || r.ask != nil || r.noPoller || !r.open() || p.leaving != nil {
		return false
	}
	if r.state.Base.CompletedID > r.committed {
		return false // a decision is among what waits: it takes effect first
	}
	w, wanted := r.state.WantsDecider(p.b.config())
	if !wanted || w.Started || w.NotBefore != 0 || r.windowFrom > r.state.Decision.Previous || !p.worthDeferring(r) {
		return false
	}
	p.deferForDecision(r, w)
	return r.deferring
}

func (p *partition) deferForDecision(r *run, w execution.Wanted) {
	p.route(r, true)
	p.request(r, w)
	if r.ask == nil {
		return
	}
	r.deferring = true
	p.deferUntil(r, r.listOf())
	p.confirm(r)
}

// deferUntil puts a run into a list. From one into the other it goes before its end, and the first of the two counts.
func (p *partition) deferUntil(r *run, list int) {
	wait := deferFor
	if list == forAlarms {
		wait = alarmDefer
	}
	r.deferList = list
	p.deferrals[list] = append(p.deferrals[list], deferredRun{run: r, id: r.ask.id, until: time.Now().Add(wait)})
	if len(p.deferrals[list]) == 1 {
		p.loop.after(wait, func() { p.letGo(list) })
	}
}

// firedOnly tells whether nothing but alarms has caused what waits to be written.
func (r *run) firedOnly() bool {
	for i := range r.pending {
		if !r.pending[i].alarmFired {
			return false
		}
	}
	return len(r.pending) > 0
}

func (r *run) listOf() int {
	if r.firedOnly() {
		return forAlarms
	}
	return forOthers
}

// worthDeferring tells whether a decision is worth waiting for.
func (p *partition) worthDeferring(r *run) bool {
	size := len(r.state.Context) + runs.SizeOfAll(r.window)
	for i := range r.pending {
		size += r.pending[i].size
	}
	if size > min(deferSize, p.b.bodyLimit()/4) {
		return false
	}
	return !p.lateTypes[r.listOf()].Skip(r.state.Start.WorkflowType)
}

// letGo publishes what has waited long enough.
func (p *partition) letGo(list int) {
	now, n, all := time.Now(), 0, p.deferrals[list]
	for ; n < len(all) && !all[n].until.After(now); n++ {
		h := all[n]
		all[n] = deferredRun{}
		if r := h.run; r.deferring && r.ask != nil && r.ask.id == h.id {
			p.noteLatency(r, false)
			r.deferring, r.deferred = false, true
			p.mark(r)
		}
	}
	if p.deferrals[list] = all[n:]; len(all) == n {
		p.deferrals[list] = nil
		return
	}
	p.loop.after(all[n].until.Sub(now), func() { p.letGo(list) })
}

// noteLatency notes whether a decider has answered while its record waited.
func (p *partition) noteLatency(r *run, inTime bool) {
	p.lateTypes[r.deferList].Note(r.state.Start.WorkflowType, inTime)
}
