// Package watermark tracks what was begun, in order, and tells up to where all of it is done.
//
// An owner of a partition has three trackers: one for each of its two logs, and one for the effects
// of its records. A checkpoint names the positions that they tell. So whoever must not lose a
// message or an effect retains its Completion until there is nothing left to lose.
//
// Position never passes an entry that somebody retains, and never goes back. Nothing here is safe
// for concurrent use: the loop of the partition is the only caller.
package watermark

import "github.com/droverhq/drover/schemas"

// Tracker is the low-watermark tracker of one log. Its zero value is ready to use.
type Tracker struct {
	open    []*Completion
	settled schemas.Position
}

// Completion is one entry: it is done when everybody who retains it has released it. The methods
// of nil do nothing.
type Completion struct {
	pos     schemas.Position
	holders int
	done    func()
}

// New returns a completion of no tracker, with one holder. The last release calls done.
func New(done func()) *Completion { return &Completion{holders: 1, done: done} }

// StartAt says that everything up to a position is done.
func (t *Tracker) StartAt(pos schemas.Position) { t.settled = pos }

// Enter enters a position, with one holder.
func (t *Tracker) Enter(pos schemas.Position) *Completion {
	c := &Completion{pos: pos, holders: 1}
	t.open = append(t.open, c)
	return c
}

// Position is the last position up to which everything is done.
func (t *Tracker) Position() schemas.Position {
	n := 0
	for n < len(t.open) && t.open[n].holders <= 0 {
		t.settled = t.settled.Later(t.open[n].pos)
		t.open[n] = nil
		n++
	}
	if n > 0 {
		t.open = t.open[n:]
		if cap(t.open) > 1024 && len(t.open) < cap(t.open)/4 {
			t.open = append([]*Completion(nil), t.open...)
		}
	}
	return t.settled
}

// OnDone sets what the last release calls.
func (c *Completion) OnDone(done func()) { c.done = done }

// Retain adds a holder.
func (c *Completion) Retain() {
	if c != nil {
		c.holders++
	}
}

// Release takes a holder away.
func (c *Completion) Release() {
	if c == nil {
		return
	}
	if c.holders--; c.holders == 0 && c.done != nil {
		c.done()
	}
}

// Release takes a holder away from each of them.
func Release(all []*Completion) {
	for _, c := range all {
		c.Release()
	}
}
