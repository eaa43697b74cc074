package broker

import "github.com/droverhq/drover/schemas"

// lowWatermark remembers what was begun, in order, and tells up to where all of it is done. Positions only move forward.
type lowWatermark struct {
	open    []*completion
	settled schemas.Position
}

// completion is one entry: done when everybody who holds it has released it.
type completion struct {
	pos     schemas.Position
	pending int
	done    func() // nil, or what the last release does
}

// enter enters a position that is held once.
func (l *lowWatermark) enter(pos schemas.Position) *completion {
	t := &completion{pos: pos, pending: 1}
	l.open = append(l.open, t)
	return t
}

func (t *completion) retain() {
	if t != nil {
		t.pending++
	}
}

func (t *completion) release() {
	if t == nil {
		return
	}
	if t.pending--; t.pending == 0 && t.done != nil {
		t.done()
	}
}

func release(all []*completion) {
	for _, t := range all {
		t.release()
	}
}

// position returns the last position up to which everything is done.
func (l *lowWatermark) position() schemas.Position {
	n := 0
	for n < len(l.open) && l.open[n].pending <= 0 {
		l.settled = l.settled.Later(l.open[n].pos)
		l.open[n] = nil
		n++
	}
	if n > 0 {
		l.open = l.open[n:]
		if cap(l.open) > 1024 && len(l.open) < cap(l.open)/4 {
			l.open = append([]*completion(nil), l.open...)
		}
	}
	return l.settled
}
