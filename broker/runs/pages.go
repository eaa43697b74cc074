package runs

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	Limit int                 // events; 0 is no limit
	Types []schemas.EventType // that are wanted; none: all
	Last  uint64              // where the last record of the run stands; 0 if that is not known
}

// Events reads events of a run, as many as take about half of a message; more tells that there are
// others.
func (r *Reader) Events(
	ctx context.Context, partition int, wid, run string, s Span,
) (events []schemas.Event, more bool, err error) {
	g, err := r.page(ctx, partition, wid, run, s)
	if err != nil {
		return nil, false, err
	}
	return g.events, g.more, nil
}

// page reads a page of events from the oldest on.
func (r *Reader) page(
	ctx context.Context, partition int, wid, run string, s Span,
) (*eventPage, error) {
	subj := r.Namespace.History(partition, wid, run)
	g := r.newPage(s)
	if g.from = r.pages.get(wid, run, s.After); g.from == 1 {
		var err error
		if g.from, err = r.seek(ctx, partition, subj, s.After+1, place{s.Last, s.Least}); err != nil {
			return nil, err
		}
	}
	done := s.Last > g.from+FarApart && s.nearEnd() &&
		r.pageBack(ctx, partition, subj, s.Last, g) && (g.more || g.last >= s.Least)
	if !done {
		first := pageRecords
		switch {
		case s.Limit != 0 && g.from == 1:
			first = firstRecords
		case s.Limit != 0:
			first = windowRecords
		}
		if err := r.readOn(ctx, partition, subj, g, first); err != nil {
			return nil, err
		}
	}
	if g.more {
		r.pages.put(wid, run, g.last, g.from)
	}
	return g, nil
}

// nearEnd tells whether reading backwards from the last record may lead to the events.
func (s *Span) nearEnd() bool { return s.After < seekAfter || s.Least-s.After <= seekAfter }

// readOn reads records from where the page has come to until it is full, or has what there is: n of
// them at first.
func (r *Reader) readOn(
	ctx context.Context, partition int, subj string, g *eventPage, n int,
) error {
	// Records may be large: who wants one page gets few of them at first.
	for ; ; n = min(2*n, pageRecords) {
		within := 0
		if n < pageRecords {
			within = r.BodyLimit()
		}
		page, rest, err := r.Conn.BatchGetWithin(
			ctx, r.Namespace.StreamHistory(partition), subj, g.from, n, within)
		if err != nil {
			return fmt.Errorf("read %s: %w", subj, err)
		}
		for i := range page {
			if full, err := g.take(&page[i]); full || err != nil {
				return err
			}
		}
		if len(page) == 0 || len(page) < n && !rest {
			// the server cuts a batch that is too large for it
			if g.last >= g.least {
				return nil
			}
			if err := sleep.For(ctx, lagPause); err != nil {
				return fmt.Errorf(
					"read %s: the history has event %d and no replica shows more than %d: %w",
					subj,
					g.least,
					g.last,
					err,
				)
			}
		}
	}
}

// mostLooked is how many events a page looks at where only some types are wanted, and mostBytes how
// many bytes their records have. The rest comes with the next page.
const mostLooked, mostBytes = 5000, 4 << 20

// eventPage collects the events of a run with after < id ≤ upTo and of some types, at most limit of
// them and as many as fit the budget.
type eventPage struct {
	after, upTo   int64
	exact         bool // nothing after upTo is read
	least         int64
	limit, budget int
	types         []schemas.EventType
	look, bytes   int    // how much may still be looked at for types
	from          uint64 // where the next record stands, or may stand
	first         place  // the first record with such events

	events []schemas.Event
	last   int64 // the id of the last that was looked at, or after
	more   bool
}

// newPage is an empty one.
func (r *Reader) newPage(s Span) *eventPage {
	return &eventPage{
		after: s.After, upTo: s.UpTo, least: s.Least, limit: s.Limit, budget: r.BodyLimit() / 2,
		types: s.Types, look: mostLooked, bytes: mostBytes, from: 1, last: s.After,
	}
}

