package cache

import (
	"cmp"
	"context"
	"slices"

	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/runs"
)

// Parked runs whose last record says everything are read by the sequence of that record, and those
// that a batch of the loop wakes together in stretches of the history (runs.RangeRead): sleepers
// that were started together have their records beside each other, and wake together. One question
// brings up to rehydrateAtOnce of them, and by sequence the server needs neither its index of
// subjects nor to count what is after. What such a read does not bring is read by its subject, as
// any other run.
const (
	// rehydrateAtOnce is how many records one read brings at most: its first run waits for its
	// last.
	rehydrateAtOnce = 64
	// rehydrateGap is how far apart two records may be in one range read. What lies between them is
	// read in vain.
	rehydrateGap = 3
)

// rehydrate has a parked run read at the end of the loop's batch.
func (c *Cache) rehydrate(r *actor.Run) { c.deadlines.Wake(r) }

// RehydrateAll reads what was woken since it was called last.
func (c *Cache) RehydrateAll() {
	rest := c.deadlines.Waking()
	slices.SortFunc(rest,
		func(a, b *actor.Run) int { return cmp.Compare(a.Passive.Sequence, b.Passive.Sequence) })
	for len(rest) > 0 {
		n := together(rest)
		c.readRange(rest[0].Passive.Sequence, rest[n-1].Passive.Sequence+1, rest[:n:n])
		rest = rest[n:]
	}
}

// rehydrated takes what a read has found of a parked run.
func (c *Cache) rehydrated(r *actor.Run, st *runs.RangeRead) {
	k := r.Passive
	body, hash := st.Take(k.Sequence, k.Mark)
	if body == nil {
		k.Complete = false
		c.load(r)
		return
	}
	l, err := runs.FromRecord(r.WorkflowID, k.RunID, body, hash, k.Sequence, k.At)
	if err != nil {
		r.Passive = nil // the next try asks the leader
		c.unloaded(r, err)
		return
	}
	if c.IsIntact(r) {
		c.host.Ready(r, l)
	}
}

// together is how many of the runs that sleep, in the order of their last records, one read brings.
func together(asleep []*actor.Run) int {
	first := asleep[0].Passive.Sequence
	last, n := first, 1
	for ; n < len(asleep); n++ {
		next := asleep[n].Passive.Sequence
		if next-last > rehydrateGap || next-first >= rehydrateAtOnce {
			break
		}
		last = next
	}
	return n
}

// readRange reads a piece of the history with one question, for the runs that wait for it. end is
// the first sequence after it.
func (c *Cache) readRange(from, end uint64, asleep []*actor.Run) {
	type answer struct {
		bodies [][]byte
		last   uint64
	}
	env.ReadAsync(c.Env, c.Loop, func(ctx context.Context) (a answer, err error) {
		a.bodies, a.last, err = c.Env.Histories.ReadRange(ctx, c.Partition, from, end)
		return a, err
	}, func(a answer, err error) {
		st := &runs.RangeRead{From: from, End: end}
		if err == nil {
			st.Fill(a.bodies, a.last)
		}
		for _, r := range asleep {
			switch {
			case err != nil:
				r.Passive = nil // the next try asks the leader
				c.unloaded(r, err)
			case r.Passive.Sequence >= st.End && len(a.bodies) > 0:
				// the read was large enough without it; it will be the first of the next one, so
				// this ends
				c.rehydrate(r)
			default:
				c.rehydrated(r, st)
			}
		}
	})
}
