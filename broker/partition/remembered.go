package partition

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/partition/intake"
	"github.com/droverhq/drover/schemas"
)

// MostRemembered and BlockIDs bound the index of request ids. Tests have less of both.
var MostRemembered, BlockIDs = intake.MostIDs, intake.BlockIDs

// A request with an id that the state of its run does not know may still be a repeat: see
// intake.Requests.

// remembered looks whether a message repeats one that the state has forgotten. It tells whether the
// message is taken care of: it waits until that is known, or it is a repeat.
func (p *Partition) remembered(r *run, e *message) bool {
	e.kept = false
	if e.looked || !r.live() {
		return false
	}
	id := execution.RequestOf(e.event)
	if id.ID == "" || !p.mayForget(r, id) || r.state.Remembers(id) {
		return false
	}
	if m, ok := e.event.(execution.Start); ok && sameStart(r.state.Start, m.Request) {
		return false
	}
	if e.log != noLog && !r.positions[e.log].Before(e.pos) && !execution.Sent(e.event) {
		return false // it was judged by a former owner, and nobody waits for that
	}
	if !p.canLookFor(r, id, e.at) {
		r.queued, e.kept = true, true
		r.mailbox = append([]*message{e}, r.mailbox...)
		p.mark(r)
		return true
	}
	e.looked = true
	if m := p.indexOf(r, e.at); m != nil {
		if _, hit := m.Place(p.intake.Requests.Hash(id)); !hit {
			return false
		}
	}
	e.kept = true
	p.lookFor(r, id, e.at, func(known bool) {
		switch e.kept = false; {
		case known:
			p.dropRepeat(r, e)
			e.judged()
		case r.continues():
			// the answer of its decider came meanwhile: this is for the next run, before what came
			// later (P-4)
			r.mailbox = append([]*message{e}, r.mailbox...)
		default:
			p.step(r, e)
		}
	})
	return true
}

// hadBefore tells whether a run that has closed, or its chain, has had a request.
func (p *Partition) hadBefore(r *run, id execution.RequestID, then func(known bool)) {
	if id.ID == "" || r.state.Remembers(id) || !p.mayForget(r, id) {
		then(id.ID != "" && r.state.Remembers(id))
		return
	}
	p.wait(r, repairWait, (*run).isSettled, func(r *run) {
		if !r.isSettled() || !r.live() {
			then(false)
			return
		}
		p.lookFor(r, id, p.now(), then)
	})
}

// mayForget tells whether the run may have forgotten an id: its state is full, or its first record
// had no room for all that the chain remembered, or there were more a while ago.
func (p *Partition) mayForget(r *run, id execution.RequestID) bool {
	s := r.state.Start
	return r.state.Forgets(id) || p.intake.Requests.Find(r.wid, r.state.FirstRun()) != nil ||
		len(s.SignalIDs)+len(s.RequestIDs) > 0 && inheritedSize(s) > p.b.BodyLimit()/2
}

// inheritedSize is what there may be much of in the first record of a run, in bytes. What left no
// room for an id is most of it.
func inheritedSize(s *schemas.WorkflowStarted) int {
	return len(s.Input) + schemas.WordsSize(s.SignalIDs) + schemas.WordsSize(s.RequestIDs) +
		schemas.AttributesSize(s.Attributes) + schemas.WordsSize(s.TagList)
}

// canLookFor tells whether an id can be looked for now. What is not in the history yet must be in
// the state, which has the latest.
func (p *Partition) canLookFor(r *run, id execution.RequestID, at schemas.Timestamp) bool {
	return r.isSettled() ||
		p.indexOf(r, at) != nil && r.state.LastID-r.committed <= int64(id.Remembered())
}

// indexOf returns the index of a run's chain, if there is one that tells of all that came within
// ten minutes before an instant.
func (p *Partition) indexOf(r *run, at schemas.Timestamp) *intake.Chain {
	m := p.intake.Requests.Find(r.wid, r.state.FirstRun())
	if m != nil && !m.Covers(at.Add(-intake.RememberFor)) {
		p.intake.Requests.Drop(r.wid)
		return nil
	}
	return m
}

