package broker

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/droverhq/drover/schemas"
)

const (
	// parkAfter is how long a run stays folded in memory behind the last message to it, once a partition has more than a
	// share of its CachedRuns: up to there waking is worth more than memory. It is a read that brings many runs at a time (wakeAll).
	parkAfter = 2 * time.Second
	parkShare = 16
	// parkAtOnce bounds the runs that one tick looks at, and with it how long the loop is busy with them.
	parkAtOnce = 2000
)

// parked is what stays in memory of an open run that nothing happens to: where its history ends, and which alarm is armed.
// With it the next message needs one read, from any replica: an answer that does not reach the last record is refused
// (P-2). Without it the leader would be asked which run is the latest, and the alarm of the run be armed anew, or looked
// for behind its end.
//
// Nothing else may be needed: what is not in the history, such as a heartbeat or a question to the decider, keeps a run in
// memory. Folded it takes some 2 KB; to park the fold itself, encoded, would take as much as the history does.
type parked struct {
	run      string
	sequence uint64 // of its last record
	snapshot uint64 // of the last one with a snapshot
	alarm    uint64 // of the armed message
	due      schemas.Timestamp
	whole    bool // the last record says everything
}

// parkIdle forgets the runs that nothing has happened to for a while. It is called when no run is marked: one that is about to
// be settled looks idle, and would live on beside its successor.
func (p *partition) parkIdle() {
	p.parkDue = false
	long := uint32(max(parkAfter/p.b.o.CheckpointEvery, 1))
	for range min(parkAtOnce, p.lru.Len()-p.b.o.CachedRuns/parkShare) {
		r, _ := p.lru.Front().Value.(*run)
		if p.ticks-r.touched < long {
			return
		}
		if !r.idle() || r.ended { // the latest that have ended stay for those who ask how
			r.touched = p.ticks
			p.lru.MoveToBack(r.element)
			continue
		}
		p.forget(r)
	}
}

// park keeps what is known of a run that is being forgotten, if that is all there is to know.
func (p *partition) park(r *run) {
	if !r.open() || r.alarm.strange || r.sequence == 0 {
		return
	}
	armed := r.alarm.seq
	if r.alarm.ringing {
		armed = 0 // its worker deletes it
	}
	k := parked{run: r.state.Run, sequence: r.sequence, snapshot: r.snapshot, alarm: armed, due: r.alarm.due, whole: r.whole}
	key, rest := k.pack(r.wid)
	p.parked[key] = rest
}

// pack encodes what is kept of a run in one piece of memory, of which the map's key is the first part: there may be a million of them.
func (k *parked) pack(wid string) (key, rest string) {
	b := make([]byte, 0, len(wid)+len(k.run)+5*binary.MaxVarintLen64)
	b = append(b, wid...)
	b = binary.AppendUvarint(b, k.sequence)
	last := k.sequence - k.snapshot // mostly small, or 0
	if k.snapshot == 0 {
		last = 0
	}
	b = binary.AppendUvarint(b, last<<2|bit(k.snapshot != 0)<<1|bit(k.whole))
	b = binary.AppendUvarint(b, k.alarm)
	b = binary.AppendVarint(b, int64(k.due))
	all := string(append(b, k.run...))
	return all[:len(wid)], all[len(wid):]
}

// unpack reads what pack wrote.
func unpack(rest string) *parked {
	b := []byte(rest)
	next := func() uint64 {
		v, n := binary.Uvarint(b)
		b = b[max(n, 0):]
		return v
	}
	k := &parked{sequence: next()}
	flags := next()
	if flags&2 != 0 {
		k.snapshot = k.sequence - flags>>2
	}
	k.whole, k.alarm = flags&1 != 0, next()
	due, n := binary.Varint(b)
	k.due, k.run = schemas.Timestamp(due), string(b[max(n, 0):])
	return k
}

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// unpark takes what is known of a run that is about to be loaded.
func (p *partition) unpark(r *run) {
	if k, ok := p.parked[r.wid]; ok {
		delete(p.parked, r.wid)
		r.parked = unpack(k) // until the run is loaded
	}
}

// loadParked reads a parked run: one batch from its last snapshot on.
func (b *Broker) loadParked(ctx context.Context, partition int, wid string, k *parked) (*loaded, error) {
	l, err := b.foldUpTo(ctx, partition, b.ns.History(partition, wid, k.run), max(k.snapshot, 1), k.sequence)
	if err == nil && (l == nil || l.sequence != k.sequence) {
		err = fmt.Errorf("%w: record %d of workflow %q is missing", errDamaged, k.sequence, wid)
	}
	return l, err
}

// alone tells whether the history has one copy. It is asked before each read: a server that was no part of a cluster may
// become one, and only then can there be others.
func (p *partition) alone() bool {
	return !p.replicated && p.b.reads.NATS().ConnectedClusterName() == ""
}
