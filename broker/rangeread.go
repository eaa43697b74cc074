package broker

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
)

// Only the bodies of records are read to wake somebody: the headers that the server adds to each message of a direct get, and the
// reading of them, were more than half of what a read costs. That a body is the record in question its hash says, of which a
// parked run keeps the mark; the sequence alone would not do where messages are missing.

// rangeReadBytes is where a read ends that has brought large records. The others are asked for anew.
const rangeReadBytes = 4 << 20

// together is how many of the runs that sleep, in the order of their last records, one read brings.
func together(asleep []*run) int {
	first := asleep[0].passive.sequence
	last, n := first, 1
	for ; n < len(asleep); n++ {
		next := asleep[n].passive.sequence
		if next-last > rehydrateGap || next-first >= rehydrateAtOnce {
			break
		}
		last = next
	}
	return n
}

// rangeRead is a piece of the history that is read with one question. Only the loop uses it.
type rangeRead struct {
	from, end uint64         // sequences; end is the first one behind it
	asleep    []*run         // who waits for the read
	bodies    [][]byte       // nil where one was used. Each stands in its place unless byMark is there
	byMark    map[uint64]int // places, where messages are missing
}

// markOf is what a parked run keeps of the hash of its last record.
func markOf(hash []byte) uint64 {
	if len(hash) < 8 {
		return 0
	}
	return binary.LittleEndian.Uint64(hash)
}

// readRangeRead reads a range read of the history with one question.
func (p *partition) readRangeRead(st *rangeRead) {
	from, n := st.from, int(st.end-st.from)
	type answer struct {
		bodies [][]byte
		last   uint64
	}
	readAsync(p.b, p.loop, func(ctx context.Context) (a answer, err error) {
		a.bodies, a.last, err = p.b.reads.BodiesDirect(ctx, p.b.ns.StreamHistory(p.n), from, n, rangeReadBytes)
		return a, err
	}, func(a answer, err error) { p.rangeReadCame(st, a.bodies, a.last, err) })
}

// rangeReadCame takes what a read has brought.
func (p *partition) rangeReadCame(st *rangeRead, bodies [][]byte, last uint64, err error) {
	if err == nil {
		st.fill(bodies, last)
	}
	for _, r := range st.asleep {
		switch {
		case err != nil:
			r.passive = nil // the next try asks the leader
			p.unloaded(r, err)
		case r.passive.sequence >= st.end && len(bodies) > 0:
			p.rehydrate(r) // the read was large enough without it; it will be the first of the next one, so this ends
		default:
			p.rehydrated(r, st)
		}
	}
}

// fill takes what a read has brought, and the sequence of the last body.
func (st *rangeRead) fill(bodies [][]byte, last uint64) {
	st.bodies = bodies
	if len(bodies) > 0 {
		st.end = min(st.end, last+1)
	}
	if uint64(len(bodies)) != last+1-st.from {
		st.index()
	}
}

// index finds the places of bodies where messages are missing.
func (st *rangeRead) index() {
	st.byMark = make(map[uint64]int, len(st.bodies))
	for i, b := range st.bodies {
		hash := sha256.Sum256(b)
		st.byMark[markOf(hash[:])] = i
	}
}

// take gives the body of a parked run's last record away, and its hash; nil if it is not there.
func (st *rangeRead) take(k *passiveRun) (body, hash []byte) {
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
	return body, sum[:]
}
