package decider_test

import (
	"testing"

	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/schemas"
	"github.com/google/go-cmp/cmp"
)

// parallel is history S1-45: A and B in parallel, C when both are done.
func parallel() []schemas.Attributes {
	return []schemas.Attributes{
		&schemas.WorkflowStarted{Input: schemas.Payload(`{"n":1}`)},                   // 1
		&schemas.DeciderScheduled{},                                                   // 2
		&schemas.DeciderStarted{},                                                     // 3
		&schemas.DeciderCompleted{},                                                   // 4
		&schemas.ActivityScheduled{ActivityID: "A"},                                   // 5
		&schemas.ActivityScheduled{ActivityID: "B"},                                   // 6
		&schemas.ActivityStarted{ScheduledEventID: 6, Attempt: 1},                     // 7
		&schemas.ActivityStarted{ScheduledEventID: 5, Attempt: 1},                     // 8
		&schemas.ActivitySuccess{ScheduledEventID: 6, Result: schemas.Payload(`"b"`)}, // 9
		&schemas.DeciderScheduled{},                                                   // 10
		&schemas.DeciderStarted{},                                                     // 11
		&schemas.ActivitySuccess{ScheduledEventID: 5, Result: schemas.Payload(`"a"`)}, // 12
		&schemas.DeciderScheduled{},                                                   // 13
		&schemas.DeciderCompleted{StartedEventID: 11},                                 // 14
		&schemas.ActivityScheduled{ActivityID: "C"},                                   // 15
		&schemas.DeciderStarted{},                                                     // 16
	}
}

func numbered(attrs []schemas.Attributes) []schemas.Event {
	events := make([]schemas.Event, len(attrs))
	for i, a := range attrs {
		events[i] = schemas.Event{ID: int64(i) + 1, Time: schemas.Timestamp(i + 1), Attributes: a}
	}
	return events
}

func viewOf(events []schemas.Event) *decider.View {
	v := decider.NewView()
	for _, e := range events {
		v.Add(e)
	}
	return v
}

// By matching scheduled, started and closed activities up to its DeciderStarted, a decider knows whether all branches
// are done; retried activities raise the counts.
func TestParallelJoin(t *testing.T) { // S1-40
	retried := func(attrs ...schemas.Attributes) []schemas.Attributes {
		return append([]schemas.Attributes{&schemas.WorkflowStarted{}, &schemas.ActivityScheduled{ActivityID: "A"}}, attrs...)
	}
	started := &schemas.ActivityStarted{ScheduledEventID: 2}
	for name, c := range map[string]struct {
		history []schemas.Attributes
		upTo    int // the decider's DeciderStarted
		done    bool
		open    []string
		counts  decider.Counts
	}{
		"S1-40 nothing is scheduled at 3":   {parallel(), 3, false, []string{}, decider.Counts{}},
		"S1-40 one branch is done at 11":    {parallel(), 11, false, []string{"A"}, decider.Counts{Scheduled: 2, Started: 2, Closed: 1}},
		"S1-40 both are done at 16":         {parallel(), 16, true, []string{"C"}, decider.Counts{Scheduled: 3, Started: 2, Closed: 2}},
		"S1-40 a failure ends a branch too": {retried(started, &schemas.ActivityFailed{ScheduledEventID: 2}), 4, false, []string{}, decider.Counts{Scheduled: 1, Started: 1, Closed: 1}},
		"S1-40 retried by the decider": {
			retried(started, &schemas.ActivityFailed{ScheduledEventID: 2}, &schemas.ActivityScheduled{ActivityID: "A"}, &schemas.ActivityStarted{ScheduledEventID: 5}),
			6, false,
			[]string{"A"},
			decider.Counts{Scheduled: 2, Started: 2, Closed: 1},
		},
		"S1-40 retried by the service": {
			retried(started, &schemas.ActivityRetryScheduled{ScheduledEventID: 2}, started, &schemas.ActivitySuccess{ScheduledEventID: 2}),
			6, false,
			[]string{},
			decider.Counts{Scheduled: 1, Started: 2, Closed: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := viewOf(numbered(c.history)[:c.upTo])
			if got := v.Done("A", "B"); got != c.done {
				t.Errorf("Done(A, B) is %v, want %v", got, c.done)
			}
			if diff := cmp.Diff(c.open, v.Open()); diff != "" {
				t.Errorf("open (-want +got):\n%s", diff)
			}
			if got := v.Counts(); got != c.counts {
				t.Errorf("counts are %+v, want %+v", got, c.counts)
			}
			var sum decider.Counts
			for _, id := range []string{"A", "B", "C"} {
				n := v.Counts(id, "unknown")
				sum = decider.Counts{Scheduled: sum.Scheduled + n.Scheduled, Started: sum.Started + n.Started, Closed: sum.Closed + n.Closed}
			}
			if sum != c.counts {
				t.Errorf("counts of each add up to %+v, want %+v", sum, c.counts)
			}
		})
	}
}

