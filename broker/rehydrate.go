package broker

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/droverhq/drover/schemas"
)

// Parked runs whose last record says everything are read by the sequence of that record, and those that a batch of the loop wakes
// together in stretches of the history (range read.go): sleepers that were started together have their records beside each other, and
// wake together. One question brings up to rehydrateAtOnce of them, and by sequence the server needs neither its index of subjects nor
// to count what is behind. What such a read does not bring is read by its subject, as any other run.
const (
	// rehydrateAtOnce is how many records one read brings at most: its first run waits for its last.
	rehydrateAtOnce = 64
	// rehydrateGap is how far apart two records may be in one range read. What lies between them is read in vain.
	rehydrateGap = 3
)

// rehydrate has a parked run read at the end of the loop's batch.
func (p *partition) rehydrate(r *run) { p.rehydrating = append(p.rehydrating, r) }

// rehydrateAll reads what was woken since it was called last.
func (p *partition) rehydrateAll() {
	if len(p.rehydrating) == 0 {
		return
	}
	rest := p.rehydrating
	p.rehydrating = nil
	slices.SortFunc(rest, func(a, b *run) int { return cmp.Compare(a.passive.sequence, b.passive.sequence) })
	for len(rest) > 0 {
		n := together(rest)
		p.readRangeRead(&rangeRead{from: rest[0].passive.sequence, end: rest[n-1].passive.sequence + 1, asleep: rest[:n:n]})
		rest = rest[n:]
	}
}

// rehydrated takes what a read has found of a parked run.
func (p *partition) rehydrated(r *run, st *rangeRead) {
	k := r.passive
	body, hash := st.take(k)
	if body == nil {
		k.complete = false
		p.load(r)
		return
	}
	l, err := k.unfold(r.wid, body, hash)
	if err != nil {
		r.passive = nil // the next try asks the leader
		p.unloaded(r, err)
		return
	}
	if p.isIntact(r) {
		p.ready(r, l)
	}
}

// unfold rebuilds a run from its last record, which says everything, and which has this hash.
func (k *passiveRun) unfold(wid string, body, hash []byte) (*loaded, error) {
	var r schemas.Record
	err := decode(body, &r)
	if err == nil && (r.WorkflowID != wid || r.Run != k.run) {
		err = fmt.Errorf("it is of workflow %q, run %s", r.WorkflowID, r.Run)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: record %d of workflow %q, run %s: %w", damagedBy(err), k.sequence, wid, k.run, err)
	}
	l := &loaded{}
	if err := l.record(&r, hash, k.sequence, k.at); err != nil {
		return nil, fmt.Errorf("record %d of workflow %q, run %s: %w", k.sequence, wid, k.run, err)
	}
	return l.understood()
}
