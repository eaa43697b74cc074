package partition

import (
	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/runs"
)

// What wakes a decider is not written down at once: the decider is asked first, and what has
// happened and what it decides about it become one record (ADR 0020).
//
//   - Nothing is lost by it: whoever caused an event is told that it is stored only by the record,
//     or it stands in a log after the position that the record would move.
//   - A decision about events that never were cannot be committed: its answer dies with the owner
//     that asked. A worker that keeps a run in memory proves what it rests on with each task
//     (P-11).
//   - It is bounded: a decider that does not answer in time costs its type the favour for a while.

// deferSize bounds the events that wait, in bytes, and the window that their task carries.
const deferSize = 64 << 10

// deferRecord tells whether the run's next record waits for a decision, and asks for that.
func (p *Partition) deferRecord(r *actor.Run) bool {
	if r.Decider.Deferral.Waits() {
		if r.Decider.Ask != nil && p.leaving == nil {
			return true
		}
		r.Decider.Deferral.End()
		return false
	}
	if r.Decider.Deferral.HasWaited() || r.Decider.Ask != nil || r.Decider.NoPoller || !r.Open() ||
		p.leaving != nil {
		return false
	}
	if r.State.Base.CompletedID > r.Committed {
		return false // a decision is among what waits: it takes effect first
	}
	w, wanted := r.State.WantsDecider(p.b.Config())
	if !wanted || w.Started || w.NotBefore != 0 || r.Window.From > r.State.Decision.Previous ||
		!p.worthDeferring(r) {
		return false
	}
	p.deferForDecision(r, w)
	return r.Decider.Deferral.Waits()
}

func (p *Partition) deferForDecision(r *actor.Run, w execution.Wanted) {
	p.route(r, true)
	p.request(r, w)
	if r.Decider.Ask == nil {
		return
	}
	p.deciders.Deferrals.Begin(&r.Decider.Deferral, r.Decider.Ask.ID)
	p.confirm(r)
}

// worthDeferring tells whether a decision is worth waiting for.
func (p *Partition) worthDeferring(r *actor.Run) bool {
	size := len(r.State.Context) + runs.SizeOfAll(r.Window.Events)
	for i := range r.Pending {
		size += r.Pending[i].Size
	}
	if size > min(deferSize, p.b.BodyLimit()/4) {
		return false
	}
	return !p.deciders.Deferrals.Skip(r.State.Start.WorkflowType)
}

// DeferralOver publishes what has waited long enough.
func (h deciderHost) DeferralOver(ask uint64) {
	if r := h.p.asks[ask]; r != nil && r.Decider.Deferral.Waits() {
		h.p.noteLatency(r, false)
		r.Decider.Deferral.End()
		h.p.mark(r)
	}
}

// noteLatency notes whether a decider has answered while its record waited.
func (p *Partition) noteLatency(r *actor.Run, inTime bool) {
	p.deciders.Deferrals.Note(r.State.Start.WorkflowType, inTime)
}
