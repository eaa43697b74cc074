package broker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/internal/sleep"
	"github.com/droverhq/drover/schemas"
)

const (
	defaultPage = 1000
	maxPage     = 10_000
)

// pageIndex remembers where in the stream the next page of a history begins, so that paging through a long one does not
// read it from the start each time. It is a cache: forgetting costs a read.
type pageIndex struct {
	mu sync.Mutex
	at map[pageKey]uint64
}

// pageKey has the workflow id as well: who starts a run may choose its id, and nobody sees to it that two workflows have others.
type pageKey struct {
	wid, run string
	after    int64
}

func (i *pageIndex) get(wid, run string, after int64) uint64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	return max(i.at[pageKey{wid, run, after}], 1)
}

func (i *pageIndex) put(wid, run string, after int64, seq uint64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.at == nil || len(i.at) >= 4096 {
		i.at = make(map[pageKey]uint64)
	}
	i.at[pageKey{wid, run, after}] = seq
}

// lagPause is how long a replica that lags behind the leader is left alone before it is asked again.
const lagPause = 20 * time.Millisecond

// events reads the events of a run with after < id ≤ upTo (0: no end), at most limit of them (0: no limit) and about
// half of a message's room; more tells that there are others. Any replica may answer, so the end of what is read is the end
// of the history only if it has reached the event least; until then it is read on.
//
// along is where all records of the run stand, if that is known.
func (b *Broker) events(ctx context.Context, partition int, wid, run string, after, upTo, least int64, limit int, along recordIndex) (events []schemas.Event, more bool, err error) {
	subj := b.ns.History(partition, wid, run)
	g := &eventPage{after: after, upTo: upTo, limit: limit, budget: b.bodyLimit() / 2, from: b.pages.get(wid, run, after), last: after}
	defer func() {
		if more {
			b.pages.put(wid, run, g.last, g.from)
		}
	}()
	if along.far() && b.pageAlong(ctx, partition, subj, along, g) && (g.more || g.last >= least) {
		return g.events, g.more, nil
	}
	// Records may be large: who wants one page gets few of them at first.
	for n := firstRecords; ; n = min(2*n, pageRecords) {
		if limit == 0 {
			n = pageRecords
		}
		page, rest, err := b.reads.BatchGet(ctx, b.ns.StreamHistory(partition), subj, g.from, n)
		if err != nil {
			return nil, false, fmt.Errorf("read %s: %w", subj, err)
		}
		for i := range page {
			if full, err := g.take(&page[i]); full || err != nil {
				return g.events, g.more, err
			}
		}
		if len(page) == 0 || len(page) < n && !rest { // the server cuts a batch that is too large for it
			if g.last >= least {
				return g.events, false, nil
			}
			if err := sleep.For(ctx, lagPause); err != nil {
				return nil, false, fmt.Errorf("read %s: the history has event %d and no replica shows more than %d: %w", subj, least, g.last, err)
			}
		}
	}
}

// eventPage gathers the events of a run with after < id ≤ upTo (0: no end), at most limit of them (0: no limit) and as many as have room.
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
	if runs.IsRecord(s) {
		var r schemas.Record
		if err := schemas.Unmarshal(s.Data, &r); err != nil {
			return false, fmt.Errorf("%w: record %d of %s: %w; run drover verify", damagedBy(err), s.Seq, s.Subject, err)
		}
		for _, e := range r.Events {
			switch {
			case e.ID <= g.last:
				continue
			case g.upTo != 0 && e.ID > g.upTo:
				return true, nil
			case g.limit > 0 && len(g.events) > 0 && (len(g.events) >= g.limit || g.budget < sizeOf(e)):
				g.from, g.more = s.Seq, true
				return true, nil
			}
			g.budget -= sizeOf(e)
			g.events, g.last = append(g.events, e), e.ID
		}
	}
	g.from = s.Seq + 1
	return false, nil
}

