package retention

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/internal/sleep"
	"github.com/droverhq/drover/schemas"
)

const (
	// batch is how many runs of a partition are looked at before they are purged together.
	batch = 256
	// fewest is how many runs a part of the stream must hold that is purged by its sequence: below
	// that it is not worth the look.
	fewest = 16
	// longest is how many records are looked at for it.
	longest = 50_000
	// mostOfPass bounds how many runs of a partition one pass purges: then the others have their
	// turn, and what has closed is read.
	mostOfPass = 5_000
)

// purge purges of what is to go as much as may, partition by partition and in the order of the
// stream.
func (j *Janitor) purge(ctx context.Context, k *look) (purged int, err error) {
	for p := range j.o.Partitions {
		n := 0
		for part := range slices.Chunk(j.dueOf(p), batch) {
			j.deleteAsked(ctx)
			if j.o.Holds() {
				return purged + n, nil // the rest goes with a later pass
			}
			done, gone, err := j.purgeBatch(ctx, k, p, part)
			n += done
			j.went(gone)
			if err != nil {
				return purged + n, fmt.Errorf("purge histories of partition %d: %w", p, err)
			}
			if n >= mostOfPass {
				break
			}
		}
		purged += n
	}
	return purged, nil
}

// dueOf is what is to go of a partition.
func (j *Janitor) dueOf(p int) []entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	from, _ := slices.BinarySearchFunc(j.due, entry{partition: int32(p)}, byPlace)
	to, _ := slices.BinarySearchFunc(j.due, entry{partition: int32(p) + 1}, byPlace)
	return slices.Clone(j.due[from:to])
}

// went forgets runs.
func (j *Janitor) went(gone []entry) {
	if len(gone) == 0 {
		return
	}
	slices.SortFunc(gone, byPlace)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.due = slices.DeleteFunc(j.due, func(e entry) bool {
		_, found := slices.BinarySearchFunc(gone, e, byPlace)
		return found
	})
}

// purgeBatch purges of some runs those that may go. It returns how many runs it purged, and which
// of those it was given are gone.
func (j *Janitor) purgeBatch(
	ctx context.Context, k *look, p int, part []entry,
) (purged int, gone []entry, err error) {
	var ready, later []*candidate // later others of their chains, which go first
	goes := map[string]bool{}     // those that do, by subject
	for _, e := range part {
		c, why, err := k.may(ctx, e)
		switch {
		case errors.Is(err, errGone):
			gone = append(gone, e)
			j.lost(e)
			continue
		case err != nil:
			return purged, gone, err
		case why != "":
			k.say(why)
			continue
		}
		n, waits, err := j.purgeBefore(ctx, k, c)
		if purged += n; err != nil {
			return purged, gone, err
		}
		if waits {
			continue
		}
		earlier, err := k.before(ctx, c)
		if err != nil {
			return purged, gone, err
		}
		if slices.ContainsFunc(earlier, func(l link) bool { return !goes[l.subject] }) {
			k.say("runs of its chain before it are still there, and go first")
			continue
		}
		if !k.hard {
			err = j.keepSoftly(ctx, c)
		}
		if err != nil {
			return purged, gone, err
		}
		if goes[c.subject] = true; len(earlier) > 0 {
			later = append(later, c)
		} else {
			ready = append(ready, c)
		}
	}
	edge, err := j.edge(ctx, p, ready)
	if err != nil {
		return purged, gone, err
	}
	one := func(c *candidate) error {
		if err := j.purgeOne(ctx, k, c); err != nil {
			return err
		}
		purged, gone = purged+1, append(gone, c.entry)
		return nil
	}
	for _, c := range ready {
		if c.seq < edge {
			continue
		}
		if err := one(c); err != nil {
			return purged, gone, err
		}
	}
	if edge > 0 {
		stream := j.o.Namespace.StreamHistory(p)
		if err := j.o.Before(stream, fmt.Sprintf("below %d", edge)); err != nil {
			return purged, gone, err
		}
		if err := j.o.Conn.Purge(ctx, stream, "", edge); err != nil {
			return purged, gone, err
		}
		for _, c := range ready {
			if c.seq < edge {
				k.gone(c)
				purged, gone = purged+1, append(gone, c.entry)
			}
		}
	}
	for _, c := range later {
		if err := one(c); err != nil {
			return purged, gone, err
		}
	}
	return purged, gone, nil
}