// wants tells whether an event is of the types.
func (g *eventPage) wants(e schemas.Event) bool {
	return len(g.types) == 0 || slices.Contains(g.types, e.Type())
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
		g.look -= len(record.Events)
		if end := record.First + int64(len(record.Events)) - 1; end > g.last &&
			g.first.sequence == 0 {
			g.first = place{s.Seq, end}
		}
		for _, e := range record.Events {
			switch {
			case e.ID <= g.last:
				continue
			case g.upTo != 0 && e.ID > g.upTo:
				return true, nil
			case !g.wants(e):
				g.last = e.ID
				continue
			case g.full(SizeOf(e)):
				g.from, g.more = s.Seq, true
				return true, nil
			}
			g.budget -= SizeOf(e)
			g.events, g.last = append(g.events, e), e.ID
		}
	}
	g.from = s.Seq + 1
	return g.enough(s), nil
}

// full tells whether no event of a size has room any more. One always has.
func (g *eventPage) full(size int) bool {
	return g.limit > 0 && len(g.events) > 0 && (len(g.events) >= g.limit || g.budget < size)
}

// enough tells whether the page ends after a record.
func (g *eventPage) enough(s *natsconn.Stored) bool {
	if g.exact && g.last >= g.upTo {
		return true
	}
	g.bytes -= len(s.Data)
	if len(g.types) > 0 && (g.look <= 0 || g.bytes <= 0) {
		g.more = g.last < g.least
		return g.more
	}
	return false
}

// lastEvent asks the leader for the last record of a run, and the id of its last event; both are 0
// if there is no such run.
func (r *Reader) lastEvent(ctx context.Context, partition int, wid, run string) (place, error) {
	subj := r.Namespace.History(partition, wid, run)
	m, err := r.Conn.LastBySubject(ctx, r.Namespace.StreamHistory(partition), subj)
	if errors.Is(err, natsconn.ErrNotFound) {
		return place{}, nil
	}
	if err != nil {
		return place{}, fmt.Errorf("read the end of %s: %w", subj, err)
	}
	var record schemas.Record
	if err := schemas.Unmarshal(m.Data, &record); err != nil {
		return place{}, fmt.Errorf("record %d of %s: %w; run drover verify", m.Seq, subj, err)
	}
	return place{m.Seq, record.First + int64(len(record.Events)) - 1}, nil
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
	if q.Before > 0 && q.Before <= q.After+1 { // nothing lies between
		return answer(q, p.Run, &eventPage{last: q.After}), nil
	}
	old := p.Least == 0 // a run that is not the latest of its id
	if old && p.Run != "" {
		var err error
		end, err := r.lastEvent(ctx, partition, q.WorkflowID, p.Run)
		if err != nil {
			return nil, err
		}
		p.Least, p.Last = end.event, end.sequence
	}
	if p.Least == 0 {
		return r.softPage(ctx, partition, q, p.Run, limit)
	}
	span := Span{
		After: q.After, UpTo: max(q.Before-1, 0), Least: p.Least, Limit: limit, Types: q.Types,
		Last: p.Last,
	}
	read, toEnd := r.page, q.Before == 0 || q.Before > p.Least
	if q.NewestFirst {
		read = r.pageFromEnd
	}
	g, err := read(ctx, partition, q.WorkflowID, p.Run, span)
	switch {
	case err != nil:
		return nil, err
	case g.last == 0 && !q.NewestFirst:
		return nil, ErrNoRun
	}
	a := answer(q, p.Run, g)
	a.Closed = p.Closed && toEnd && (q.NewestFirst || !g.more)
	if a.Closed && old {
		r.addReplay(ctx, partition, q.WorkflowID, a)
	}
	return a, nil
}

// answer is a page as it is sent.
func answer(q *schemas.HistoryRequest, run string, g *eventPage) *schemas.HistoryResponse {
	a := &schemas.HistoryResponse{V: schemas.Version, Run: run, Events: g.events, More: g.more}
	if a.Events == nil {
		a.Events = []schemas.Event{}
	}
	if q.NewestFirst || len(q.Types) > 0 {
		a.Next = g.last
	}
	return a
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
