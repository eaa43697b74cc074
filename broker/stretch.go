package broker

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"slices"
)

// Only the bodies of records are read to wake somebody: the headers that the server adds to each message of a direct get, and the
// reading of them, were more than half of what a read costs. That a body is the record in question its hash says, of which a
// parked run keeps the mark; the sequence alone would not do where messages are missing.
//
// Sleepers often wake in the order of their records. Once several reads have begun where the one before ended, a read brings what
// is behind it too, and the next one goes out before it is needed: so a wake costs a share of a question, and waits for none. What
// was read ahead is bounded, and nothing but memory: a body that nobody wakes for is forgotten.
const (
	// stretchBytes is where a read ends that has brought large records. The others are asked for anew.
	stretchBytes = 4 << 20
	// aheadRecords and aheadBytes bound a read that goes further than it is known to be worth, and mostAhead how many there are.
	aheadRecords, aheadBytes = 256, 512 << 10
	mostAhead                = 2
	// aheadSlack is how far from the end of one read the next one begins that still goes on from there: wakes come nearly in order.
	aheadSlack = 64
	// aheadAfter is how many reads in a row must do so, and aheadFailed how many more when one was in vain.
	aheadAfter, aheadFailed = 2, 8
)

// together is how many of those that sleep, in the order of their last records, one read brings.
func together[T any](asleep []T, sequence func(T) uint64) int {
	first := sequence(asleep[0])
	last, n := first, 1
	for ; n < len(asleep); n++ {
		next := sequence(asleep[n])
		if next-last > wakeGap || next-first >= wakeAtOnce {
			break
		}
		last = next
	}
	return n
}

// stretch is a piece of the history that is being read, or was. One goroutine uses it: the loop, or an audit its own.
type stretch struct {
	from, end uint64 // sequences; end is the first one behind it
	asleep    []*run // who waits for the read
	came      bool
	bodies    [][]byte       // nil where one was used. Each stands in its place unless byMark is there
	byMark    map[uint64]int // places, where messages are missing
	used      int
	touched   uint32 // the tick of the last use
}

// foresight is what a partition reads before it is asked for.
type foresight struct {
	stretches []*stretch // the oldest first
	front     uint64     // where the last read ended
	steps     int        // reads in a row that began there
}

// markOf is what a parked run keeps of the hash of its last record.
func markOf(hash []byte) uint64 {
	if len(hash) < 8 {
		return 0
	}
	return binary.LittleEndian.Uint64(hash)
}

// onward tells whether a read goes on where the one before it ended, as several before it have.
func (f *foresight) onward(st *stretch) bool {
	switch {
	case st.from+2*aheadRecords < f.front || st.from > f.front+aheadSlack: // elsewhere
		f.steps, f.front = min(f.steps, 0), st.end
		return false
	case st.from+aheadSlack < f.front: // a latecomer
		return false
	}
	f.steps, f.front = f.steps+1, max(f.front, st.end)
	return f.steps > aheadAfter
}

// readAhead reads a stretch and what is behind it.
func (p *partition) readAhead(st *stretch) {
	st.end, st.touched = max(st.end, min(st.from+aheadRecords, p.last+1)), p.ticks
	p.front = max(p.front, st.end)
	if len(p.stretches) == mostAhead {
		p.unsee(p.stretches[0])
	}
	p.stretches = append(p.stretches, st)
	p.readStretch(st, aheadBytes)
}

// readStretch reads a stretch of the history with one question.
func (p *partition) readStretch(st *stretch, most int) {
	from, n := st.from, int(st.end-st.from)
	type answer struct {
		bodies [][]byte
		last   uint64
	}
	readAsync(p.b, p.loop, func(ctx context.Context) (a answer, err error) {
		a.bodies, a.last, err = p.b.reads.BodiesDirect(ctx, p.b.ns.StreamHistory(p.n), from, n, most)
		return a, err
	}, func(a answer, err error) { p.stretchCame(st, a.bodies, a.last, err) })
}

// stretchCame takes what a read has brought.
func (p *partition) stretchCame(st *stretch, bodies [][]byte, last uint64, err error) {
	asleep := st.asleep
	st.asleep, st.came = nil, true
	if err == nil {
		st.fill(bodies, last)
	}
	if err != nil || len(bodies) == 0 || st.byMark != nil {
		p.lose(st)
		p.steps = -aheadFailed
	}
	for _, r := range asleep {
		switch {
		case err != nil:
			r.parked = nil // the next try asks the leader
			p.unloaded(r, err)
		case r.parked.sequence >= st.end && len(bodies) > 0:
			p.wake(r) // the read was large enough without it; it will be the first of the next one, so this ends
		default:
			p.woken(r, st)
		}
	}
}

// fill takes what a read has brought, and the sequence of the last body.
func (st *stretch) fill(bodies [][]byte, last uint64) {
	st.bodies = bodies
	if len(bodies) > 0 {
		st.end = min(st.end, last+1)
	}
	if uint64(len(bodies)) != last+1-st.from {
		st.index()
	}
}

// index finds the places of bodies where messages are missing.
func (st *stretch) index() {
	st.byMark = make(map[uint64]int, len(st.bodies))
	for i, b := range st.bodies {
		hash := sha256.Sum256(b)
		st.byMark[markOf(hash[:])] = i
	}
}

// take gives the body of a parked run's last record away, and its hash; nil if it is not there.
func (st *stretch) take(k *parked) (body, hash []byte) {
	i := k.sequence - st.from
	if st.byMark != nil {
		place, ok := st.byMark[k.mark]
		if !ok {
			return nil, nil
		}
		i = uint64(place)
	}
	if i >= uint64(len(st.bodies)) || st.bodies[i] == nil {
		return nil, nil
	}
	body = st.bodies[i]
	sum := sha256.Sum256(body)
	if markOf(sum[:]) != k.mark {
		return nil, nil
	}
	st.bodies[i] = nil
	st.used++
	return body, sum[:]
}

// wasRead wakes a run whose record was read before it was asked for, or lets it wait for a read that is under way.
func (p *partition) wasRead(r *run) bool {
	seq := r.parked.sequence
	for _, st := range p.stretches {
		if seq < st.from || seq >= st.end {
			continue
		}
		st.touched = p.ticks
		if !st.came {
			st.asleep = append(st.asleep, r)
			return true
		}
		p.woken(r, st)
		p.lookAhead(st, seq)
		return true
	}
	return false
}

// lookAhead reads what is behind the newest stretch once a half of it is behind the sleepers.
func (p *partition) lookAhead(st *stretch, seq uint64) {
	if p.stretches[len(p.stretches)-1] == st && seq >= st.from+(st.end-st.from)/2 && st.end <= p.last {
		p.readAhead(&stretch{from: st.end, end: st.end + 1})
	}
}

// unsee lets go of what was read ahead. If it was in vain, it takes longer until something is read ahead again.
func (p *partition) unsee(st *stretch) {
	if st.came && uint64(st.used)*4 < st.end-st.from {
		p.steps = -aheadFailed
	}
	p.lose(st)
}

func (f *foresight) lose(st *stretch) {
	f.stretches = slices.DeleteFunc(f.stretches, func(other *stretch) bool { return other == st })
}

// lookAway gives the memory of what was read ahead back when nobody has woken for a tick.
func (p *partition) lookAway() {
	for _, st := range slices.Clone(p.stretches) {
		if st.came && p.ticks-st.touched > 1 {
			p.unsee(st)
		}
	}
}
