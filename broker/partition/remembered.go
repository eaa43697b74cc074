package partition

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/actor"
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
func (p *Partition) remembered(r *actor.Run, e *actor.Message) bool {
	e.Kept = false
	if e.Looked || !r.Live() {
		return false
	}
	id := execution.RequestOf(e.Event)
	if id.ID == "" || !p.mayForget(r, id) || r.State.Remembers(id) {
		return false
	}
	if m, ok := e.Event.(execution.Start); ok && sameStart(r.State.Start, m.Request) {
		return false
	}
	if e.Log != noLog && !r.Positions[e.Log].Before(e.Position) && !execution.Sent(e.Event) {
		return false // it was judged by a former owner, and nobody waits for that
	}
	if !p.canLookFor(r, id, e.At) {
		r.Decider.Queued, e.Kept = true, true
		r.Mailbox = append([]*actor.Message{e}, r.Mailbox...)
		p.mark(r)
		return true
	}
	e.Looked = true
	if m := p.indexOf(r, e.At); m != nil {
		if _, hit := m.Place(p.intake.Requests.Hash(id)); !hit {
			return false
		}
	}
	e.Kept = true
	p.lookFor(r, id, e.At, func(known bool) {
		switch e.Kept = false; {
		case known:
			p.dropRepeat(r, e)
			e.Judged()
		case r.Continues():
			// the answer of its decider came meanwhile: this is for the next run, before what came
			// later (P-4)
			r.Mailbox = append([]*actor.Message{e}, r.Mailbox...)
		default:
			p.step(r, e)
		}
	})
	return true
}

// hadBefore tells whether a run that has closed, or its chain, has had a request.
func (p *Partition) hadBefore(r *actor.Run, id execution.RequestID, then func(known bool)) {
	if id.ID == "" || r.State.Remembers(id) || !p.mayForget(r, id) {
		then(id.ID != "" && r.State.Remembers(id))
		return
	}
	p.wait(r, repairWait, (*actor.Run).IsSettled, func(r *actor.Run) {
		if !r.IsSettled() || !r.Live() {
			then(false)
			return
		}
		p.lookFor(r, id, p.now(), then)
	})
}

// mayForget tells whether the run may have forgotten an id: its state is full, or its first record
// had no room for all that the chain remembered, or there were more a while ago.
func (p *Partition) mayForget(r *actor.Run, id execution.RequestID) bool {
	s := r.State.Start
	return r.State.Forgets(id) || p.intake.Requests.Find(r.WorkflowID, r.State.FirstRun()) != nil ||
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
func (p *Partition) canLookFor(r *actor.Run, id execution.RequestID, at schemas.Timestamp) bool {
	return r.IsSettled() ||
		p.indexOf(r, at) != nil && r.State.LastID-r.Committed <= int64(id.Remembered())
}

// indexOf returns the index of a run's chain, if there is one that tells of all that came within
// ten minutes before an instant.
func (p *Partition) indexOf(r *actor.Run, at schemas.Timestamp) *intake.Chain {
	m := p.intake.Requests.Find(r.WorkflowID, r.State.FirstRun())
	if m != nil && !m.Covers(at.Add(-intake.RememberFor)) {
		p.intake.Requests.Drop(r.WorkflowID)
		return nil
	}
	return m
}

// lookFor looks for an id in the history of a chain, and tells whether it is there. Until then the
// run takes nothing.
func (p *Partition) lookFor(
	r *actor.Run, id execution.RequestID, at schemas.Timestamp, then func(known bool),
) {
	r.Loading = true
	done := func(known bool) {
		r.Loading = false
		then(known)
		p.loadedNow(r)
	}
	again := func(err error) {
		p.log.WithError(err).
			WithField("workflow", r.WorkflowID).
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
func (p *Partition) dropRepeat(r *actor.Run, e *actor.Message) {
	if e.Log != noLog {
		r.Positions[e.Log] = r.Positions[e.Log].Later(e.Position)
	}
	g := actor.Group{Completions: []*completion{e.Completion}}
	for _, f := range r.State.Confirm(e.Event) {
		g.Effects = append(g.Effects, actor.Effect{Effect: f, Cause: e})
	}
	switch q := requestIn(e.Event); {
	case e.Answer == nil:
	case q != nil:
		run := r.State.Run
		g.Answers = append(
			g.Answers,
			func() { p.b.Respond(q.ReplyTo, q.Content, &schemas.AckResponse{V: schemas.Version, Run: run}) },
		)
	default: // a start with a signal
		e.Verdict = actor.Verdict{Run: r.State.Run}
		g.Answers = append(g.Answers, func() { e.Answer(r, nil) })
	}
	p.queue(r, g)
}

// noteRequests adds the ids in a record that is committed to the index of its chain, if there is
// one.
func (p *Partition) noteRequests(r *actor.Run, c *actor.Commit) {
	m := p.intake.Requests.Find(r.WorkflowID, r.State.FirstRun())
	if m == nil {
		return
	}
	at := p.now()
	for _, e := range c.Events {
		for id := range execution.RequestsIn(e.Attributes) {
			p.intake.Requests.Add(m,
				intake.PlacedID{Hash: p.intake.Requests.Hash(id), Sequence: c.Sequence}, at)
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