func TestActivityStatus(t *testing.T) {
	started := &schemas.ActivityStarted{ScheduledEventID: 1}
	detail := schemas.Payload(`"why"`)
	type end struct {
		Status                  decider.ActivityStatus
		Result, Reason, Details string
		Open, Closed            bool
	}
	for name, c := range map[string]struct {
		then []schemas.Attributes
		want end
	}{
		"scheduled":   {nil, end{Status: decider.ActivityScheduled, Open: true}},
		"started":     {[]schemas.Attributes{started}, end{Status: decider.ActivityStarted, Open: true}},
		"interrupted": {[]schemas.Attributes{started, &schemas.ActivityInterrupted{ScheduledEventID: 1}}, end{Status: decider.ActivityScheduled, Open: true}},
		"succeeded": {
			[]schemas.Attributes{started, &schemas.ActivitySuccess{ScheduledEventID: 1, Result: schemas.Payload("42")}},
			end{Status: decider.ActivitySucceeded, Result: "42", Closed: true},
		},
		"failed": {
			[]schemas.Attributes{started, &schemas.ActivityFailed{ScheduledEventID: 1, Reason: "broke", Details: detail}},
			end{Status: decider.ActivityFailed, Reason: "broke", Details: `"why"`, Closed: true},
		},
		"timed out": {
			[]schemas.Attributes{started, &schemas.ActivityTimedOut{ScheduledEventID: 1, TimeoutType: schemas.TimeoutHeartbeat, Details: detail}},
			end{Status: decider.ActivityTimedOut, Reason: "HEARTBEAT", Details: `"why"`, Closed: true},
		},
		"not taken in time": {
			[]schemas.Attributes{&schemas.ActivityScheduledTimeout{ScheduledEventID: 1}},
			end{Status: decider.ActivityTimedOut, Reason: "SCHEDULE_TO_START", Closed: true},
		},
		"canceled": {
			[]schemas.Attributes{&schemas.ActivityCancelRequested{ActivityID: "a", ScheduledEventID: 1}, &schemas.ActivityCanceled{ScheduledEventID: 1, Details: detail}},
			end{Status: decider.ActivityCanceled, Details: `"why"`, Closed: true},
		},
		"a second one of the same id is refused": {
			[]schemas.Attributes{&schemas.ActivityScheduleFailed{ActivityID: "a", Cause: schemas.CauseActivityIDInUse}},
			end{Status: decider.ActivityScheduled, Open: true},
		},
		"scheduled again": {
			[]schemas.Attributes{&schemas.ActivityFailed{ScheduledEventID: 1, Reason: "broke", Details: detail}, &schemas.ActivityScheduled{ActivityID: "a"}},
			end{Status: decider.ActivityScheduled, Open: true},
		},
		"refused after its end": {
			[]schemas.Attributes{
				&schemas.ActivityFailed{ScheduledEventID: 1, Reason: "broke"},
				&schemas.ActivityScheduleFailed{ActivityID: "a", Cause: schemas.CauseListUndefined, Details: "name a list"},
			},
			end{Status: decider.ActivityRefused, Reason: "DEFAULT_TASK_LIST_UNDEFINED", Details: "name a list", Closed: true},
		},
		"ends twice": {
			[]schemas.Attributes{&schemas.ActivityFailed{ScheduledEventID: 1, Reason: "broke"}, &schemas.ActivitySuccess{ScheduledEventID: 1}},
			end{Status: decider.ActivityFailed, Reason: "broke", Closed: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := viewOf(numbered(append([]schemas.Attributes{&schemas.ActivityScheduled{ActivityID: "a"}}, c.then...)))
			status, result, reason := v.Activity("a")
			got := end{status, string(result), reason, string(v.Details("a")), status.Open(), status.Closed()}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Fatalf("activity (-want +got):\n%s", diff)
			}
		})
	}
	v := viewOf(nil)
	if status, result, reason := v.Activity("a"); status != 0 || result != nil || reason != "" || status.Open() || status.Closed() || v.Details("a") != nil {
		t.Fatalf("an unknown activity is %v, %s, %q", status, result, reason)
	}
	if v.Done("a") || !v.Done() {
		t.Fatal("Done of an unknown activity, or of none")
	}
}

