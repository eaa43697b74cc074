package timers

import (
	"math"
	"slices"
	"time"

	"github.com/droverhq/drover/internal/compactmap"
)

// alarm is one run's alarm. There may be a million of them, so it has no pointers, and the book
// holds all that there is of it in some 85 bytes.
type alarm struct {
	// its sequence, and above it, from seqBits on, the number of the fence of the owner who armed
	// it (fences)
	message uint64
	due     int64 // Unix nanoseconds, by the server's clock
	// how much later than due to ring, in tenths of a second: 0 unless a ring was not stored
	late  uint32
	place int32 // in the queue; ringing when it is not there
	// Its neighbours in the order of their messages; nobody if there is none.
	previous, next compactmap.ID
}

// tenth is what late counts, in nanoseconds.
const tenth = int64(100 * time.Millisecond)

// seqBits are enough for any sequence: 89 years of 100,000 alarms a second in a partition.
const seqBits = 48

// seq is the sequence of the alarm's message.
func (a *alarm) seq() uint64 { return a.message & (1<<seqBits - 1) }

// at is when to ring, in Unix nanoseconds.
func (a *alarm) at() int64 { return a.due + int64(a.late)*tenth }

// fireAt lets an alarm ring at a time: not before it, and by a tenth of a second later at most.
func (a *alarm) fireAt(at int64) {
	a.late = uint32(min(max(at-a.due+tenth-1, 0)/tenth, math.MaxUint32))
}

const (
	// firing is the place of an alarm whose ring is under way.
	firing = -1
	// nobody is no alarm.
	nobody = ^compactmap.ID(0)
)

// alarmIndex holds the newest alarm of each run, in three orders: by name, by when to ring, and by
// message.
//
// The last tells which is the first message that is still needed: what stands before it in the
// stream may be purged at once, which costs the server as much as the deletion of one message does.
// Considered: to look for the smallest sequence. It holds everything up while it looks at a million
// alarms.
//
// Who remembers an alarm by its number remembers the sequence too: the number may be that of
// another alarm by now (is).
type alarmIndex struct {
	alarms      *compactmap.Map[alarm] // by what their subjects end in
	queue       []compactmap.ID        // a heap: the one to ring first at its head
	first, last compactmap.ID          // by message
	// messages that no alarm stands for and that are needed, ascending
	pins   []uint64
	fences fences
	read   uint64 // the highest sequence that was noted
}

// newAlarmIndex makes a book for so many alarms at most.
func newAlarmIndex(most int) alarmIndex {
	return alarmIndex{alarms: compactmap.New[alarm](most), first: nobody, last: nobody}
}

// note writes down an alarm, in place of the one of that name. It tells whether the alarm is now
// the first to ring, and false if the book has no room for it.
func (b *alarmIndex) note(name string, seq, fence uint64, due int64) (head, ok bool) {
	if seq>>seqBits != 0 {
		return false, false
	}
	id, found := b.alarms.Find(name)
	if found {
		b.unlink(b.alarms.At(id))
	} else if id, ok = b.alarms.Add(name, nil); !ok {
		return false, false
	}
	a := b.alarms.At(id)
	if !found {
		a.place = firing
	}
	a.message, a.due = seq|b.fences.number(fence)<<seqBits, due
	b.link(id, a)
	b.put(id, due)
	return a.place == 0, true
}

// fence is that of the owner who armed an alarm; 0 if it is not known.
func (b *alarmIndex) fence(a *alarm) uint64 { return b.fences.of(a.message >> seqBits) }

// is tells whether a number still is that of the alarm with this message.
func (b *alarmIndex) is(id compactmap.ID, seq uint64) bool {
	return b.alarms.Has(id) && b.alarms.At(id).seq() == seq
}

// strike takes an alarm out of the book.
func (b *alarmIndex) strike(id compactmap.ID) {
	a := b.alarms.At(id)
	b.unlink(a)
	if a.place != firing { // it was read twice
		b.remove(int(a.place))
	}
	b.alarms.Delete(id)
}

// link makes an alarm the last one by message.
func (b *alarmIndex) link(id compactmap.ID, a *alarm) {
	b.read = max(b.read, a.seq())
	a.previous, a.next = b.last, nobody
	if b.last == nobody {
		b.first = id
	} else {
		b.alarms.At(b.last).next = id
	}
	b.last = id
}

func (b *alarmIndex) unlink(a *alarm) {
	if a.previous == nobody {
		b.first = a.next
	} else {
		b.alarms.At(a.previous).next = a.next
	}
	if a.next == nobody {
		b.last = a.previous
	} else {
		b.alarms.At(a.next).previous = a.previous
	}
}

// pin keeps a message that no alarm stands for from being purged, until unpin.
func (b *alarmIndex) pin(seq uint64) {
	b.read = max(b.read, seq)
	if i, found := slices.BinarySearch(b.pins, seq); !found {
		b.pins = slices.Insert(b.pins, i, seq)
	}
}

func (b *alarmIndex) unpin(seq uint64) {
	if i, found := slices.BinarySearch(b.pins, seq); found {
		b.pins = slices.Delete(b.pins, i, i+1)
	}
}

// lowest gives the sequence below which nothing is needed.
func (b *alarmIndex) lowest() uint64 {
	lowest := b.read + 1
	if b.first != nobody {
		lowest = b.alarms.At(b.first).seq()
	}
	if len(b.pins) > 0 {
		lowest = min(lowest, b.pins[0])
	}
	return lowest
}
