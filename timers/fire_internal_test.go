package timers

import (
	"errors"
	"testing"
)

// taken is a term that has taken the alarm of a run off the queue, and the ring of it.
func taken(t *testing.T) (*term, call) {
	t.Helper()
	s := newTerm(New(nil, nil), 0, nil)
	s.alarmIndex.note("w.RUN", 1, 7, 1000)
	id, ok := s.alarmIndex.next(1000)
	if !ok {
		t.Fatal("nothing is due")
	}
	s.flying++
	return s, call{id: id, seq: 1, fence: 7, due: 1000}
}

// A ring that comes to nothing, of an alarm that another has replaced, is under way no more: else there would be no room for others one day.
func TestFireOfAReplacedAlarmMakesRoom(t *testing.T) { // P-10
	s, c := taken(t)
	s.alarmIndex.note("w.RUN", 2, 7, 2000)
	s.byInbox(&alarmBatch{calls: map[uint64]call{c.seq: c}})
	if s.flying != 0 {
		t.Fatalf("%d rings are under way, want none", s.flying)
	}
	if id, ok := s.alarmIndex.next(2000); !ok || id != c.id {
		t.Fatal("the alarm that replaced it does not ring")
	}
}

// A ring that was not stored does not bring back an alarm that has been replaced, and has rung, meanwhile.
func TestFireOfAnAlarmThatIsGone(t *testing.T) { // P-10
	s, c := taken(t)
	s.alarmIndex.note("w.RUN", 2, 7, 2000)
	id, _ := s.alarmIndex.next(2000)
	s.flying++
	s.done(call{id: id, seq: 2})
	s.fired(c, errors.New("not stored"))
	if s.flying != 0 || len(s.alarmIndex.queue) != 0 || s.alarmIndex.alarms.Len() != 0 || len(s.tombstones) != 1 {
		t.Fatalf("%d under way, %d wait, %d in the book, %d to delete; want the second one to delete only", s.flying, len(s.alarmIndex.queue), s.alarmIndex.alarms.Len(), len(s.tombstones))
	}
}
