package broker

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/internal/shortid"
	"github.com/droverhq/drover/schemas"
)

const (
	// passivateAfter is how long a run stays folded in memory behind the last message to it, once a partition has more than a
	// share of its CachedRuns: up to there waking is worth more than memory. It is a read that brings many runs at a time (rehydrateAll).
	// It is more than AlarmDelay usually is: who waits for that cannot be parked, and would stay for as long again.
	passivateAfter = 1200 * time.Millisecond
	passivateShare = 16
	// passivateRested is how long the others of them stay. What is left of a storm of runs lies scattered over the memory that the storm has
	// used, and keeps all of it: 2,500 folded runs of 100,000 held 20 MB. Whatever waits for so long can wait for a read.
	passivateRested = 10 * time.Second
	// passivateAtOnce bounds the runs that one tick looks at, and with it how long the loop is busy with them.
	passivateAtOnce = 2000
)

// passiveRun is what stays in memory of an open run that nothing happens to: where its history ends, and which alarm is armed.
// With it the next message needs one read, from any replica: an answer that does not reach the last record is refused
// (P-2). Without it the leader would be asked which run is the latest, and the alarm of the run be armed anew, or looked
// for behind its end.
//
// Nothing else may be needed: what is not in the history, such as a heartbeat or a question to the decider, keeps a run in
// memory. Folded it takes some 2 KB; to park the fold itself, encoded, would take as much as the history does.
type passiveRun struct {
	run      string
	sequence uint64 // of its last record
	snapshot uint64 // of the last one with a snapshot
	alarm    uint64 // of the armed message
	hand     uint64 // of the worker that decided last, if it wants the next task; 0 if none does (sticky.go)
	due      schemas.Timestamp
	// delayed are the activities whose tasks wait for their time. Of the others none does, whatever the history says. Instants do not tell:
	// a deadline that is read counts from the server's time of its record, and here from what was known of that (rebaseMargin).
	delayed     []int64
	recordIndex runs.RecordIndex // if the last record does not say everything
	complete    bool             // the last record says everything
	// If so, it is known by its hash, and its time need not be read (runs.RangeRead).
	mark uint64
	at   schemas.Timestamp
}

// passivateIdle forgets the runs that nothing has happened to for a while. It is called when no run is marked: one that is about to
// be settled looks idle, and would live on beside its successor.
func (p *partition) passivateIdle() {
	p.passivateDue = false
	long, rested := p.inTicks(passivateAfter), p.inTicks(passivateRested)
	for range min(passivateAtOnce, p.used.Len()) {
		r := p.oldest()
		idle, few := p.ticks-r.touched, p.used.Len() <= p.b.o.CachedRuns/passivateShare
		if idle < long || few && idle < rested {
			return
		}
		// The latest that have ended stay for those who ask how. What cannot be parked would cost the leader three questions.
		if !r.idle() || r.ended || few && r.open() && !r.canPassivate() {
			r.touched = p.ticks
			p.used.MoveToBack(r.used)
			continue
		}
		p.forget(r)
	}
}

// inTicks is a time in ticks of the checkpoint's clock.
func (p *partition) inTicks(d time.Duration) uint32 { return uint32(max(d/p.b.o.CheckpointEvery, 1)) }

// canPassivate tells whether enough is known of a run to park it.
func (r *run) canPassivate() bool { return r.open() && !r.alarm.strange && r.end.Sequence != 0 }

// passivate keeps what is known of a run that is being forgotten, if that is all there is to know.
func (p *partition) passivate(r *run) {
	if !r.canPassivate() {
		return
	}
	armed := r.alarm.seq
	if r.alarm.firing {
		armed = 0 // its worker deletes it
	}
	k := passiveRun{run: r.state.Run, sequence: r.end.Sequence, snapshot: r.end.Snapshot, alarm: armed, hand: p.workers.Number(r.sticky), due: r.alarm.due, delayed: r.state.Delayed()}
	if k.complete = r.end.Complete && len(r.end.Hash) > 0; k.complete {
		k.mark, k.at = runs.MarkOf(r.end.Hash), r.end.At
	} else if r.end.Records.LeadsTo(r.end.Sequence) {
		k.recordIndex = r.end.Records
	}
	p.drop(r.wid)
	p.passive.Add(r.wid, k.pack(p.packed[:0])) // one that has no room left is forgotten
}

