package broker

import (
	"context"
	"fmt"
	"time"

	"github.com/droverhq/drover/broker/explain"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/runs"
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

// maybePurged tells whether a closed run in memory must be looked for in the history before it is told of.
func (p *partition) maybePurged(r *run) bool {
	return r.state.Close != nil && p.ended(r) && p.now().Sub(r.state.Close.Time) >= purgedFrom
}

// soft asks the master for a run, without one for the latest that it remembers, and folds it; nil if there is none.
func (b *Broker) soft(ctx context.Context, partition int, wid, run string) (*loaded, error) {
	l := &loaded{}
	found, err := b.softRecords(ctx, schemas.SoftRequest{WorkflowID: wid, Run: run}, func(run string, m *schemas.SoftRecord) (bool, error) {
		return true, l.add(&natsconn.Stored{
			Subject: b.ns.History(partition, wid, run), Seq: m.Sequence, Time: m.Time.Time(), Header: natsconn.Header{schemas.StatusHeader: {"soft"}}, Data: m.Data,
		})
	})
	if err != nil || !found {
		return nil, err
	}
	return l, nil
}

// softRecords yields the records of a run that the master remembers, page by page, until take wants no more. found: that is all that was
// wanted. Else nobody knows such a run, or it has gone meanwhile.
func (b *Broker) softRecords(ctx context.Context, q schemas.SoftRequest, take func(run string, m *schemas.SoftRecord) (more bool, err error)) (found bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, softTimeout)
	defer cancel()
	for q.V = schemas.Version; ; {
		body, err := schemas.Marshal(&q)
		if err != nil {
			return false, err
		}
		m, err := b.reads.Request(ctx, b.ns.API("soft"), natsconn.Header{schemas.ContentTypeHeader: {schemas.ContentTypeMsgpack}}, body)
		if err != nil {
			b.o.Logger.WithError(err).WithField("workflow", q.WorkflowID).Debug("no master tells whether a run is kept softly")
			return false, nil //nolint:nilerr // then it is not
		}
		var a schemas.SoftResponse
		if err := schemas.Unmarshal(m.Data, &a); err != nil {
			return false, fmt.Errorf("what the master remembers of workflow %q: %w", q.WorkflowID, err)
		}
		if a.Error != nil || len(a.Records) == 0 {
			return false, nil
		}
		for i := range a.Records {
			if more, err := take(a.Run, &a.Records[i]); err != nil || !more {
				return err == nil, err
			}
		}
		if q.Run, q.After = a.Run, a.Records[len(a.Records)-1].Sequence; !a.More {
			return true, nil
		}
	}
}

// serveSoft answers describe, result and why for a run that is not in the history.
func (p *partition) serveSoft(verb string, q *schemas.ExecutionRequest, reply func(any)) {
	readAsync(p.b, p.loop, func(ctx context.Context) (*loaded, error) {
		return p.b.soft(ctx, p.n, q.WorkflowID, q.Run)
	}, func(l *loaded, err error) {
		switch {
		case err != nil:
			reply(&schemas.AckResponse{V: schemas.Version, Error: unavailable(err)})
		case l == nil:
			reply(&schemas.AckResponse{V: schemas.Version, Error: notFound(q.WorkflowID, q.Run)})
		case verb == verbResult:
			a := explain.Result(l.state)
			a.Soft = true
			reply(a)
		default:
			d := explain.Describe(l.state)
			d.Partition, d.Owner, d.Soft = p.n, p.b.o.Node, true
			p.withAttempts(d, func(v any) {
				if verb == "why" && v == any(d) {
					because := explain.Closed(l.state) + explain.Replayed(runs.ReplayOf(d.Attempts, l.state.Run)) + "; it is purged from disk, and the master remembers it"
					v = &schemas.WhyResponse{V: schemas.Version, Run: l.state.Run, Status: l.state.Status, Because: because}
				}
				reply(v)
			})
		}
	})
}

// softPage is a page of the history of a run that is not on disk; without a run of the latest that the master remembers. The index of pages
// holds for it, too: records keep their sequences.
func (p *partition) softPage(ctx context.Context, q *schemas.HistoryRequest, run string, limit int) *schemas.HistoryResponse {
	a := &schemas.HistoryResponse{V: schemas.Version, Events: []schemas.Event{}, Soft: true}
	ask := schemas.SoftRequest{WorkflowID: q.WorkflowID, Run: run}
	if run != "" {
		ask.After = p.b.pages.get(q.WorkflowID, run, q.After) - 1
	}
	quota, last := p.b.bodyLimit()/2, q.After
	found, err := p.b.softRecords(ctx, ask, func(run string, m *schemas.SoftRecord) (bool, error) {
		a.Run = run
		var r schemas.Record
		if err := schemas.Unmarshal(m.Data, &r); err != nil {
			return false, fmt.Errorf("record %d of run %s: %w", m.Sequence, run, err)
		}
		for _, e := range r.Events {
			if e.ID <= q.After {
				continue
			}
			if quota -= sizeOf(e); len(a.Events) == limit || quota < 0 && len(a.Events) > 0 {
				p.b.pages.put(q.WorkflowID, run, last, m.Sequence)
				a.More = true
				return false, nil
			}
			a.Events, last = append(a.Events, e), e.ID
		}
		return true, nil
	})
	switch {
	case err != nil:
		return &schemas.HistoryResponse{V: schemas.Version, Run: run, Events: []schemas.Event{}, Error: unavailable(err)}
	case !found:
		return &schemas.HistoryResponse{V: schemas.Version, Run: run, Events: []schemas.Event{}, Error: notFound(q.WorkflowID, run)}
	}
	if a.Closed = !a.More; a.Closed {
		p.tellReplay(ctx, q.WorkflowID, a)
	}
	return a
}
