package drover_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/explain"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// courseOfARun are events of all that crosses pages: attempts, locks that are held again, what overlaps and what is open.
func courseOfARun() (events []schemas.Event) {
	for i, a := range []schemas.Attributes{
		&schemas.WorkflowStarted{}, &schemas.DeciderScheduled{}, &schemas.DeciderStarted{ScheduledEventID: 2}, &schemas.DeciderCompleted{ScheduledEventID: 2, StartedEventID: 3},
		&schemas.ActivityScheduled{ActivityID: "pay"}, &schemas.ActivityScheduled{ActivityID: "ship"}, &schemas.LockRequested{Lock: "l"}, &schemas.LockAcquired{Lock: "l", ScheduledEventID: 7},
		&schemas.ActivityStarted{ScheduledEventID: 5, Attempt: 1}, &schemas.ActivityRetryScheduled{ScheduledEventID: 5, StartedEventID: 9, Attempt: 2}, &schemas.LockReleased{Lock: "l"},
		&schemas.ActivityStarted{ScheduledEventID: 5, Attempt: 2}, &schemas.LockReleased{Lock: "l"}, &schemas.ActivitySuccess{ScheduledEventID: 5, StartedEventID: 12},
		&schemas.WorkflowPaused{}, &schemas.LockRequested{Lock: "l"}, &schemas.TimerScheduled{TimerID: "t"}, &schemas.Signal{SignalName: "s"}, &schemas.WorkflowResumed{},
		&schemas.LockBroken{Lock: "l"}, &schemas.LockReleased{Lock: "from before"}, &schemas.TimerExpired{TimerID: "t", ScheduledEventID: 17}, &schemas.ActivityStarted{ScheduledEventID: 6, Attempt: 1},
	} {
		events = append(events, schemas.Event{ID: int64(i + 1), Time: schemas.Timestamp((i + 1) * 1e9), Attributes: a})
	}
	return events
}

// The spans of a run are the same however its events are spread over pages.
func TestSpansOfAnyPages(t *testing.T) {
	c, s := newService(t, drover.Options{})
	all := courseOfARun()
	size := len(all)
	on(s, "spans", func(_ int, q ops.SpansRequest) any {
		page := all[q.After:]
		page = page[:min(size, len(page))]
		next := q.After + int64(len(page))
		return ops.SpansResponse{Run: "r1", Base: 1e9, Spans: explain.Spans(page, 1e9), Next: next, More: next < int64(len(all)), Closed: next == int64(len(all))}
	})
	whole, err := c.Run("a", "").Spans(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	lines := make([]string, len(whole.Kind))
	for i := range lines {
		lines[i] = fmt.Sprintf("%s %s in %d from %d", whole.Kind[i], whole.Name[i], whole.Lane[i], max(whole.Queued[i], whole.Start[i])/1e6)
	}
	want := []string{
		"decision  in 0 from 2", "activity pay in 1 from 8", "activity ship in 2 from 22", "lock l in 3 from 7", "attempt pay in 1 from 8", "attempt pay in 1 from 11",
		"pause  in 1 from 14", "lock l in 3 from 15", "timer t in 4 from 16", "signal s in 5 from 17", "attempt ship in 2 from 22",
	}
	if !slices.Equal(lines, want) || whole.Run != "r1" || whole.Base != 1e9 || whole.Last != int64(len(all)) || !whole.Closed {
		t.Errorf("got %q of %+v, want %q", lines, whole, want)
	}
	for size = 1; size < len(all); size++ {
		got, err := c.Run("a", "").Spans(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(whole, got); diff != "" {
			t.Errorf("pages of %d events (-whole +got):\n%s", size, diff)
		}
	}
}

// Bad input: spans. Arrays of different lengths, and pages that do not go on, are errors.
func TestSpansThatAreNone(t *testing.T) {
	for name, a := range map[string]ops.SpansResponse{
		"one array is shorter": {Run: "r1", Spans: ops.Spans{Kind: []ops.SpanKind{ops.SpanTimer}, Name: []string{"t"}}},
		"it does not go on":    {Run: "r1", More: true},
	} {
		c, s := newService(t, drover.Options{})
		on(s, "spans", func(int, ops.SpansRequest) any { return a })
		if got, err := c.Run("a", "").Spans(t.Context()); err == nil {
			t.Errorf("%s: got %+v and no error", name, got)
		}
	}
}
