package partition

import (
	"crypto/sha256"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/watermark"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/schemas"
)

// settle moves a run on: the next record goes out, or if there is none the decider is asked and the
// alarm seen to.
func (p *Partition) settle(r *run) {
	if r.loading || r.inflight != nil {
		return
	}
	if len(r.pending) > 0 {
		if !p.deferRecord(r) {
			p.publish(r)
		}
		return
	}
	if r.continues() {
		p.continueAs(r)
		return
	}
	if r.open() {
		p.consult(r)
	}
	if r.ask == nil && !r.loading {
		p.endRecall(r)
	}
	p.cover(r)
	if r.queued && (r.ask != nil || p.leaving != nil || !p.wantsNow(r)) {
		// an owner that leaves asks nobody
		r.queued = false
	}
	p.drain(r)
}

// publish sends the run's next record.
func (p *Partition) publish(r *run) {
	if !p.canWrite() {
		return
	}
	c := p.batch(r)
	record := &schemas.Record{
		WorkflowID: r.wid, Run: r.state.Run, First: c.first, Events: c.events,
		Inbox: c.positions[inboxLog], Signals: c.positions[signalLog],
		Fence: p.fence, Previous: r.end.Hash, SnapshotSequence: r.end.Snapshot,
	}
	if r.end.Since+len(c.events) >= p.b.Options.SnapshotEvents && len(r.pending) == 0 &&
		!r.state.Closed() {
		if b, err := r.state.Snapshot(); err == nil && len(b)+c.size < p.b.BodyLimit() {
			record.Snapshot, c.snapshot = b, true
		}
	}
	err := schemas.MarshalTo(record, func(body []byte) error {
		hash := sha256.Sum256(body)
		c.hash = hash[:]
		c.effects = p.intake.Effects.Enter(schemas.Position{Sequence: c.sequence})
		r.inflight = c
		p.commits++
		p.last = c.sequence
		p.quota.Bytes += int64(len(body)) // until it is looked at again
		p.history.Send(p.b.NS.History(p.n, r.wid, r.state.Run), p.headers(r, c), body,
			func(a natsconn.Ack) {
				p.loop.Post(func() { p.acked(r, c, a) })
			})
		return nil
	})
	if err != nil {
		p.fail("encode a record of %s: %w", r.wid, err)
	}
}

// batch takes what the run's next record holds off what is pending: as many groups as fit one
// message.
func (p *Partition) batch(r *run) *commit {
	c := &commit{first: r.pending[0].events[0].ID, sequence: p.last + 1}
	n := 0
	for n < len(r.pending) && (n == 0 || c.size+r.pending[n].size < p.b.BodyLimit()/2) {
		c.size += r.pending[n].size
		n++
	}
	for _, g := range r.pending[:n] {
		c.events = join(c.events, g.events)
		c.adopt(g)
		c.positions = g.positions
	}
	if n < len(r.pending) {
		r.pending = r.pending[n:]
		return c
	}
	p.groups.give(r.pending)
	r.pending = nil
	r.deferral.Written()
	return c
}

// headers carry the expectation that makes the write safe, and what lists and "nats stream view"
// show without decoding.
func (p *Partition) headers(r *run, c *commit) natsconn.Header {
	// Both, always. The stream's sequence alone does not fence a pipeline: a foreign record refuses
	// the one write whose number it took, and the next prediction is right again. The subject's
	// sequence makes a fork of the run impossible all the same; a late write of an old owner is
	// then at worst the run's true next record, and our next write is refused.
	clear(p.head)
	h := p.head
	natsconn.ExpectLastSeq(h, c.sequence-1)
	if r.unproved {
		natsconn.ExpectNone(h, p.b.NS.HistoryOfWorkflow(p.n, r.wid))
	} else {
		natsconn.ExpectLastSubjectSeq(h, r.end.Sequence)
	}
	runs.Describe(h, r.state, c.events)
	return h
}

// acked is the moment from which the record's events are facts.
func (p *Partition) acked(r *run, c *commit, a natsconn.Ack) {
	p.commits--
	if a.Err != nil {
		p.fail("commit of %s: %w", r.wid, a.Err)
		return
	}
	if a.Seq != c.sequence {
		p.fail("commit of %s: stored at %d, want %d: somebody else writes this stream",
			r.wid, a.Seq, c.sequence)
		return
	}
	r.inflight, r.unproved = nil, false
	r.committed = c.first + int64(len(c.events)) - 1
	r.end.Append(c.sequence, c.hash, p.b.Latest(), c.first, len(c.events), c.snapshot)
	p.reached(c.sequence, c.hash)
	p.noteClosing(r, c)
	p.noteRequests(r, c)
	r.state.Rebase(c.first, r.end.At)
	r.window = append(r.window, c.events...)
	r.window, r.windowFrom = runs.Trim(r.window, r.windowFrom, r.state.Decision.Previous)
	if r.state.Closed() && !r.continues() {
		r.window, r.windowFrom = nil, r.committed
	}
	p.settled(r, c.group, c.effects)
	if len(r.offers) > 0 && len(r.pending) == 0 {
		p.offersMet(r)
	}
	if len(r.copies) > 0 && len(r.pending) == 0 {
		p.dropCopies(r)
	}
	if len(r.pending) > 0 && p.wantsNow(r) {
		// let the decider be asked once these are committed, however fast messages come in
		r.queued = true
	}
	p.mark(r)
}

// settled performs what a group has caused: its events, if any, are in the history.
func (p *Partition) settled(r *run, g group, effects *completion) {
	for _, f := range g.answers {
		f()
	}
	for _, e := range g.effects {
		p.perform(r, e, effects)
	}
	watermark.Release(g.completions)
	if effects != nil {
		r.uncovered = append(r.uncovered, effects) // its first hold: until the run is covered
		p.notify(r)
	}
}
