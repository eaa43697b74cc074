package cache

import (
	"time"

	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/deadlines"
	"github.com/droverhq/drover/broker/runs"
)

const (
	// passivateAfter is how long a run stays folded in memory after the last message to it, once a
	// partition has more than a share of its CachedRuns: up to there waking is worth more than
	// memory. It is a read that brings many runs at a time (rehydrateAll). It is more than
	// AlarmDelay usually is: who waits for that cannot be parked, and would stay for as long again.
	passivateAfter = 1200 * time.Millisecond
	passivateShare = 16
	// passivateRested is how long the others of them stay. What is left of a storm of runs lies
	// scattered over the memory that the storm has used, and keeps all of it: 2,500 folded runs of
	// 100,000 held 20 MB. Whatever waits for so long can wait for a read.
	passivateRested = 10 * time.Second
	// passivateAtOnce bounds the runs that one tick looks at, and with it how long the loop is busy
	// with them.
	passivateAtOnce = 2000
)

// PassivateIdle forgets the runs that nothing has happened to for a while. It is called when no run
// is marked: one that is about to be settled looks idle, and would live on beside its successor.
func (c *Cache) PassivateIdle() {
	rest := deadlines.Rest{
		Long: c.InTicks(passivateAfter), Rested: c.InTicks(passivateRested),
		Few: c.Env.Options.CachedRuns / passivateShare, AtOnce: passivateAtOnce,
	}
	c.deadlines.Usage.Idle(rest, func(r *actor.Run) *deadlines.Use { return &r.Use },
		func(r *actor.Run, few bool) bool {
			// The latest that have ended stay for those who ask how. What cannot be parked would cost
			// the leader three questions.
			if !r.Idle() || r.Ended || few && r.Open() && !r.CanPassivate() {
				return false
			}
			c.forget(r)
			return true
		})
}

// InTicks is a time in ticks of the checkpoint's clock.
func (c *Cache) InTicks(d time.Duration) uint32 {
	return uint32(max(d/c.Env.Options.CheckpointEvery, 1))
}

// passivate keeps what is known of a run that is being forgotten, if that is all there is to know.
func (c *Cache) passivate(r *actor.Run) {
	if !r.CanPassivate() {
		return
	}
	armed := r.Alarm.Seq
	if r.Alarm.Firing {
		armed = 0 // its worker deletes it
	}
	k := deadlines.Run{
		RunID: r.State.Run, Sequence: r.End.Sequence, Alarm: armed,
		Worker: c.host.WorkerNumber(r.Decider.Sticky), Due: r.Alarm.Due,
		Delayed: r.State.Delayed(),
	}
	if k.Complete = r.End.Complete && len(r.End.Hash) > 0; k.Complete {
		k.Mark, k.At = runs.MarkOf(r.End.Hash), r.End.At
	}
	c.deadlines.Passive.Keep(r.WorkflowID, &k)
}

// activate takes what is known of a run that is about to be loaded.
func (c *Cache) activate(r *actor.Run) {
	if k := c.deadlines.Passive.Take(r.WorkflowID); k != nil {
		r.Passive = k // until the run is loaded
	}
}

// NothingKnown tells whether nothing is known of a workflow id: none of its runs is open, or has
// been looked at lately.
func (c *Cache) NothingKnown(wid string) bool {
	if c.runs[wid] != nil {
		return false
	}
	return !c.deadlines.Passive.Has(wid)
}
