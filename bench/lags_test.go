package main

import (
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/schemas"
)

// How late a sleeper went on counts from the end of its own timer, and a worker that missed one, or had one early, fails the run.
func TestLags(t *testing.T) {
	t0 := time.Unix(1000, 0)
	armed := schemas.Event{ID: 2, Time: schemas.At(t0), Attributes: &schemas.TimerScheduled{TimerID: "sleep", StartToFireTimeout: schemas.Duration(30 * time.Second)}}
	rang := schemas.Event{ID: 3, Time: schemas.At(t0.Add(30 * time.Second)), Attributes: &schemas.TimerExpired{TimerID: "sleep", ScheduledEventID: 2}}
	for _, tc := range []struct {
		name   string
		events []schemas.Event
		woken  time.Duration // after t0
		late   float64       // ms
		want   string        // of the error
	}{
		{"late", []schemas.Event{armed, rang}, 30*time.Second + 5*time.Millisecond, 5, ""},
		{"early", []schemas.Event{armed, rang}, 30*time.Second - 1, 0, "none may be missing or early"},
		{"not yet", []schemas.Event{armed}, time.Second, 0, "told of 0 timers of 1"},
		{"another's", []schemas.Event{rang}, 31 * time.Second, 0, "told of 0 timers of 1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var g lags
			g.note(tc.events, t0.Add(tc.woken))
			l, told := &line{Workflows: 1}, g.tell()
			err := told.into(l)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Fatalf("got error %v, want %q", err, tc.want)
			}
			if l.LagMax != tc.late || l.LagP50 != tc.late {
				t.Errorf("got %v and %v ms late, want %v", l.LagP50, l.LagMax, tc.late)
			}
		})
	}
}
