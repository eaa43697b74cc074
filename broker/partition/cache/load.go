package cache

import (
	"context"

	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/runs"
)

// Get returns the actor of a workflow id; if there is none yet its latest run begins to load.
func (c *Cache) Get(wid string) *actor.Run {
	r := c.runs[wid]
	if r == nil {
		r = &actor.Run{WorkflowID: wid}
		r.Load.Begin()
		c.Add(r)
		c.activate(r)
		c.load(r)
		return r
	}
	c.touch(r)
	return r
}

// When runs f once the run is loaded: at once, or later on the loop; not at all if it is set aside
// before that.
func (c *Cache) When(r *actor.Run, f func()) {
	switch {
	case r.Load.IsAside():
	case r.Load.Waits():
		r.Then = append(r.Then, actor.Awaited{Run: f, Patient: true})
	default:
		f()
	}
}

func (c *Cache) load(r *actor.Run) {
	if r.Passive != nil && r.Passive.Complete {
		c.rehydrate(r)
		return
	}
	known, alone := r.Passive, c.host.SingleReplica()
	env.ReadAsync(c.Env, c.Loop, func(ctx context.Context) (*runs.Run, error) {
		if known != nil {
			return c.Env.Histories.LoadKnown(ctx, c.Partition, r.WorkflowID, known.RunID,
				known.Sequence)
		}
		l, err := c.Env.Histories.Latest(ctx, c.Partition, r.WorkflowID, alone)
		if err == nil && l != nil && l.State.Copying() {
			l.Unread, err = c.Env.Histories.Unread(ctx, c.Partition, l.State, alone)
		}
		return l, err
	}, func(l *runs.Run, err error) {
		if err != nil {
			r.Passive = nil // the next try asks the leader
			c.unloaded(r, err)
			return
		}
		if c.IsIntact(r) {
			c.host.Ready(r, l)
		}
	})
}

// LoadRun reads one run of a workflow id of the partition; nil if there is none.
func (c *Cache) LoadRun(ctx context.Context, wid, id string) (*runs.Run, error) {
	return c.Env.Histories.Load(ctx, c.Partition, wid, id, c.host.SingleReplica())
}
