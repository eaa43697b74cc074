package broker

import (
	"cmp"
	"context"
	"slices"

	"github.com/droverhq/drover/broker/post"
)

// Parked runs whose last record says everything are read by the sequence of that record, and those that a batch of the loop wakes
// together in ranges of sequences: sleepers that were started together have their records beside each other, and wake together.
// One question brings up to wakeAtOnce of them, and by sequence the server needs neither its index of subjects nor to count what
// is behind. What such a read does not bring is read by its subject, as any other run.
const (
	// wakeAtOnce is how many records one read brings at most: it is decoded by one goroutine, and its first run waits for its last.
	wakeAtOnce = 64
	// wakeGap is how far apart two records may be in one range. What lies between them is read in vain.
	wakeGap = 3
)

// wake has a parked run read at the end of the loop's batch.
func (p *partition) wake(r *run) { p.waking = append(p.waking, r) }

// wakeAll reads what was woken since it was called last.
func (p *partition) wakeAll() {
	all := p.waking
	p.waking = nil
	slices.SortFunc(all, func(a, b *run) int { return cmp.Compare(a.parked.sequence, b.parked.sequence) })
	for len(all) > 0 {
		first, n := all[0].parked.sequence, 1
		for ; n < len(all); n++ {
			next := all[n].parked.sequence
			if next-all[n-1].parked.sequence > wakeGap || next-first >= wakeAtOnce {
				break
			}
		}
		p.readRange(all[:n:n])
		all = all[n:]
	}
}

// sleeper is a parked run that is being read.
type sleeper struct {
	*run
	subject string
	found   *loaded // nil if the read did not bring its record
	err     error   // in that record
}

// readRange reads parked runs, ordered by the sequences of their last records, with one question.
func (p *partition) readRange(runs []*run) {
	all := make([]sleeper, len(runs))
	for i, r := range runs {
		all[i] = sleeper{run: r, subject: p.b.ns.History(p.n, r.wid, r.parked.run)}
	}
	first := runs[0].parked.sequence
	n := int(runs[len(runs)-1].parked.sequence-first) + 1
	readAsync(p.b, p.loop, func(ctx context.Context) (struct{}, error) {
		got, err := p.b.reads.RangeDirect(ctx, p.b.ns.StreamHistory(p.n), first, n)
		for i := range all {
			all[i].find(got)
		}
		return struct{}{}, err
	}, func(_ struct{}, err error) {
		for i := range all {
			p.woken(&all[i], err)
		}
	})
}

// find takes the sleeper's record out of a read, whose messages are in order. It uses nothing of the run that the loop changes.
func (s *sleeper) find(got []post.Stored) {
	i, ok := slices.BinarySearchFunc(got, s.parked.sequence, func(m post.Stored, seq uint64) int { return cmp.Compare(m.Seq, seq) })
	if !ok || got[i].Subject != s.subject || !isRecord(&got[i]) {
		return
	}
	l := &loaded{}
	if s.err = l.add(&got[i]); s.err == nil {
		s.found = l
	}
}

// woken takes what a read has found of a parked run.
func (p *partition) woken(s *sleeper, err error) {
	if err = cmp.Or(err, s.err); err != nil {
		s.parked = nil // the next try asks the leader
		p.unloaded(s.run, err)
		return
	}
	if s.found == nil {
		s.parked.whole = false
		p.load(s.run)
		return
	}
	p.sound(s.run)
	p.ready(s.run, s.found)
}
