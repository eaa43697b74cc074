package timers

import (
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/droverhq/drover/internal/compactmap"
)

// shelf is a book beside its model, which looks through everything.
type shelf struct {
	b      alarmIndex
	alarms map[string]entry
	pins   map[uint64]bool
	firing []memory
	seq    uint64
}

// entry is what the model knows of an alarm.
type entry struct {
	seq uint64
	due int64
	at  int64 // when to ring; 0 while it rings
}

// memory is what is remembered of an alarm that was taken off the queue.
type memory struct {
	id   compactmap.ID
	seq  uint64
	name string
}

func (s *shelf) note(t *rapid.T) {
	name := strconv.Itoa(rapid.IntRange(0, 30).Draw(t, "name"))
	s.seq += rapid.Uint64Range(1, 3).Draw(t, "later")
	due := rapid.Int64Range(1, 20).Draw(t, "due") * tenth
	head, ok := s.b.note(name, s.seq, 7, due)
	s.alarms[name] = entry{seq: s.seq, due: due, at: due}
	// Among equals any may be the first.
	if least := s.least(); !ok || head && due != least || !head && due < s.b.at(0) {
		t.Fatalf("got head %v, %v for %d; the least is %d", head, ok, due, least)
	}
}

// least is when the first of those that wait is to ring.
func (s *shelf) least() int64 {
	least := int64(math.MaxInt64)
	for _, a := range s.alarms {
		if a.at != 0 {
			least = min(least, a.at)
		}
	}
	return least
}

func (s *shelf) next(t *rapid.T) {
	now, least := rapid.Int64Range(1, 20).Draw(t, "now")*tenth, s.least()
	id, ok := s.b.next(now)
	if want := least <= now; ok != want {
		t.Fatalf("at %d: got an alarm: %v, the first is to ring at %d", now, ok, least)
	}
	if !ok {
		return
	}
	name, got := string(s.b.alarms.Text(id)), s.b.alarms.At(id)
	a := s.alarms[name]
	if got.at() != least || got.seq() != a.seq || got.due != a.due || s.b.fence(got) != 7 {
		t.Fatalf("%s: got %+v, want %+v at %d", name, *got, a, least)
	}
	a.at = 0
	s.alarms[name] = a
	s.firing = append(s.firing, memory{id, got.seq(), name})
}

// fired is the outcome of a ring: it is done, or to be tried again.
func (s *shelf) fired(t *rapid.T) {
	if len(s.firing) == 0 {
		return
	}
	i := rapid.IntRange(0, len(s.firing)-1).Draw(t, "which")
	m := s.firing[i]
	s.firing = slices.Delete(s.firing, i, i+1)
	a, there := s.alarms[m.name]
	current := there && a.seq == m.seq
	if got := s.b.is(m.id, m.seq); got != current {
		t.Fatalf("%s with message %d: current is %v, want %v", m.name, m.seq, got, current)
	}
	switch {
	case !current:
	case rapid.Bool().Draw(t, "again"):
		at := rapid.Int64Range(1, 20*tenth).Draw(t, "at")
		a.at = max((at+tenth-1)/tenth*tenth, a.due)
		s.alarms[m.name] = a
		s.b.put(m.id, at)
	default:
		delete(s.alarms, m.name)
		s.b.strike(m.id)
	}
}

func (s *shelf) pin(t *rapid.T) {
	s.seq++
	s.b.pin(s.seq)
	s.b.pin(s.seq) // it was read twice
	s.pins[s.seq] = true
}

func (s *shelf) unpin(t *rapid.T) {
	if len(s.pins) == 0 {
		return
	}
	seq := rapid.SampledFrom(slices.Sorted(maps.Keys(s.pins))).Draw(t, "letter")
	delete(s.pins, seq)
	s.b.unpin(seq)
	s.b.unpin(seq)
}

