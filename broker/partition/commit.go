package partition

import (
	"crypto/sha256"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/watermark"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/schemas"
)

// settle moves a run on: the next record goes out, or if there is none the decider is asked and the
// alarm seen to.
func (p *Partition) settle(r *actor.Run) {
	if r.Load.Waits() || r.Inflight != nil {
		return
	}
	if len(r.Pending) > 0 {
		if !p.decisions.DeferRecord(r) {
			p.publish(r)
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
	if r.Decider.Ask == nil && !r.Load.Waits() {
		p.decisions.EndRecall(r)
	}
	p.alarms.Cover(r)
	if r.Decider.Queued && (r.Decider.Ask != nil || p.leaving != nil || !p.decisions.WantsNow(r)) {
		// an owner that leaves asks nobody
		r.Decider.Queued = false
	}
	p.drain(r)
}

// publish sends the run's next record.
func (p *Partition) publish(r *actor.Run) {
	if !p.canWrite() {
		return
	}
	c := p.batch(r)
	record := &schemas.Record{
		WorkflowID: r.WorkflowID, Run: r.State.Run, First: c.First, Events: c.Events,
		Inbox: c.Positions[inboxLog], Signals: c.Positions[signalLog],
		Fence: p.handover.Fence, Previous: r.End.Hash, SnapshotSequence: r.End.Snapshot,
	}
	if r.End.Since+len(c.Events) >= p.b.Options.SnapshotEvents && len(r.Pending) == 0 &&
		!r.State.Closed() {
		if b, err := r.State.Snapshot(); err == nil && len(b)+c.Size < p.b.BodyLimit() {
			record.Snapshot, c.Snapshot = b, true
		}
	}
	err := schemas.MarshalTo(record, func(body []byte) error {
		hash := sha256.Sum256(body)
		c.Hash = hash[:]
		c.Effects = p.intake.Effects.Enter(schemas.Position{Sequence: c.Sequence})
		r.Inflight = c
		p.commits++
		p.last = c.Sequence
		p.quota.Bytes += int64(len(body)) // until it is looked at again
		p.history.Send(p.b.NS.History(p.n, r.WorkflowID, r.State.Run), p.headers(r, c), body,
			func(a natsconn.Ack) {
				p.loop.Post(func() { p.acked(r, c, a) })
			})
		return nil
	})
	if err != nil {
		p.fail("encode a record of %s: %w", r.WorkflowID, err)
	}
}

// batch takes what the run's next record holds off what is pending: as many groups as fit one
// message.
func (p *Partition) batch(r *actor.Run) *actor.Commit {
	c := &actor.Commit{First: r.Pending[0].Events[0].ID, Sequence: p.last + 1}
	n := 0
	for n < len(r.Pending) && (n == 0 || c.Size+r.Pending[n].Size < p.b.BodyLimit()/2) {
		c.Size += r.Pending[n].Size
		n++
	}
	for _, g := range r.Pending[:n] {
		c.Events = actor.Join(c.Events, g.Events)
		c.Adopt(g)
		c.Positions = g.Positions
	}
	if n < len(r.Pending) {
		r.Pending = r.Pending[n:]
		return c
	}
	p.groups.give(r.Pending)
	r.Pending = nil
	r.Decider.Deferral.Written()
	return c
}

// headers carry the expectation that makes the write safe, and what lists and "nats stream view"
// show without decoding.
func (p *Partition) headers(r *actor.Run, c *actor.Commit) natsconn.Header {
	// Both, always. The stream's sequence alone does not fence a pipeline: a foreign record refuses
	// the one write whose number it took, and the next prediction is right again. The subject's
	// sequence makes a fork of the run impossible all the same; a late write of an old owner is
	// then at worst the run's true next record, and our next write is refused.
	clear(p.head)
	h := p.head
	natsconn.ExpectLastSeq(h, c.Sequence-1)
	if r.Unproved {
		natsconn.ExpectNone(h, p.b.NS.HistoryOfWorkflow(p.n, r.WorkflowID))
	} else {
		natsconn.ExpectLastSubjectSeq(h, r.End.Sequence)
	}
	runs.Describe(h, r.State, c.Events)
	return h
}

// acked is the moment from which the record's events are facts.
func (p *Partition) acked(r *actor.Run, c *actor.Commit, a natsconn.Ack) {
	p.commits--
	if a.Err != nil {
		p.fail("commit of %s: %w", r.WorkflowID, a.Err)
		return
	}
	if a.Seq != c.Sequence {
		p.fail("commit of %s: stored at %d, want %d: somebody else writes this stream",
			r.WorkflowID, a.Seq, c.Sequence)
		return
	}
	r.Inflight, r.Unproved = nil, false
	r.Committed = c.First + int64(len(c.Events)) - 1
	r.End.Append(c.Sequence, c.Hash, p.b.Latest(), c.First, len(c.Events), c.Snapshot)
	p.handover.Reached(c.Sequence, c.Hash)
	p.noteClosing(r, c)
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
