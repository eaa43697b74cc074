package activity

import (
	"testing"
	"time"
)

// What comes back is let rest, for longer and longer; what rested elsewhere goes around again. Many such tasks rest even if a round takes long.
func TestUnregisteredTasksRest(t *testing.T) { // R6
	s := &unregisteredTasks{}
	now := time.Unix(1_000_000, 0)
	task := taskPlace{"main", 7}
	for n, tt := range []struct {
		after, want time.Duration
	}{
		{0, 0},
		{time.Millisecond, firstUnregisteredDelay},
		{firstUnregisteredDelay, 0},
		{time.Millisecond, 2 * firstUnregisteredDelay},
		{time.Minute, 0},
		{time.Minute, 0},
		{time.Millisecond, 4 * firstUnregisteredDelay},
	} {
		now = now.Add(tt.after)
		if got := s.delay(task, now); got != tt.want {
			t.Fatalf("step %d: it rests for %v, want %v", n, got, tt.want)
		}
	}
	if got := s.delay(taskPlace{"other", 7}, now); got != 0 {
		t.Errorf("a task of another list rests for %v, want that it is passed on", got)
	}
	for range 20 {
		s.delay(task, now)
	}
	if got := s.delay(task, now); got != lastUnregisteredDelay {
		t.Errorf("it rests for %v in the end, want %v", got, lastUnregisteredDelay)
	}
	const many = 10 * mostAgain
	for round := range 2 {
		now = now.Add(time.Minute)
		rested := 0
		for n := range uint64(many) {
			if s.delay(taskPlace{"many", n}, now) > 0 {
				rested++
			}
		}
		if want := round * (many - mostAgain); rested != want {
			t.Errorf("round %d: %d of %d tasks rest, want %d", round, rested, many, want)
		}
	}
	for n := range uint64(3 * mostUnregistered) {
		if s.delay(taskPlace{"flood", n}, now); len(s.seen) > mostUnregistered {
			t.Fatalf("%d tasks are remembered, want at most %d", len(s.seen), mostUnregistered)
		}
	}
}
