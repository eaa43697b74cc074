package decisions

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

// DeferSize bounds the events that wait, in bytes, and the window that their task carries.
const DeferSize = 64 << 10

// DeferRecord tells whether the run's next record waits for a decision, and asks for that.
func (ds *Decisions) DeferRecord(r *actor.Run) bool {
	if r.Decider.Deferral.Waits() {
		if r.Decider.Asking.Open() && !ds.host.Leaving() {
			return true
		}
		r.Decider.Deferral.End()
		return false
	}
	if r.Decider.Deferral.HasWaited() || !r.Decider.Asking.None() || !r.Open() || ds.host.Leaving() {
		return false
	}
	if r.State.Base.CompletedID > r.Committed {
		return false // a decision is among what waits: it takes effect first
	}
	w, wanted := r.State.WantsDecider(ds.Env.Config())
	if !wanted || w.Started || w.NotBefore != 0 || r.Window.From > r.State.Decision.Previous ||
		!ds.worthDeferring(r) {
		return false
	}
	ds.deferForDecision(r, w)
	return r.Decider.Deferral.Waits()
}

func (ds *Decisions) deferForDecision(r *actor.Run, w execution.Wanted) {
	ds.route(r, true)
	ds.request(r, w)
	if !r.Decider.Asking.Open() {
		return
	}
	ds.Deciders.Deferrals.Begin(&r.Decider.Deferral, r.Decider.Ask.ID)
	ds.Confirm(r)
}

// worthDeferring tells whether a decision is worth waiting for.
func (ds *Decisions) worthDeferring(r *actor.Run) bool {
	size := len(r.State.Context) + runs.SizeOfAll(r.Window.Events)
	for i := range r.Pending {
		size += r.Pending[i].Size
	}
	if size > min(DeferSize, ds.Env.BodyLimit()/4) {
		return false
	}
	return !ds.Deciders.Deferrals.Skip(r.State.Start.WorkflowType)
}

// DeferralOver publishes what has waited long enough.
func (h deciderHost) DeferralOver(ask uint64) {
	if r := h.p.Asks[ask]; r != nil && r.Decider.Deferral.Waits() {
		h.p.noteLatency(r, false)
		r.Decider.Deferral.End()
		h.p.host.Mark(r)
	}
}

// noteLatency notes whether a decider has answered while its record waited.
func (ds *Decisions) noteLatency(r *actor.Run, inTime bool) {
	ds.Deciders.Deferrals.Note(r.State.Start.WorkflowType, inTime)
}
