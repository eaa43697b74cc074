package execution

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/droverhq/drover/schemas"
)

// The compact notation of a history: the type of the event, and the names and causes that matter.

// history prints all events, one a line after its id.
func (w *world) history() string {
	names := map[int64]string{}
	var b strings.Builder
	for _, e := range w.events {
		fmt.Fprintf(&b, "%d %s\n", e.ID, line(e, names))
	}
	return b.String()
}

// since returns the events since the mark as one line, without their ids, and moves the mark after them.
func (w *world) since() string {
	var lines []string
	names := map[int64]string{}
	for i, e := range w.events {
		if l := line(e, names); i >= w.mark {
			lines = append(lines, l)
		}
	}
	w.mark = len(w.events)
	return strings.Join(lines, "; ")
}

// follows fails the test unless exactly these events came since the mark.
func (w *world) follows(want string) {
	w.t.Helper()
	if got := w.since(); got != want {
		w.t.Fatalf("got  %s\nwant %s", got, want)
	}
}

// want fails the test unless these events are the whole history.
func (w *world) want(lines ...string) {
	w.t.Helper()
	var b strings.Builder
	for i, l := range lines {
		fmt.Fprintf(&b, "%d %s\n", i+1, l)
	}
	if got := w.history(); got != b.String() {
		w.t.Fatalf("history:\n%s\nwant:\n%s", got, b.String())
	}
}

// line prints one event. names learns what the scheduled activities are called.
func line(e schemas.Event, names map[int64]string) string {
	words := append([]string{string(e.Type())}, activityWords(e, names)...)
	return strings.TrimSpace(strings.Join(append(words, otherWords(e)...), " "))
}

func activityWords(e schemas.Event, names map[int64]string) []string {
	switch a := e.Attributes.(type) {
	case *schemas.ActivityScheduled:
		names[e.ID] = a.ActivityID
		return []string{a.ActivityID}
	case *schemas.ActivityStarted:
		if a.Attempt != 1 {
			return []string{names[a.ScheduledEventID], strconv.Itoa(a.Attempt)}
		}
		return []string{names[a.ScheduledEventID]}
	case *schemas.ActivityRetryScheduled:
		return []string{names[a.ScheduledEventID], a.Cause}
	case *schemas.ActivitySuccess:
		return []string{names[a.ScheduledEventID]}
	case *schemas.ActivityFailed:
		return []string{names[a.ScheduledEventID], a.Reason}
	case *schemas.ActivityTimedOut:
		return []string{names[a.ScheduledEventID], string(a.TimeoutType)}
	case *schemas.ActivityScheduledTimeout:
		return []string{names[a.ScheduledEventID]}
	case *schemas.ActivityInterrupted:
		return []string{names[a.ScheduledEventID]}
	case *schemas.ActivityCanceled:
		return []string{names[a.ScheduledEventID]}
	case *schemas.ActivityCancelRequested:
		return []string{a.ActivityID}
	case *schemas.ActivityScheduleFailed:
		return []string{a.ActivityID, string(a.Cause)}
	case *schemas.ActivityCancelFailed:
		return []string{a.ActivityID, string(a.Cause)}
	}
	return nil
}

func otherWords(e schemas.Event) []string {
	switch a := e.Attributes.(type) {
	case *schemas.TimerScheduled:
		return []string{a.TimerID}
	case *schemas.TimerExpired:
		return []string{a.TimerID}
	case *schemas.TimerCanceled:
		return []string{a.TimerID}
	case *schemas.TimerScheduleFailed:
		return []string{a.TimerID, string(a.Cause)}
	case *schemas.TimerCancelFailed:
		return []string{a.TimerID, string(a.Cause)}
	case *schemas.Signal:
		return []string{a.SignalName}
	case *schemas.Marker:
		return []string{a.MarkerName}
	case *schemas.ReplayPointSet:
		return []string{a.Name}
	case *schemas.MarkerFailed:
		return []string{string(a.Cause)}
	case *schemas.WorkflowCloseFailed:
		return []string{string(a.Cause)}
	case *schemas.DeciderFailed:
		return []string{string(a.Cause)}
	case *schemas.DeciderTimedOut:
		return []string{string(a.TimeoutType)}
	case *schemas.WorkflowPaused:
		return []string{string(a.Cause)}
	case *schemas.ContinuationSuggested:
		return a.Reasons
	case *schemas.WorkflowFailed:
		return []string{a.Reason}
	}
	return lockWords(e)
}

func lockWords(e schemas.Event) []string {
	fence := func(n uint64) string {
		if n == 0 {
			return ""
		}
		return strconv.FormatUint(n, 10)
	}
	var words []string
	switch a := e.Attributes.(type) {
	case *schemas.LockRequested:
		words = []string{a.Scope, a.Lock}
	case *schemas.LockAcquired:
		words = []string{a.Scope, a.Lock, fence(a.Fence)}
	case *schemas.LockRefused:
		words = []string{a.Scope, a.Lock, string(a.Cause), string(a.Decision)}
	case *schemas.LockReleased:
		words = []string{a.Scope, a.Lock, fence(a.Fence)}
	case *schemas.LockBroken:
		words = []string{a.Scope, a.Lock, fence(a.Fence), string(a.Cause)}
	case *schemas.StateRequested:
		words = []string{a.Scope, a.Key}
	case *schemas.StateRead:
		words = []string{a.Scope, a.Key, string(a.Value)}
	case *schemas.StateSet:
		words = []string{a.Scope, a.Key, fence(a.Revision)}
	case *schemas.StateCleared:
		words = []string{a.Scope, a.Key}
	case *schemas.StateRefused:
		words = []string{a.Scope, a.Key, string(a.Cause), string(a.Value)}
	}
	return slices.DeleteFunc(words, func(w string) bool { return w == "" })
}
