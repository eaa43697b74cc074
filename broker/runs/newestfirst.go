package runs

import (
	"context"
	"slices"

	"github.com/droverhq/drover/schemas"
)

// firstWindow is how many events are read at first of a page that begins with the newest, and
// leastWindow and mostWindow bound how many are read at a time after that.
const firstWindow, leastWindow, mostWindow = 128, 16, 1024

// pageFromEnd reads a page of events from the newest on. Records are read forwards, so it reads a
// few events before those that it has, as often as it takes.
func (r *Reader) pageFromEnd(
	ctx context.Context, partition int, wid, run string, s Span,
) (*eventPage, error) {
	subj := r.Namespace.History(partition, wid, run)
	g, upTo := r.newPage(s), s.Least
	if s.UpTo != 0 {
		upTo = min(upTo, s.UpTo)
	}
	g.last = upTo + 1
	end := place{s.Last, s.Least}
	for n := g.window(firstWindow); upTo > s.After; {
		if n <= 0 {
			g.more = true
			break
		}
		after := max(s.After, upTo-int64(n))
		window := &eventPage{after: after, upTo: upTo, exact: true, least: upTo, last: after}
		var err error
		if window.from, err = r.seek(ctx, partition, subj, after+1, end); err != nil {
			return nil, err
		}
		if err := r.readOn(ctx, partition, subj, window, windowRecords); err != nil {
			return nil, err
		}
		for _, e := range slices.Backward(window.events) {
			if !g.takeBack(e) {
				return g, nil
			}
		}
		upTo, end = after, window.first
		n = g.window(min(2*n, mostWindow))
	}
	return g, nil
}

// takeBack adds an event, and tells whether there was room for it.
func (g *eventPage) takeBack(e schemas.Event) bool {
	size := SizeOf(e)
	g.look--
	g.bytes -= size
	if g.wants(e) {
		if g.full(size) {
			g.more = true
			return false
		}
		g.budget -= size
		g.events = append(g.events, e)
	}
	g.last = e.ID
	return true
}

// window is how many events are read next, at most n: about as many as there is room for. It is 0
// if the page ends.
func (g *eventPage) window(n int) int {
	looked, room := mostLooked-g.look, g.budget
	switch {
	case g.full(0):
		return 0
	case len(g.types) == 0:
		n = min(n, g.limit-len(g.events))
	case g.look <= 0 || g.bytes <= 0:
		return 0
	default:
		room = g.bytes
	}
	if looked > 0 {
		n = min(n, max(leastWindow, room/max((mostBytes-g.bytes)/looked, 1)))
	}
	return n
}
