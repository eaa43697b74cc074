package timers

import (
	"testing"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
)

func stored(t *testing.T, subj string, seq uint64) natsconn.Stored {
	t.Helper()
	body, err := schemas.Marshal(&schemas.Alarm{V: schemas.Version, Run: "RUN", Due: 1})
	if err != nil {
		t.Fatal(err)
	}
	return natsconn.Stored{Subject: subj, Seq: seq, Data: body}
}

// An alarm in the stream of another partition or namespace would be rung to somebody who does not own its run.
func TestAlarmOfAnotherStream(t *testing.T) {
	s := newTerm(New(nil, nil), 1, nil)
	for _, tc := range []struct {
		ns        subject.Namespace
		partition int
		ok        bool
	}{{"default", 1, true}, {"default", 0, false}, {"other", 1, false}} {
		if _, _, err := s.decode(stored(t, tc.ns.Alarm(tc.partition, "w", "RUN"), 1)); (err == nil) != tc.ok {
			t.Errorf("of partition %d of namespace %s: got %v", tc.partition, tc.ns, err)
		}
	}
}

// A book that had no room once lacks an alarm, whatever it takes after that, and says so at once.
func TestAlarmIndexThatWasFull(t *testing.T) {
	w := New(nil, nil)
	w.SetMostAlarms(1)
	s := newTerm(w, 0, nil)
	for i, wid := range []string{"a", "b", "a"} {
		s.take(stored(t, subject.Namespace("default").Alarm(0, wid, "RUN"), uint64(i+1)))
		if i == 1 && len(s.wake) == 0 {
			t.Error("nobody hears of it")
		}
		select {
		case <-s.wake:
		default:
		}
	}
	if !s.overflows() {
		t.Error("it is forgotten that an alarm had no room")
	}
}
