package repeats

import (
	"context"
	"errors"
	"fmt"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/partition/intake"
	"github.com/droverhq/drover/schemas"
)

// A request with an id that the state of its run does not know may still be a repeat: the
// index of its chain tells.

// Take looks whether a message repeats one that the state has forgotten. It tells whether the
// message is taken care of: it waits until that is known, or it is a repeat.
func (rp *Repeats) Take(r *actor.Run, e *actor.Message) bool {
	e.Kept = false
	if e.Looked || !r.Live() {
		return false
	}
	id := execution.RequestOf(e.Event)
	if id.ID == "" || !rp.mayForget(r, id) || r.State.Remembers(id) {
		return false
	}
	if m, ok := e.Event.(execution.Start); ok && execution.SameStart(r.State.Start, m.Request) {
		return false
	}
	if e.Log != intake.None && !r.Positions[e.Log].Before(e.Position) && !execution.Sent(e.Event) {
		return false // it was judged by a former owner, and nobody waits for that
	}
	if !rp.canLookFor(r, id, e.At) {
		r.Decider.Queued, e.Kept = true, true
		r.Mailbox = append([]*actor.Message{e}, r.Mailbox...)
		rp.host.Mark(r)
		return true
	}
	e.Looked = true
	if m := rp.indexOf(r, e.At); m != nil {
		if _, hit := m.place(rp.index.hash(id)); !hit {
			return false
		}
	}
	e.Kept = true
	rp.lookFor(r, id, e.At, func(known bool) {
		switch e.Kept = false; {
		case known:
			rp.host.Drop(r, e)
			e.Judged()
		case r.Continues():
			// the answer of its decider came meanwhile: this is for the next run, before what came
			// later (P-4)
			r.Mailbox = append([]*actor.Message{e}, r.Mailbox...)
		default:
			rp.host.Step(r, e)
		}
	})
	return true
}

// HadBefore tells whether a run that has closed, or its chain, has had a request.
func (rp *Repeats) HadBefore(r *actor.Run, id execution.RequestID, then func(known bool)) {
	if id.ID == "" || r.State.Remembers(id) || !rp.mayForget(r, id) {
		then(id.ID != "" && r.State.Remembers(id))
		return
	}
	rp.host.WhenSettled(r, func(r *actor.Run) {
		if !r.IsSettled() || !r.Live() {
			then(false)
			return
		}
		rp.lookFor(r, id, rp.Env.Now(), then)
	})
}

// mayForget tells whether the run may have forgotten an id: its state is full, or its first record
// had no room for all that the chain remembered, or there were more a while ago.
func (rp *Repeats) mayForget(r *actor.Run, id execution.RequestID) bool {
	s := r.State.Start
	return r.State.Forgets(id) || rp.index.find(r.WorkflowID, r.State.FirstRun()) != nil ||
		len(s.SignalIDs)+len(s.RequestIDs) > 0 && inheritedSize(s) > rp.Env.BodyLimit()/2
}

// inheritedSize is what there may be much of in the first record of a run, in bytes. What left no
// room for an id is most of it.
func inheritedSize(s *schemas.WorkflowStarted) int {
	return len(s.Input) + schemas.WordsSize(s.SignalIDs) + schemas.WordsSize(s.RequestIDs) +
		schemas.AttributesSize(s.Attributes) + schemas.WordsSize(s.TagList)
}

// canLookFor tells whether an id can be looked for now. What is not in the history yet must be in
// the state, which has the latest.
func (rp *Repeats) canLookFor(r *actor.Run, id execution.RequestID, at schemas.Timestamp) bool {
	return r.IsSettled() ||
		rp.indexOf(r, at) != nil && r.State.LastID-r.Committed <= int64(id.Remembered())
}

// indexOf returns the index of a run's chain, if there is one that tells of all that came within
// ten minutes before an instant.
func (rp *Repeats) indexOf(r *actor.Run, at schemas.Timestamp) *chain {
	m := rp.index.find(r.WorkflowID, r.State.FirstRun())
	if m != nil && !m.covers(at.Add(-RememberFor)) {
		rp.index.drop(r.WorkflowID)
		return nil
	}
	return m
}

// lookFor looks for an id in the history of a chain, and tells whether it is there. Until then the
// run takes nothing.
func (rp *Repeats) lookFor(
	r *actor.Run, id execution.RequestID, at schemas.Timestamp, then func(known bool),
) {
	r.Load.Begin()
	done := func(known bool) {
		r.Load.End()
		then(known)
		rp.host.Loaded(r)
	}
	again := func(err error) {
		rp.Log.WithError(err).WithField("workflow", r.WorkflowID).
			Warn("it cannot be looked up whether a request is a repeat; trying again")
		rp.Loop.After(env.LoadRetry, func() { rp.lookFor(r, id, at, then) })
	}
	m := rp.indexOf(r, at)
	if m == nil {
		rp.readBack(r, rp.backwardsFrom(r, at), func(err error) {
			if err != nil {
				again(err)
				return
			}
			rp.lookFor(r, id, at, then)
		})
		return
	}
	sequence, hit := m.place(rp.index.hash(id))
	if !hit {
		done(false)
		return
	}
	env.ReadAsync(rp.Env, rp.Loop,
		func(ctx context.Context) (bool, error) { return rp.noted(ctx, id, sequence) },
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
func (rp *Repeats) noted(
	ctx context.Context, id execution.RequestID, sequence uint64,
) (bool, error) {
	s, err := rp.Env.Reads.GetSeq(ctx, rp.Env.NS.StreamHistory(rp.Partition), sequence)
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
