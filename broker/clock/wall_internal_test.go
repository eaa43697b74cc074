package clock

import (
	"testing"
	"time"
)

// TestWallStep moves the wall clock of the first look, which is as if the local one had been moved the other way.
func TestWallStep(t *testing.T) {
	var w Wall
	now := time.Now()
	w.Stepped(now)
	for _, by := range []time.Duration{time.Hour, -time.Minute, wallStep} {
		if w.first.Wall = w.first.Wall.Add(-by); !w.Stepped(now) {
			t.Errorf("a step of %v is not told of", by)
		}
		if w.Stepped(now) {
			t.Errorf("a step of %v is told of twice", by)
		}
	}
	if w.first.Wall = w.first.Wall.Add(-wallStep / 2); w.Stepped(now) {
		t.Error("what a clock is slewed by is told of")
	}
}
