package lean

import (
	"testing"
	"time"
)

// A process is made ready by one at a time, and then not for a while.
func TestReadyIsNotRepeated(t *testing.T) {
	var r readiness
	at := time.Unix(1000, 0)
	for _, step := range []struct {
		after time.Duration
		want  bool
	}{{0, true}, {13 * time.Second, false}, {14 * time.Second, true}, {27 * time.Second, false}, {28 * time.Second, true}} {
		now := at.Add(step.after)
		if got := r.begin(now); got != step.want {
			t.Errorf("behind %v: got %v, want %v", step.after, got, step.want)
		} else if got {
			if r.begin(now) {
				t.Errorf("behind %v: twice at once", step.after)
			}
			r.end(now, now.Add(100*time.Millisecond))
		}
	}
	r = readiness{}
	r.begin(at)
	r.end(at, at.Add(2*time.Second))
	if r.begin(at.Add(49*time.Second)) || !r.begin(at.Add(50*time.Second)) {
		t.Error("want one that took two seconds not to be repeated for fifty")
	}
}

func TestReadyIsForWhoHasNotDecided(t *testing.T) {
	t.Setenv("GOMEMLIMIT", "64MiB") // for this process; Go has read it
	Ready()
	if !eve.begin(time.Now()) {
		t.Error("the process was made ready beyond its limit")
	}
	eve.end(time.Time{}, time.Time{}) // for the next run
}