// serveHistory answers a page of events; with a wait it holds the answer back until there is something to say.
func (p *partition) serveHistory(q *schemas.HistoryRequest, reply func(any)) {
	r := p.get(q.WorkflowID)
	p.whenSound(r, reply, func() {
		switch {
		case !r.live() || q.Run != "" && r.state.Run != q.Run:
			p.readPage(q, q.Run, 0, true, nil, reply)
		case p.maybePurged(r):
			p.readPage(q, r.state.Run, 0, true, nil, reply)
		default:
			id := r.state.Run
			p.wait(r, q.Wait, func(r *run) bool { return r.state.Run != id || r.committed > q.After || p.ended(r) }, func(r *run) {
				if r.state.Run == id && r.committed <= q.After {
					reply(&schemas.HistoryResponse{V: schemas.Version, Run: id, Events: []schemas.Event{}, Closed: p.ended(r)})
					return
				}
				if r.state.Run != id {
					p.readPage(q, id, 0, true, nil, reply)
					return
				}
				p.readPage(q, id, r.committed, p.ended(r), r.allRecords(), reply)
			})
		}
	})
}

// half is the first half of a page: its events take more room in their encoding than was foreseen.
func half(page *schemas.HistoryResponse) *schemas.HistoryResponse {
	return &schemas.HistoryResponse{V: page.V, Run: page.Run, Events: page.Events[:len(page.Events)/2], More: true, Soft: page.Soft}
}

// ended tells whether the close is in the history.
func (p *partition) ended(r *run) bool {
	return r.state.Closed() && r.inflight == nil && len(r.pending) == 0
}

// readPage reads a page of a history that has the event least; with 0 the leader is asked which one it has. A run that is not there,
// or not named, may be kept softly. along is as for events.
func (p *partition) readPage(q *schemas.HistoryRequest, run string, least int64, closed bool, along recordIndex, reply func(any)) {
	limit := q.Limit
	if limit <= 0 {
		limit = defaultPage
	}
	limit = min(limit, maxPage)
	p.b.wg.Go(func() {
		p.b.readers.enter()
		defer p.b.readers.leave()
		ctx, cancel := context.WithTimeout(p.b.ctx, readTimeout)
		defer cancel()
		var events []schemas.Event
		var more bool
		var err error
		old := least == 0 // a run that is not the latest of its id
		if old && run != "" {
			least, err = p.b.lastEvent(ctx, p.n, q.WorkflowID, run)
		}
		if err == nil && least == 0 {
			reply(p.softPage(ctx, q, run, limit))
			return
		}
		if err == nil {
			events, more, err = p.b.events(ctx, p.n, q.WorkflowID, run, q.After, 0, least, limit, along)
		}
		switch {
		case err != nil:
			reply(&schemas.HistoryResponse{V: schemas.Version, Run: run, Events: []schemas.Event{}, Error: unavailable(err)})
		case len(events) == 0 && q.After == 0:
			reply(&schemas.HistoryResponse{V: schemas.Version, Run: run, Events: []schemas.Event{}, Error: notFound(q.WorkflowID, run)})
		default:
			if events == nil {
				events = []schemas.Event{}
			}
			a := &schemas.HistoryResponse{V: schemas.Version, Run: run, Events: events, More: more, Closed: closed && !more}
			if a.Closed && old {
				p.tellReplay(ctx, q.WorkflowID, a)
			}
			reply(a)
		}
	})
}

// lastEvent asks the leader for the id of the last event of a run; 0 if there is no such run.
func (b *Broker) lastEvent(ctx context.Context, partition int, wid, run string) (int64, error) {
	subj := b.ns.History(partition, wid, run)
	m, err := b.reads.LastBySubject(ctx, b.ns.StreamHistory(partition), subj)
	if errors.Is(err, natsconn.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read the end of %s: %w", subj, err)
	}
	var r schemas.Record
	if err := schemas.Unmarshal(m.Data, &r); err != nil {
		return 0, fmt.Errorf("record %d of %s: %w; run drover verify", m.Seq, subj, err)
	}
	return r.First + int64(len(r.Events)) - 1, nil
}