// known is what its history is read by.
func (k *passiveRun) known() runs.Known {
	return runs.Known{Run: k.run, Sequence: k.sequence, Snapshot: k.snapshot, Records: k.recordIndex}
}

// waits tells whether the task of an activity is still to be put on its list.
func (k *passiveRun) waits(a *execution.Activity) bool {
	_, waits := slices.BinarySearch(k.delayed, a.ScheduledID)
	return waits
}

// drop forgets what was kept of a workflow id, if there is anything.
func (p *partition) drop(wid string) {
	if id, ok := p.passive.Find(wid); ok {
		p.passive.Delete(id)
	}
}

// pack appends what is kept of a run to b.
func (k *passiveRun) pack(b []byte) []byte {
	b = binary.AppendUvarint(b, k.sequence)
	last := k.sequence - k.snapshot // mostly small, or 0
	if k.snapshot == 0 {
		last = 0
	}
	b = binary.AppendUvarint(b, last<<4|bit(len(k.recordIndex) > 0)<<3|bit(len(k.delayed) > 0)<<2|bit(k.snapshot != 0)<<1|bit(k.complete))
	b = binary.AppendUvarint(b, k.alarm)
	b = binary.AppendUvarint(b, k.hand)
	b = binary.AppendVarint(b, int64(k.due))
	if n := len(k.delayed); n > 0 { // mostly none
		b = binary.AppendUvarint(b, uint64(n))
		for _, id := range k.delayed {
			b = binary.AppendUvarint(b, uint64(id))
		}
	}
	if n := len(k.recordIndex); n > 0 { // backwards from the last record
		b = binary.AppendUvarint(b, uint64(n))
		for i := n - 1; i > 0; i-- {
			b = binary.AppendUvarint(b, k.recordIndex[i]-k.recordIndex[i-1])
		}
	}
	if k.complete {
		b = binary.AppendVarint(b, int64(k.due-k.at)) // shorter than the instant
		b = binary.LittleEndian.AppendUint64(b, k.mark)
	}
	return shortid.Append(b, k.run)
}

// unpack reads what pack wrote.
func unpack(b []byte) *passiveRun {
	next := func() uint64 {
		v, n := binary.Uvarint(b)
		b = b[max(n, 0):]
		return v
	}
	k := &passiveRun{sequence: next()}
	flags := next()
	if flags&2 != 0 {
		k.snapshot = k.sequence - flags>>4
	}
	k.complete, k.alarm, k.hand = flags&1 != 0, next(), next()
	due, n := binary.Varint(b)
	b = b[max(n, 0):]
	k.due = schemas.Timestamp(due)
	if flags&4 != 0 {
		k.delayed = make([]int64, next())
		for i := range k.delayed {
			k.delayed[i] = int64(next())
		}
	}
	if flags&8 != 0 {
		k.recordIndex = make(runs.RecordIndex, next())
		seq := k.sequence
		for i := len(k.recordIndex) - 1; i >= 0; i-- {
			if k.recordIndex[i] = seq; i > 0 {
				seq -= next()
			}
		}
	}
	if k.complete {
		before, n := binary.Varint(b)
		b = b[max(n, 0):]
		k.at, k.mark, b = k.due-schemas.Timestamp(before), binary.LittleEndian.Uint64(b), b[8:]
	}
	k.run = shortid.Text(b)
	return k
}

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// activate takes what is known of a run that is about to be loaded.
func (p *partition) activate(r *run) {
	if id, ok := p.passive.Find(r.wid); ok {
		r.passive = unpack(p.passive.More(id)) // until the run is loaded
		p.passive.Delete(id)
	}
}

// singleReplica tells whether the history has one copy. It is asked before each read: a server that was no part of a cluster may
// become one, and only then can there be others.
func (p *partition) singleReplica() bool {
	return !p.replicated && p.b.reads.NATS().ConnectedClusterName() == ""
}
