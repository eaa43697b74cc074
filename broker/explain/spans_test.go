package explain_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/droverhq/drover/broker/explain"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// spanEvents are events of one second each, the first with the id first.
func spanEvents(first int64, attributes ...schemas.Attributes) (events []schemas.Event) {
	for _, a := range attributes {
		events = append(events, schemas.Event{ID: first, Time: schemas.Timestamp(first * 1e9), Attributes: a})
		first++
	}
	return events
}

// spanLines writes spans one a line, times in seconds.
func spanLines(s ops.Spans) string {
	var b strings.Builder
	second := func(us int64) string {
		if us < 0 {
			return "-"
		}
		return fmt.Sprint(us / 1e6)
	}
	for i := range s.Kind {
		fmt.Fprintf(&b, "%s %q %s %s %s %s %d of %d\n", s.Kind[i], s.Name[i], second(s.Queued[i]), second(s.Start[i]), second(s.End[i]), s.Outcome[i], s.Event[i], s.Of[i])
	}
	return b.String()
}

// What each kind of event does to spans.
func TestSpans(t *testing.T) {
	for name, c := range map[string]struct {
		events []schemas.Event
		want   string
	}{
		"nothing": {nil, ""},
		"a decision": {
			spanEvents(1, &schemas.WorkflowStarted{}, &schemas.DeciderScheduled{}, &schemas.DeciderStarted{ScheduledEventID: 2}, &schemas.DeciderCompleted{ScheduledEventID: 2, StartedEventID: 3}),
			"decision \"\" 2 3 4 completed 2 of 0\n",
		},
		"decisions that fail": {
			spanEvents(1, &schemas.DeciderScheduled{}, &schemas.DeciderTimedOut{ScheduledEventID: 1}, &schemas.DeciderScheduled{}, &schemas.DeciderStarted{ScheduledEventID: 3}, &schemas.DeciderFailed{ScheduledEventID: 3, StartedEventID: 4}),
			"decision \"\" 1 - 2 timedOut 1 of 0\ndecision \"\" 3 4 5 failed 3 of 0\n",
		},
		"an activity with three attempts": {
			spanEvents(
				1, &schemas.ActivityScheduled{ActivityID: "pay"}, &schemas.ActivityStarted{ScheduledEventID: 1, Attempt: 1},
				&schemas.ActivityInterrupted{ScheduledEventID: 1, StartedEventID: 2, Attempt: 1}, &schemas.ActivityStarted{ScheduledEventID: 1, Attempt: 2},
				&schemas.ActivityRetryScheduled{ScheduledEventID: 1, StartedEventID: 4, Attempt: 3}, &schemas.ActivityStarted{ScheduledEventID: 1, Attempt: 3},
				&schemas.ActivitySuccess{ScheduledEventID: 1, StartedEventID: 6},
			),
			"activity \"pay\" 1 2 7 completed 1 of 0\nattempt \"pay\" - 2 3 interrupted 2 of 1\nattempt \"pay\" - 4 5 failed 4 of 1\nattempt \"pay\" - 6 7 completed 6 of 1\n",
		},
		"an activity that nobody took": {
			spanEvents(1, &schemas.ActivityScheduled{ActivityID: "pay"}, &schemas.ActivityScheduledTimeout{ScheduledEventID: 1}),
			"activity \"pay\" 1 - 2 timedOut 1 of 0\n",
		},
		"the end of what began before": {
			spanEvents(9, &schemas.ActivityFailed{ScheduledEventID: 1, StartedEventID: 2}, &schemas.TimerExpired{ScheduledEventID: 3}, &schemas.LockReleased{Lock: "l"}, &schemas.WorkflowResumed{}),
			"attempt \"\" - - 9 failed 2 of 1\nactivity \"\" - - 9 failed 1 of 0\ntimer \"\" - - 10 expired 3 of 0\nlock \"l\" - - 11 released 0 of 0\npause \"\" - - 12 resumed 0 of 0\n",
		},
		"timers": {
			spanEvents(1, &schemas.TimerScheduled{TimerID: "a"}, &schemas.TimerScheduled{TimerID: "b"}, &schemas.TimerCanceled{TimerID: "a", ScheduledEventID: 1}, &schemas.TimerExpired{TimerID: "b", ScheduledEventID: 2}),
			"timer \"a\" - 1 3 canceled 1 of 0\ntimer \"b\" - 2 4 expired 2 of 0\n",
		},
		"children": {
			spanEvents(1, &schemas.ChildScheduled{WorkflowID: "kid"}, &schemas.ChildStarted{ScheduledEventID: 1}, &schemas.ChildTerminated{ScheduledEventID: 1}, &schemas.ChildStartFailed{WorkflowID: "x"}),
			"child \"kid\" 1 2 3 terminated 1 of 0\n",
		},
		"locks": {
			spanEvents(
				1, &schemas.LockRequested{Lock: "l", Scope: "s"}, &schemas.LockAcquired{Lock: "l", Scope: "s", ScheduledEventID: 1}, &schemas.LockRequested{Lock: "m"},
				&schemas.LockReleased{Lock: "l", Scope: "s"}, &schemas.LockRefused{Lock: "m", ScheduledEventID: 3}, &schemas.LockRequested{Lock: "l", Scope: "s"},
				&schemas.LockAcquired{Lock: "l", Scope: "s", ScheduledEventID: 6}, &schemas.LockBroken{Lock: "l", Scope: "s"},
			),
			"lock \"s/l\" 1 2 4 released 1 of 0\nlock \"m\" 3 - 5 refused 3 of 0\nlock \"s/l\" 6 7 8 broken 6 of 0\n",
		},
		"what is sent, asked and noted": {
			spanEvents(
				1, &schemas.SignalExternalScheduled{WorkflowID: "w"}, &schemas.ExternalSignaled{ScheduledEventID: 1}, &schemas.CancelExternalScheduled{WorkflowID: "w"},
				&schemas.CancelExternalFailed{ScheduledEventID: 3}, &schemas.StateRequested{Key: "k"}, &schemas.StateSet{Key: "k", ScheduledEventID: 5},
				&schemas.Signal{SignalName: "go"}, &schemas.Marker{MarkerName: "m"}, &schemas.WorkflowPaused{}, &schemas.WorkflowResumed{},
			),
			"external \"w\" - 1 2 delivered 1 of 0\nexternal \"w\" - 3 4 refused 3 of 0\nstate \"k\" - 5 6 completed 5 of 0\n" +
				"signal \"go\" - 7 7  7 of 0\nmarker \"m\" - 8 8  8 of 0\npause \"\" - 9 10 resumed 9 of 0\n",
		},
	} {
		if got := spanLines(explain.Spans(c.events, 0)); got != c.want {
			t.Errorf("%s: got\n%swant\n%s", name, got, c.want)
		}
	}
}
