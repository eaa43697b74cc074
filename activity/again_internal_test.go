package activity

import (
	"context"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/clock"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/logx"
	"github.com/droverhq/drover/schemas"
)

// What was in hand is in nobody's hand once it is done, under the token that it came with and under the one that the owner has given it: else
// another message of the attempt would wait for a twin for ever.
func TestNothingStaysInHand(t *testing.T) {
	s := &term{running: make(map[string]int)}
	one, two := &delivery{}, &delivery{}
	if s.take(one, "a") || !s.take(two, "a") {
		t.Fatal("the second one of a token has a twin, and the first has none")
	}
	if s.take(one, "b") {
		t.Fatal("a new token has a twin")
	}
	three := &delivery{}
	if !s.take(three, "a") {
		t.Fatal("a token that one of two has changed for another has no twin")
	}
	s.letGo(three)
	s.letGo(two)
	if s.take(two, "a") {
		t.Fatal("a token that was changed for another, and let go, has a twin")
	}
	for _, d := range []*delivery{one, two, two} {
		s.letGo(d)
	}
	if len(s.running) != 0 {
		t.Fatalf("%v are left", s.running)
	}
}

// A message is the same only if it is of the same list, and those of one attempt are: numbers of messages are each list's own.
func TestSameMessage(t *testing.T) {
	of := func(seq uint64, token string) *delivery {
		d := &delivery{taken: token}
		d.Seq = seq
		return d
	}
	for _, tc := range []struct {
		name  string
		other *delivery
		want  bool
	}{
		{"none", nil, false},
		{"the same", of(7, "a"), true},
		{"another message of the attempt", of(8, "a"), false},
		{"a message of that number on another list", of(7, "b"), false},
	} {
		d := of(7, "a")
		s := &term{live: map[*delivery]*attempt{d: nil}}
		if tc.other != nil {
			s.live[tc.other] = nil
		}
		if got := s.sameMessage(d); got != tc.want {
			t.Errorf("%s: got %v, want %v", tc.name, got, tc.want)
		}
	}
}

// While a machine is suspended its monotonic clock stands still, and with it the estimate of the server's. What was given to a worker there
// before is asked for once it goes on, and nothing that comes then.
func TestMachineThatWasSuspended(t *testing.T) { // P-7
	s := &term{suspension: suspension{Pace: clock.PaceOf(time.Now())}}
	now := s.suspension.Mono.Add(time.Second)
	s.clock.Observe(now, now)
	before := &schemas.ActivityTask{Beat: subject.Namespace("default").Beat(0, "w", "main"), ScheduledAt: schemas.At(now)}
	if s.wasSuspended(now); s.stale(&delivery{task: before, offered: true}, now) || s.ownerChanges.concern(before) {
		t.Fatal("an offer is asked for though nothing stood still")
	}
	s.suspension.Wall = s.suspension.Wall.Add(-time.Minute) // the wall clock has got ahead by that
	if s.wasSuspended(now); !s.ownerChanges.concern(before) {
		t.Error("an offer from before the machine was suspended is not asked for")
	}
	later := *before
	later.ScheduledAt = schemas.At(now.Add(time.Minute))
	if s.ownerChanges.concern(&later) {
		t.Error("an offer from after it is asked for")
	}
	s.ownerChanges = ownerChanges{}
	if s.wasSuspended(now); s.ownerChanges.known.Load() != nil {
		t.Error("it is noted twice")
	}
	s.suspension.Wall = s.suspension.Wall.Add(-time.Minute)
	d := &delivery{term: s, offered: true}
	d.Data = []byte(`{"type":"work","token":"t","report":"r"}`)
	work := func(context.Context, schemas.Payload) (schemas.Payload, error) { return nil, nil }
	s.Worker = &Worker{log: logx.Or(nil), handlers: map[string]handler{"work": work}}
	s.running = map[string]int{"t": 1}
	s.wg.Add(1)
	if s.handle(t.Context(), t.Context(), d); s.ownerChanges.known.Load() == nil {
		t.Error("who handles a task does not look")
	}
}
