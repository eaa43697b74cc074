package broker

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/droverhq/drover/schemas"
)

// Parked runs whose last record says everything are read by the sequence of that record, and those that a batch of the loop wakes
// together in stretches of the history (stretch.go): sleepers that were started together have their records beside each other, and
// wake together. One question brings up to wakeAtOnce of them, and by sequence the server needs neither its index of subjects nor
// to count what is behind. What such a read does not bring is read by its subject, as any other run.
const (
	// wakeAtOnce is how many records one read brings at most: its first run waits for its last.
	wakeAtOnce = 64
	// wakeGap is how far apart two records may be in one stretch. What lies between them is read in vain.
	wakeGap = 3
)

// wake has a parked run read at the end of the loop's batch.
func (p *partition) wake(r *run) { p.waking = append(p.waking, r) }

// wakeAll reads what was woken since it was called last.
func (p *partition) wakeAll() {
	if len(p.waking) == 0 {
		return
	}
	rest := p.waking
	p.waking = nil
	slices.SortFunc(rest, func(a, b *run) int { return cmp.Compare(a.parked.sequence, b.parked.sequence) })
	for len(rest) > 0 {
		n := together(rest)
		p.readStretch(&stretch{from: rest[0].parked.sequence, end: rest[n-1].parked.sequence + 1, asleep: rest[:n:n]})
		rest = rest[n:]
	}
}

// woken takes what a read has found of a parked run.
func (p *partition) woken(r *run, st *stretch) {
	k := r.parked
	body, hash := st.take(k)
	if body == nil {
		k.whole = false
		p.load(r)
		return
	}
	l, err := k.unfold(r.wid, body, hash)
	if err != nil {
		r.parked = nil // the next try asks the leader
		p.unloaded(r, err)
		return
	}
	if p.sound(r) {
		p.ready(r, l)
	}
}

// unfold rebuilds a run from its last record, which says everything, and which has this hash.
func (k *parked) unfold(wid string, body, hash []byte) (*loaded, error) {
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