// purgeOne purges a run, and rests.
func (j *Janitor) purgeOne(ctx context.Context, k *look, c *candidate) error {
	stream := j.o.Namespace.StreamHistory(int(c.partition))
	if err := j.o.Before(stream, c.subject); err != nil {
		return err
	}
	if err := j.o.Conn.PurgeSubject(ctx, stream, c.subject); err != nil {
		return err
	}
	k.gone(c)
	return sleep.For(ctx, time.Second/time.Duration(j.o.Rate))
}

// purgeBefore purges what goes with a run and before it: the parts of a flow's run, and the runs of
// a chain before its last. It tells whether the run has to wait for them.
func (j *Janitor) purgeBefore(
	ctx context.Context, k *look, c *candidate,
) (purged int, waits bool, err error) {
	keys := []string{partsKey(c.line.Run)}
	if c.line.Status != schemas.StatusContinuedAsNew && c.line.FirstRun != "" {
		keys = append(keys, chainKey(c.line.WorkflowID, c.line.FirstRun))
	}
	for _, key := range keys {
		j.mu.Lock()
		g := j.index.take(key)
		j.mu.Unlock()
		if g == nil {
			continue
		}
		left := g.runs
		var stay []entry
		for i, e := range left {
			var one *candidate
			var why string
			if err == nil {
				if one, why, err = k.may(ctx, e); errors.Is(err, errGone) {
					err = nil
					continue
				}
			}
			if err == nil && why == "" {
				var earlier []link
				if earlier, err = k.before(ctx, one); len(earlier) > 0 {
					why = "a run before it is still there"
				}
			}
			if err == nil && why == "" {
				n, some, failed := j.purgeBefore(ctx, k, one) // its own parts
				if purged, err = purged+n, failed; some {
					why = "what goes with it is still there"
				}
			}
			if err == nil && why == "" {
				err = j.purgeOne(ctx, k, one)
				if err == nil {
					purged++
					continue
				}
			}
			k.say("a run that goes before it may not yet: " + why)
			if stay = append(stay, left[i]); err != nil {
				stay = append(stay, left[i+1:]...)
				break
			}
		}
		if len(stay) > 0 {
			waits = true
			j.mu.Lock()
			j.index.giveBack(g, stay)
			j.mu.Unlock()
		}
		if err != nil {
			return purged, true, err
		}
	}
	return purged, waits, nil
}

// edge is the sequence below which there is nothing but runs that go, each of them whole, and
// fences that others followed; 0 if too few lie there. A run that goes and reaches over the edge is
// purged by its subject first.
func (j *Janitor) edge(ctx context.Context, p int, ready []*candidate) (uint64, error) {
	if len(ready) < fewest {
		return 0, nil
	}
	ns := j.o.Namespace
	stream := ns.StreamHistory(p)
	fence, err := j.o.Conn.LastBySubject(ctx, stream, ns.Fence(p))
	if err != nil {
		return 0, err
	}
	goes := make(map[string]bool, len(ready))
	for _, c := range ready {
		goes[c.subject] = true
	}
	edge, n := uint64(0), 0
	err = j.o.Conn.Scan(ctx, stream, natsconn.ReadOptions{HeadersOnly: true},
		func(s natsconn.Stored) error {
			edge = s.Seq // what lies below has been looked at
			if n++; n > longest || s.Seq >= fence.Seq ||
				s.Subject != ns.Fence(p) && !goes[s.Subject] {
				return errEdge
			}
			return nil
		})
	if err != nil && !errors.Is(err, errEdge) {
		return 0, err
	}
	below := 0
	for _, c := range ready {
		if c.seq < edge {
			below++
		}
	}
	if below < fewest {
		return 0, nil
	}
	return edge, nil
}

var errEdge = errors.New("the edge is found")