// lookFor looks for an id in the history of a chain, and tells whether it is there. Until then the
// run takes nothing.
func (p *Partition) lookFor(
	r *run, id execution.RequestID, at schemas.Timestamp, then func(known bool),
) {
	r.loading = true
	done := func(known bool) {
		r.loading = false
		then(known)
		p.loadedNow(r)
	}
	again := func(err error) {
		p.log.WithError(err).
			WithField("workflow", r.wid).
			Warn("it cannot be looked up whether a request is a repeat; trying again")
		p.loop.After(loadRetry, func() { p.lookFor(r, id, at, then) })
	}
	m := p.indexOf(r, at)
	if m == nil {
		p.readBack(r, p.backwardsFrom(r, at), func(err error) {
			if err != nil {
				again(err)
				return
			}
			p.lookFor(r, id, at, then)
		})
		return
	}
	sequence, hit := m.Place(p.intake.Requests.Hash(id))
	if !hit {
		done(false)
		return
	}
	env.ReadAsync(p.b, p.loop,
		func(ctx context.Context) (bool, error) { return p.noted(ctx, id, sequence) },
		func(known bool, err error) {
			if err != nil {
				again(err)
				return
			}
			done(known)
		})
}

// noted tells whether a record has an event that notes an id. One that is purged is believed to
// have it.
func (p *Partition) noted(
	ctx context.Context, id execution.RequestID, sequence uint64,
) (bool, error) {
	s, err := p.b.Reads.GetSeq(ctx, p.b.NS.StreamHistory(p.n), sequence)
	switch {
	case errors.Is(err, natsconn.ErrNotFound):
		return true, nil
	case err != nil:
		return false, err
	}
	var record schemas.Record
	if err := schemas.Unmarshal(s.Data, &record); err != nil {
		return false, fmt.Errorf("record %d: %w", sequence, err)
	}
	for _, e := range record.Events {
		for got := range execution.RequestsIn(e.Attributes) {
			if got == id {
				return true, nil
			}
		}
	}
	return false, nil
}

// dropRepeat answers a message that the chain has had, and does nothing else.
func (p *Partition) dropRepeat(r *run, e *message) {
	if e.log != noLog {
		r.positions[e.log] = r.positions[e.log].Later(e.pos)
	}
	g := group{completions: []*completion{e.completion}}
	for _, f := range r.state.Confirm(e.event) {
		g.effects = append(g.effects, effect{Effect: f, cause: e})
	}
	switch q := requestIn(e.event); {
	case e.answer == nil:
	case q != nil:
		run := r.state.Run
		g.answers = append(g.answers,
			func() { p.b.Respond(q.ReplyTo, q.Content, &schemas.AckResponse{V: schemas.Version, Run: run}) })
	default: // a start with a signal
		e.verdict = verdict{run: r.state.Run}
		g.answers = append(g.answers, func() { e.answer(r, nil) })
	}
	p.queue(r, g)
}

// noteRequests adds the ids in a record that is committed to the index of its chain, if there is
// one.
func (p *Partition) noteRequests(r *run, c *commit) {
	m := p.intake.Requests.Find(r.wid, r.state.FirstRun())
	if m == nil {
		return
	}
	at := p.now()
	for _, e := range c.events {
		for id := range execution.RequestsIn(e.Attributes) {
			p.intake.Requests.Add(m,
				intake.PlacedID{Hash: p.intake.Requests.Hash(id), Sequence: c.sequence}, at)
		}
	}
}

// ageRepeats forgets, now and then, what is older than ten minutes. In the first ten minutes of a
// term nothing is: what waits in the logs may be as old as the time without an owner was long.
func (p *Partition) ageRepeats() {
	ticks := p.deadlines.Usage.Ticks()
	if ticks > p.inTicks(intake.RememberFor.Std()) && ticks%p.inTicks(time.Minute) == 0 {
		p.intake.Requests.Age(p.now().Add(-intake.RememberFor - schemas.Duration(clockSkew)))
	}
}
