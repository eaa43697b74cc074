package runs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/internal/sleep"
	"github.com/droverhq/drover/schemas"
)

// lagPause is how long a replica that lags the leader is left alone before it is asked
// again.
const lagPause = 20 * time.Millisecond

// Span says which events of a run are read.
type Span struct {
	After, UpTo int64 // ids of events: After < id ≤ UpTo; without an UpTo there is no end
	// Least is an event that the history has. Any replica may answer, so what is read ends there
	// only if it has reached this event; until then it is read on.
	Least int64
	Limit int    // events; 0 is no limit
	Last  uint64 // where the last record of the run stands; 0 if that is not known
}

// Events reads events of a run, as many as take about half of a message; more tells that there are
// others.
func (r *Reader) Events(
	ctx context.Context, partition int, wid, run string, s Span,
) (events []schemas.Event, more bool, err error) {
	subj := r.Namespace.History(partition, wid, run)
	g := &eventPage{
		after: s.After, upTo: s.UpTo, limit: s.Limit, budget: r.BodyLimit() / 2,
		from: r.pages.get(wid, run, s.After), last: s.After,
	}
	defer func() {
		if more {
			r.pages.put(wid, run, g.last, g.from)
		}
	}()
	if s.Last > g.from+FarApart && r.pageBack(ctx, partition, subj, s.Last, g) &&
		(g.more || g.last >= s.Least) {
		return g.events, g.more, nil
	}
	// Records may be large: who wants one page gets few of them at first.
	for n := firstRecords; ; n = min(2*n, pageRecords) {
		if s.Limit == 0 {
			n = pageRecords
		}
		page, rest, err := r.Conn.BatchGet(
			ctx,
			r.Namespace.StreamHistory(partition),
			subj,
			g.from,
			n,
		)
		if err != nil {
			return nil, false, fmt.Errorf("read %s: %w", subj, err)
		}
		for i := range page {
			if full, err := g.take(&page[i]); full || err != nil {
				return g.events, g.more, err
			}
		}
		if len(page) == 0 || len(page) < n && !rest {
			// the server cuts a batch that is too large for it
			if g.last >= s.Least {
				return g.events, false, nil
			}
			if err := sleep.For(ctx, lagPause); err != nil {
				return nil, false, fmt.Errorf(
					"read %s: the history has event %d and no replica shows more than %d: %w",
					subj,
					s.Least,
					g.last,
					err,
				)
			}
		}
	}
}

// eventPage collects the events of a run with after < id ≤ upTo, at most limit of them and as many
// as fit the budget.
type eventPage struct {
	after, upTo   int64
	limit, budget int
	from          uint64 // where the next record stands, or may stand

	events []schemas.Event
	last   int64 // the id of the last of them, or after
	more   bool
}

// take adds the events of a record. It tells whether the page ends with it.
func (g *eventPage) take(s *natsconn.Stored) (full bool, err error) {
	if IsRecord(s) {
		var record schemas.Record
		if err := schemas.Unmarshal(s.Data, &record); err != nil {
			return false, fmt.Errorf(
				"%w: record %d of %s: %w; run drover verify",
				damagedBy(err),
				s.Seq,
				s.Subject,
				err,
			)
		}
		for _, e := range record.Events {
			switch {
			case e.ID <= g.last:
				continue
			case g.upTo != 0 && e.ID > g.upTo:
				return true, nil
			case g.limit > 0 && len(g.events) > 0 && (len(g.events) >= g.limit || g.budget < SizeOf(e)):
				g.from, g.more = s.Seq, true
				return true, nil
			}
			g.budget -= SizeOf(e)
			g.events, g.last = append(g.events, e), e.ID
		}
	}
	g.from = s.Seq + 1
	return false, nil
}

// lastEvent asks the leader for the id of the last event of a run; 0 if there is no such run.
func (r *Reader) lastEvent(ctx context.Context, partition int, wid, run string) (int64, error) {
	subj := r.Namespace.History(partition, wid, run)
	m, err := r.Conn.LastBySubject(ctx, r.Namespace.StreamHistory(partition), subj)
	if errors.Is(err, natsconn.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read the end of %s: %w", subj, err)
	}
	var record schemas.Record
	if err := schemas.Unmarshal(m.Data, &record); err != nil {
		return 0, fmt.Errorf("record %d of %s: %w; run drover verify", m.Seq, subj, err)
	}
	return record.First + int64(len(record.Events)) - 1, nil
}

const (
	defaultPage = 1000
	maxPage     = 10_000
)

// PageOf says which run a page of a history is of, and what is known of it.
type PageOf struct {
	Run string
	// Least is an event that the history has; with 0 the leader is asked which one it has, and a
	// run that is not there may be kept softly.
	Least  int64
	Closed bool   // nothing follows what the history has
	Last   uint64 // where the last record of the run stands; 0 if that is not known
}

// Page reads a page of a history. If there is no such run the error is [ErrNoRun].
func (r *Reader) Page(
	ctx context.Context, partition int, q *schemas.HistoryRequest, p PageOf,
) (*schemas.HistoryResponse, error) {
	limit := q.Limit
	if limit <= 0 {
		limit = defaultPage
	}
	limit = min(limit, maxPage)
	old := p.Least == 0 // a run that is not the latest of its id
	if old && p.Run != "" {
		var err error
		if p.Least, err = r.lastEvent(ctx, partition, q.WorkflowID, p.Run); err != nil {
			return nil, err
		}
	}
	if p.Least == 0 {
		return r.softPage(ctx, partition, q, p.Run, limit)
	}
	span := Span{After: q.After, Least: p.Least, Limit: limit, Last: p.Last}
	events, more, err := r.Events(ctx, partition, q.WorkflowID, p.Run, span)
	switch {
	case err != nil:
		return nil, err
	case len(events) == 0 && q.After == 0:
		return nil, ErrNoRun
	case events == nil:
		events = []schemas.Event{}
	}
	a := &schemas.HistoryResponse{
		V:      schemas.Version,
		Run:    p.Run,
		Events: events,
		More:   more,
		Closed: p.Closed && !more,
	}
	if a.Closed && old {
		r.addReplay(ctx, partition, q.WorkflowID, a)
	}
	return a, nil
}

// addReplay adds to the end of a history who repeats the run. Without it the page is good all the
// same.
func (r *Reader) addReplay(
	ctx context.Context, partition int, wid string, a *schemas.HistoryResponse,
) {
	all, err := r.Attempts(ctx, partition, wid, a.Run)
	if err != nil {
		r.Log.WithError(err).
			WithField("workflow", wid).
			Debug("whether a run was replayed is not known")
		return
	}
	if by := ReplayOf(all, a.Run); by != nil {
		a.ReplayedBy = by.Run
	}
}