func (s *shelf) check(t *rapid.T) {
	lowest, waiting := s.seq+1, 0
	for name, a := range s.alarms {
		lowest = min(lowest, a.seq)
		if a.at != 0 {
			waiting++
		}
		if id, ok := s.b.alarms.Find(name); !ok || !s.b.is(id, a.seq) {
			t.Fatalf("%s is not in the book", name)
		}
	}
	for seq := range s.pins {
		lowest = min(lowest, seq)
	}
	if got := s.b.lowest(); got != lowest {
		t.Fatalf("lowest is %d, want %d", got, lowest)
	}
	if got := s.b.alarms.Len(); got != len(s.alarms) || len(s.b.queue) != waiting {
		t.Fatalf("got %d alarms, %d of them in the queue; want %d, %d", got, len(s.b.queue), len(s.alarms), waiting)
	}
	if waiting > 0 && s.b.at(0) != s.least() {
		t.Fatalf("the head of the queue is to ring at %d, want %d", s.b.at(0), s.least())
	}
}

// Whatever is read, rung, tried again and replaced, the book knows what is the first to ring and the first message that is needed.
func TestAlarmIndexKnowsTheFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &shelf{b: newAlarmIndex(compactmap.MaxLen), alarms: map[string]entry{}, pins: map[uint64]bool{}}
		t.Repeat(map[string]func(*rapid.T){
			"note": s.note, "note another": s.note, "next": s.next, "rang": s.fired, "pin": s.pin, "unpin": s.unpin, "": s.check,
		})
	})
}

// An alarm that is read twice while it rings is out of the book when it has rung.
func TestAlarmReadTwiceIsStruck(t *testing.T) {
	b := newAlarmIndex(compactmap.MaxLen)
	b.note("w.RUN", 5, 0, 1)
	id, ok := b.next(1)
	if !ok {
		t.Fatal("got no alarm, want the one that is due")
	}
	b.note("w.RUN", 5, 0, 1)
	b.strike(id)
	if id, ok := b.next(10); ok || b.alarms.Len() != 0 || b.lowest() != 6 {
		t.Errorf("got alarm %d (%v), %d in the book, lowest %d; want none, 0, 6", id, ok, b.alarms.Len(), b.lowest())
	}
}

// The queue gives memory back once a storm is over.
func TestQueueShrinks(t *testing.T) {
	const n = 50_000
	b := newAlarmIndex(compactmap.MaxLen)
	for i := range n {
		b.note(strconv.Itoa(i), uint64(i+1), 0, int64(i*7919%n))
	}
	for i := range n {
		id, ok := b.next(n)
		if !ok || b.alarms.At(id).at() != int64(i) {
			t.Fatalf("alarm %d: got %v at %d", i, ok, b.alarms.At(id).at())
		}
		b.strike(id)
	}
	if got := cap(b.queue); got > 2048 {
		t.Errorf("an empty queue has room for %d, want 2048 at most", got)
	}
}

// An alarm takes what its comment says.
func TestAlarmIsSmall(t *testing.T) {
	const n = 100_000
	before := alive()
	b := newAlarmIndex(compactmap.MaxLen)
	for i := range n {
		b.note(nameOf(fmt.Sprintf("sleeper-%05d.01JABCDEFGHJKMNPQRSTVWXYZ0", i)), uint64(i+1), 7, int64(i*7919%n))
	}
	if got := (alive() - before) / n; got > 88 {
		t.Errorf("got %d bytes an alarm, want at most 88", got)
	}
	runtime.KeepAlive(b.alarms)
}

// alive is how many bytes the heap holds.
func alive() int {
	runtime.GC()
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int(s.HeapAlloc)
}

// However long an alarm is overdue, a ring that was not stored is tried again later, and not at once.
func TestOldAlarmsWait(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 1, time.UTC).UnixNano()
	for _, due := range []int64{now, now - 1, now - int64(10*365*24*time.Hour), now + int64(time.Hour)} {
		a := alarm{due: due}
		at := max(now+int64(fireAgain), due)
		if a.fireAt(now + int64(fireAgain)); a.at() < at || a.at() >= at+tenth {
			t.Errorf("due at %d: got %d, want %d or up to a tenth of a second more", due, a.at(), at)
		}
	}
}
