package activity

import (
	"testing"
	"time"

	"github.com/droverhq/drover/broker/clock"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
)

// What was in hand is in nobody's hand once it is done, under the token that it came with and under the one that the owner has given it: else
// another message of the attempt would wait for a twin for ever.
func TestNothingStaysInHand(t *testing.T) {
	s := &spell{hands: make(map[string]int)}
	one, two := &delivery{}, &delivery{}
	if s.take(one, "a") || !s.take(two, "a") {
		t.Fatal("the second one of a token has a twin, and the first has none")
	}
	if s.take(one, "b") {
		t.Fatal("a new token has a twin")
	}
	s.letGo(two)
	if s.take(two, "a") {
		t.Fatal("a token that was changed for another, and let go, has a twin")
	}
	for _, d := range []*delivery{one, two, two} {
		s.letGo(d)
	}
	if len(s.hands) != 0 {
		t.Fatalf("%v are left", s.hands)
	}
}

// While a machine is suspended its monotonic clock stands still, and with it the estimate of the server's. What was given to a worker there
// before is asked for once it goes on, and nothing that comes then.
func TestMachineThatWasSuspended(t *testing.T) { // P-7
	s := &spell{pace: pace{Pace: clock.PaceOf(time.Now())}}
	now := s.pace.Mono.Add(time.Second)
	s.clock.Observe(now, now)
	before := &schemas.ActivityTask{Beat: subject.Namespace("default").Beat(0, "w", "main"), ScheduledAt: schemas.At(now)}
	if s.stoodStill(now); s.stale(&delivery{task: before, offered: true}, now) || s.breaches.concern(before) {
		t.Fatal("an offer is asked for though nothing stood still")
	}
	s.pace.Wall = s.pace.Wall.Add(-time.Minute) // the wall clock has got ahead by that
	if s.stoodStill(now); !s.breaches.concern(before) {
		t.Error("an offer from before the machine was suspended is not asked for")
	}
	behind := *before
	behind.ScheduledAt = schemas.At(now.Add(time.Minute))
	if s.breaches.concern(&behind) {
		t.Error("an offer from behind it is asked for")
	}
	s.breaches = breaches{}
	if s.stoodStill(now); s.breaches.known.Load() != nil {
		t.Error("it is noted twice")
	}
}
