package turns

import (
	"time"

	"github.com/droverhq/drover/schemas"
)

// Turn is what one decision has to decide upon.
type Turn struct {
	// Events are what it has to look at, in the order of the history.
	Events []schemas.Event
	// Started is the id of its DeciderStarted and At the time of that; deadlines count from there.
	Started int64
	At      schemas.Timestamp
	// Completed is the id of its DeciderCompleted, Took the time until that, and Block the events
	// directly after that, which it has caused. 0: the decision is being made.
	Completed int64
	Took      time.Duration
	Block     []schemas.Event
}

// Cutter cuts a history, event by event. The zero value is that of a run without events.
type Cutter struct {
	waiting []schemas.Event   // for a turn
	at      schemas.Timestamp // of the latest DeciderStarted
	block   *Turn             // whose block is not known to be complete
}

// Add takes the next event of the history. It returns the turn that is complete by that, or nil.
//
// A block is complete when the next decision starts. It is not looked for its end before: what ends
// at once, such as an activity that waited when it was canceled, stands in the midst of it.
func (c *Cutter) Add(e schemas.Event) (complete *Turn) {
	switch a := e.Attributes.(type) {
	case *schemas.DeciderScheduled:
	case *schemas.DeciderTimedOut, *schemas.DeciderFailed:
		complete = c.Flush()
	case *schemas.DeciderStarted:
		complete = c.Flush()
		c.at = e.Time
	case *schemas.DeciderCompleted:
		complete = c.Flush()
		c.block = c.turn(a.StartedEventID, c.at)
		c.block.Completed, c.block.Took = e.ID, e.Time.Sub(c.at)
	default:
		completed, decided := schemas.DecidedBy(a)
		if c.block != nil && decided && completed == c.block.Completed {
			c.block.Block = append(c.block.Block, e)
		}
		c.waiting = append(c.waiting, e)
	}
	return complete
}

// Flush returns the turn that is complete if no event follows, or nil.
func (c *Cutter) Flush() *Turn {
	complete := c.block
	c.block = nil
	return complete
}

// Live returns the turn of a decision that is being made, of which the DeciderStarted is given: the
// history need not have it yet. Flush comes first.
func (c *Cutter) Live(started int64, at schemas.Timestamp) *Turn { return c.turn(started, at) }

// turn takes what waits up to a DeciderStarted.
func (c *Cutter) turn(started int64, at schemas.Timestamp) *Turn {
	n := 0
	for n < len(c.waiting) && c.waiting[n].ID < started {
		n++
	}
	t := &Turn{Events: c.waiting[:n:n], Started: started, At: at}
	c.waiting = c.waiting[n:]
	return t
}
