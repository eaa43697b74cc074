package runs

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/schemas"
)

// Runs that are purged from disk may be kept softly, in the memory of the namespace's master (ADR
// 0027). Who asks for a run that the history does not have is answered from there, and told so.
// Nothing else looks there: to a start, a signal and a replay such a run is as one that never was.

// softTimeout is how long the master has for all it says of a run. If it says nothing, the run is
// not there: soft is a favour.
const softTimeout = time.Second

// Soft asks the master for a run, without one for the latest that it remembers, and folds it; nil
// if there is none.
func (r *Reader) Soft(ctx context.Context, partition int, wid, run string) (*Run, error) {
	l := &Run{}
	found, err := r.softRecords(
		ctx,
		schemas.SoftRequest{WorkflowID: wid, Run: run},
		func(run string, m *schemas.SoftRecord) (bool, error) {
			return true, l.add(r.softStored(partition, wid, run, m))
		},
	)
	if err != nil || !found {
		return nil, err
	}
	return l, nil
}

// softRecords yields the records of a run that the master remembers, page by page, until take wants
// no more. found: that is all that was wanted. Else nobody knows such a run, or it has gone
// meanwhile.
func (r *Reader) softRecords(
	ctx context.Context, q schemas.SoftRequest,
	take func(run string, m *schemas.SoftRecord) (more bool, err error),
) (found bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, softTimeout)
	defer cancel()
	for q.V = schemas.Version; ; {
		body, err := schemas.Marshal(&q)
		if err != nil {
			return false, err
		}
		m, err := r.Conn.Request(
			ctx,
			r.Namespace.API("soft"),
			natsconn.Header{schemas.ContentTypeHeader: {schemas.ContentTypeMsgpack}},
			body,
		)
		if err != nil {
			r.Log.WithError(err).
				WithField("workflow", q.WorkflowID).
				Debug("no master tells whether a run is kept softly")
			return false, nil //nolint:nilerr // then it is not
		}
		var a schemas.SoftResponse
		if err := schemas.Unmarshal(m.Data, &a); err != nil {
			return false, fmt.Errorf(
				"what the master remembers of workflow %q: %w",
				q.WorkflowID,
				err,
			)
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

// softPage is a page of the history of a run that is not on disk; without a run of the latest that
// the master remembers. The index of pages holds for it, too: records keep their sequences. A page
// that begins with the newest reads all before it.
func (r *Reader) softPage(
	ctx context.Context, partition int, q *schemas.HistoryRequest, run string, limit int,
) (*schemas.HistoryResponse, error) {
	ask := schemas.SoftRequest{WorkflowID: q.WorkflowID, Run: run}
	span := Span{After: q.After, UpTo: max(q.Before-1, 0), Limit: limit, Types: q.Types}
	g, toEnd := r.newPage(span), q.Before == 0
	switch {
	case q.NewestFirst:
		g = r.newPage(Span{After: q.After})
	case run != "":
		ask.After = r.pages.get(q.WorkflowID, run, q.After) - 1
	}
	found, err := r.softRecords(ctx, ask, func(of string, m *schemas.SoftRecord) (bool, error) {
		run = of
		full, err := g.take(r.softStored(partition, q.WorkflowID, of, m))
		return !full, err
	})
	switch {
	case err != nil:
		return nil, err
	case !found:
		return nil, ErrNoRun
	case q.NewestFirst:
		toEnd = toEnd || q.Before > g.last
		g = r.turn(g.events, span)
	case g.more:
		r.pages.put(q.WorkflowID, run, g.last, g.from)
	}
	a := answer(q, run, g)
	a.Soft, a.Closed = true, toEnd && (q.NewestFirst || !g.more)
	if a.Closed {
		r.addReplay(ctx, partition, q.WorkflowID, a)
	}
	return a, nil
}

// turn is a page of events that begins with the newest.
func (r *Reader) turn(events []schemas.Event, s Span) *eventPage {
	g := r.newPage(s)
	for _, e := range slices.Backward(events) {
		if (s.UpTo == 0 || e.ID <= s.UpTo) && !g.takeBack(e) {
			break
		}
	}
	return g
}

// softStored is a record that the master remembers, as the history had it.
func (r *Reader) softStored(
	partition int, wid, run string, m *schemas.SoftRecord,
) *natsconn.Stored {
	return &natsconn.Stored{
		Subject: r.Namespace.History(partition, wid, run), Seq: m.Sequence, Time: m.Time.Time(),
		Header: natsconn.Header{schemas.StatusHeader: {"soft"}}, Data: m.Data,
	}
}
