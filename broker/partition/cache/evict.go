package cache

import "github.com/droverhq/drover/broker/partition/actor"

// touch marks a run as used.
func (c *Cache) touch(r *actor.Run) { c.deadlines.Usage.Touch(r, &r.Use) }

// Evict forgets the longest unused runs above the bound, eight at most for each that was used. It
// is called when no run is marked, and none is in the middle of a step: such a one looks idle, and
// would live on beside its successor.
func (c *Cache) Evict() {
	tooMany := func() bool { return len(c.runs) > c.Env.Options.CachedRuns }
	c.deadlines.Usage.Evict(tooMany, func(r *actor.Run) bool {
		if !r.Idle() {
			return false
		}
		c.forget(r)
		return true
	})
}

// keptClosed is how many closed runs are kept in memory for those who ask how they ended.
const keptClosed = 256

// Retire makes room: of the closed runs only the latest stay.
func (c *Cache) Retire(r *actor.Run) {
	if !r.Live() || r.Ended || !r.Idle() {
		return
	}
	r.Ended = true
	c.closed = append(c.closed, r)
	for len(c.closed) > keptClosed {
		oldest := c.closed[0]
		c.closed[0] = nil
		c.closed = c.closed[1:]
		if oldest.Ended && c.runs[oldest.WorkflowID] == oldest {
			if oldest.Ended = false; oldest.Idle() && !oldest.Open() {
				c.forget(oldest)
			}
		}
	}
}

func (c *Cache) forget(r *actor.Run) {
	c.passivate(r)
	c.host.EndRecall(r)
	c.deadlines.Usage.Remove(&r.Use)
	delete(c.runs, r.WorkflowID)
}
