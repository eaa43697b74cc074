package broker

import "github.com/droverhq/drover/schemas"

// ledger remembers what was begun, in order, and tells up to where all of it is done. Positions only move forward.
type ledger struct {
	open    []*ticket
	settled schemas.Position
}

// ticket is one entry: done when everybody who holds it has released it.
type ticket struct {
	pos   schemas.Position
	holds int
	done  func() // nil, or what the last release does
}

// begin enters a position that is held once.
func (l *ledger) begin(pos schemas.Position) *ticket {
	t := &ticket{pos: pos, holds: 1}
	l.open = append(l.open, t)
	return t
}

func (t *ticket) hold() {
	if t != nil {
		t.holds++
	}
}

func (t *ticket) release() {
	if t == nil {
		return
	}
	if t.holds--; t.holds == 0 && t.done != nil {
		t.done()
	}
}

func release(all []*ticket) {
	for _, t := range all {
		t.release()
	}
}

// position returns the last position up to which everything is done.
func (l *ledger) position() schemas.Position {
	n := 0
	for n < len(l.open) && l.open[n].holds <= 0 {
		l.settled = l.settled.Later(l.open[n].pos)
		l.open[n] = nil
		n++
	}
	if n > 0 {
		l.open = l.open[n:]
		if cap(l.open) > 1024 && len(l.open) < cap(l.open)/4 {
			l.open = append([]*ticket(nil), l.open...)
		}
	}
	return l.settled
}
