package broker

import (
	"context"
	"fmt"
	"time"

	"github.com/droverhq/drover/broker/post"
	"github.com/droverhq/drover/schemas"
)

// Runs that are purged from disk may be kept softly, in the memory of the namespace's master (ADR 0027). Who asks for a run that
// the history does not have is answered from there, and told so. Nothing else looks there: to a start, a signal and a replay such
// a run is as one that never was.

const (
	// softTimeout is how long the master has for all it says of a run. If it says nothing, the run is not there: soft is a favour.
	softTimeout = time.Second
	// purgedFrom is how long a run must have been closed before it can be purged. What is in memory of an older one may outlive it.
	purgedFrom = 10 * time.Second
)

// softRun is a run as the master remembers it.
type softRun struct {
	*loaded
	events []schemas.Event
}

// maybePurged tells whether a closed run in memory must be looked for in the history before it is told of.
func (p *partition) maybePurged(r *run) bool {
	return r.state.Close != nil && p.ended(r) && p.now().Sub(r.state.Close.Time) >= purgedFrom
}

// soft asks the master for a run, without one for the latest that it remembers; nil if there is none.
func (b *Broker) soft(ctx context.Context, partition int, wid, run string) (*softRun, error) {
	ctx, cancel := context.WithTimeout(ctx, softTimeout)
	defer cancel()
	s := &softRun{loaded: &loaded{}}
	for q := (schemas.SoftRequest{V: schemas.Version, WorkflowID: wid, Run: run}); ; {
		body, err := schemas.Marshal(&q)
		if err != nil {
			return nil, err
		}
		m, err := b.reads.Request(ctx, b.ns.API("soft"), post.Header{schemas.ContentTypeHeader: {schemas.ContentTypeMsgpack}}, body)
		if err != nil {
			b.o.Logger.WithError(err).WithField("workflow", wid).Debug("no master tells whether a run is kept softly")
			return nil, nil //nolint:nilerr // then it is not
		}
		var a schemas.SoftResponse
		if err := schemas.Unmarshal(m.Data, &a); err != nil {
			return nil, fmt.Errorf("what the master remembers of workflow %q: %w", wid, err)
		}
		if a.Error != nil || len(a.Records) == 0 {
			return nil, nil
		}
		if err := s.addAll(b.ns.History(partition, wid, a.Run), a.Records); err != nil {
			return nil, err
		}
		q.Run, q.After = a.Run, a.Records[len(a.Records)-1].Sequence
		if !a.More {
			return s, nil
		}
	}
}

func (s *softRun) addAll(subj string, records []schemas.SoftRecord) error {
	for _, m := range records {
		stored := post.Stored{Subject: subj, Seq: m.Sequence, Time: m.Time.Time(), Header: post.Header{schemas.StatusHeader: {"soft"}}, Data: m.Data}
		if err := s.add(&stored); err != nil {
			return err
		}
		var r schemas.Record
		if err := schemas.Unmarshal(m.Data, &r); err != nil {
			return err
		}
		s.events = append(s.events, r.Events...)
	}
	return nil
}

// serveSoft answers describe, result and why for a run that is not in the history.
func (p *partition) serveSoft(verb string, q *schemas.ExecutionRequest, reply func(any)) {
	readAsync(p.b, p.loop, func(ctx context.Context) (*softRun, error) {
		return p.b.soft(ctx, p.n, q.WorkflowID, q.Run)
	}, func(s *softRun, err error) {
		switch {
		case err != nil:
			reply(&schemas.AckResponse{V: schemas.Version, Error: unavailable(err)})
		case s == nil:
			reply(&schemas.AckResponse{V: schemas.Version, Error: notFound(q.WorkflowID, q.Run)})
		case verb == "result":
			a := resultOf(s.state)
			a.Soft = true
			reply(a)
		case verb == "why":
			because := closedBecause(s.state) + "; it is purged from disk, and the master remembers it"
			reply(&schemas.WhyResponse{V: schemas.Version, Run: s.state.Run, Status: s.state.Status, Because: because})
		default:
			d := describeState(s.state, p.b.config())
			d.Partition, d.Owner, d.Soft = p.n, p.b.o.Node, true
			reply(d)
		}
	})
}

// softPage is a page of the history of a run that is not on disk; without a run of the latest that the master remembers.
func (b *Broker) softPage(ctx context.Context, partition int, q *schemas.HistoryRequest, run string, limit int) *schemas.HistoryResponse {
	s, err := b.soft(ctx, partition, q.WorkflowID, run)
	switch {
	case err != nil:
		return &schemas.HistoryResponse{V: schemas.Version, Run: run, Error: unavailable(err)}
	case s == nil:
		return &schemas.HistoryResponse{V: schemas.Version, Run: run, Error: notFound(q.WorkflowID, run)}
	}
	a := &schemas.HistoryResponse{V: schemas.Version, Run: s.state.Run, Events: []schemas.Event{}, Soft: true}
	room := b.recordLimit / 2
	for _, e := range s.events {
		if e.ID <= q.After {
			continue
		}
		if room -= sizeOf(e); len(a.Events) == limit || room < 0 && len(a.Events) > 0 {
			a.More = true
			break
		}
		a.Events = append(a.Events, e)
	}
	a.Closed = !a.More
	return a
}
