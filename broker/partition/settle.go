package partition

import (
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/watermark"
	"github.com/droverhq/drover/broker/runs"
)

// settle moves a run on: the next record goes out, or if there is none the decider is asked and the
// alarm seen to.
func (p *Partition) settle(r *actor.Run) {
	if r.Load.Waits() || r.Inflight != nil {
		return
	}
	if len(r.Pending) > 0 {
		if !p.decisions.DeferRecord(r) {
			p.writer.Write(r)
		}
		return
	}
	if r.Continues() {
		p.continueAs(r)
		return
	}
	if r.Open() {
		p.decisions.Consult(r)
	}
	if !r.Decider.Asking.Open() && !r.Load.Waits() {
		p.decisions.EndRecall(r)
	}
	p.alarms.Cover(r)
	if r.Decider.Queued && (r.Decider.Asking.Open() || p.leaving != nil || !p.decisions.WantsNow(r)) {
		// an owner that leaves asks nobody
		r.Decider.Queued = false
	}
	p.drain(r)
}

// committed goes on with a run whose record is in the history.
func (p *Partition) committed(r *actor.Run, c *actor.Commit) {
	p.handover.Reached(c.Sequence, c.Hash)
	p.repeats.Note(r, c)
	r.State.Rebase(c.First, r.End.At)
	r.Window.Events = append(r.Window.Events, c.Events...)
	r.Window.Events, r.Window.From = runs.Trim(r.Window.Events, r.Window.From,
		r.State.Decision.Previous)
	if r.State.Closed() && !r.Continues() {
		r.Window.Events, r.Window.From = nil, r.Committed
	}
	p.settled(r, c.Group, c.Effects)
	if len(r.Tasks.Offers) > 0 && len(r.Pending) == 0 {
		p.dispatch.OffersMet(r)
	}
	if len(r.Tasks.Copies) > 0 && len(r.Pending) == 0 {
		p.dispatch.DropCopies(r)
	}
	if len(r.Pending) > 0 && p.decisions.WantsNow(r) {
		// let the decider be asked once these are committed, however fast messages come in
		r.Decider.Queued = true
	}
	p.mark(r)
}

// settled performs what a group has caused: its events, if any, are in the history.
func (p *Partition) settled(r *actor.Run, g actor.Group, effects *watermark.Completion) {
	for _, f := range g.Answers {
		f()
	}
	for _, e := range g.Effects {
		p.perform(r, e, effects)
	}
	watermark.Release(g.Completions)
	if effects != nil {
		r.Uncovered = append(r.Uncovered, effects) // its first hold: until the run is covered
		p.notify(r)
	}
}