func TestViewOfTheRest(t *testing.T) {
	events := numbered([]schemas.Attributes{
		&schemas.WorkflowStarted{WorkflowType: "order", Input: schemas.Payload(`{"n":1}`)},
		&schemas.Signal{SignalName: "go", Input: schemas.Payload("1")},
		&schemas.TimerScheduled{TimerID: "open"},
		&schemas.TimerScheduled{TimerID: "fired"},
		&schemas.TimerScheduled{TimerID: "canceled"},
		&schemas.TimerExpired{TimerID: "fired", ScheduledEventID: 4},
		&schemas.TimerCanceled{TimerID: "canceled", ScheduledEventID: 5},
		&schemas.TimerScheduleFailed{TimerID: "open", Cause: schemas.CauseTimerIDInUse},
		&schemas.TimerScheduleFailed{TimerID: "refused", Cause: schemas.CauseOpenTimersLimit},
		&schemas.Signal{SignalName: "go", Input: schemas.Payload("2")},
		&schemas.Marker{MarkerName: "m", Details: schemas.Payload("3")},
		&schemas.Unknown{Type: "FromTheFuture"},
		&schemas.ActivityStarted{ScheduledEventID: 99}, // of an activity that was not added
	})
	v := viewOf(events)
	for id, want := range map[string]decider.TimerStatus{
		"open": decider.TimerOpen, "fired": decider.TimerFired, "canceled": decider.TimerCanceled, "refused": decider.TimerRefused, "unknown": 0,
	} {
		if got := v.Timer(id); got != want {
			t.Errorf("timer %s is %v, want %v", id, got, want)
		}
	}
	type rest struct {
		Input, Type    string
		Signals, Marks []schemas.Payload
		Cancel         bool
		Last           int64
	}
	want := rest{`{"n":1}`, "order", []schemas.Payload{schemas.Payload("1"), schemas.Payload("2")}, []schemas.Payload{schemas.Payload("3")}, false, 13}
	got := rest{string(v.Input()), v.Started().WorkflowType, v.Signals("go"), v.Markers("m"), v.CancelRequested(), v.LastID()}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("view (-want +got):\n%s", diff)
	}
	for _, e := range events { // what was added before is ignored
		v.Add(e)
	}
	if got := v.Signals("go"); len(got) != 2 {
		t.Errorf("got %d signals, want 2", len(got))
	}
	v.Add(schemas.Event{ID: 14, Attributes: &schemas.WorkflowCancelRequested{}})
	if !v.CancelRequested() {
		t.Error("the cancel request is not seen")
	}
	if v := viewOf(nil); v.Started() != nil || v.Input() != nil || v.LastID() != 0 {
		t.Error("an empty view shows something")
	}
}

func TestStatusesHaveNames(t *testing.T) {
	for s := range decider.ActivityRefused + 1 {
		if got := s.String(); got == "" || got[0] == 'A' {
			t.Errorf("activity status %d is %q", int(s), got)
		}
	}
	for s := range decider.TimerRefused + 1 {
		if got := s.String(); got == "" || got[0] == 'T' {
			t.Errorf("timer status %d is %q", int(s), got)
		}
	}
	for s := range decider.ChildRefused + 1 {
		if got := s.String(); got == "" || got[0] == 'C' {
			t.Errorf("child status %d is %q", int(s), got)
		}
	}
	for s := range decider.ExternalFailed + 1 {
		if got := s.String(); got == "" || got[0] == 'E' {
			t.Errorf("external status %d is %q", int(s), got)
		}
	}
	if got := [2]string{decider.ChildStatus(99).String(), decider.ExternalStatus(-1).String()}; got != [2]string{"ChildStatus(99)", "ExternalStatus(-1)"} {
		t.Errorf("got %q", got)
	}
	for o := decider.OutcomeDecided; o <= decider.OutcomeUnsent; o++ {
		if got := o.String(); got == "" || got[0] == 'O' {
			t.Errorf("outcome %d is %q", int(o), got)
		}
	}
	if got := [3]string{decider.ActivityStatus(99).String(), decider.TimerStatus(-1).String(), decider.Outcome(0).String()}; got != [3]string{"ActivityStatus(99)", "TimerStatus(-1)", "Outcome(0)"} {
		t.Errorf("got %q", got)
	}
}
