package execution

import (
	"slices"
	"strings"
	"testing"

	"github.com/droverhq/drover/schemas"
)

// The thirteen decisions of SWF, each through its success and every failure that it can meet here. The names are SWF's;
// the events are ours (docs/reference/swf.md maps them).
//
// SWF's other causes cannot occur: every timeout and the child policy have a default (DEFAULT_…_UNDEFINED, but for the
// list), nothing is limited by rate (…_RATE_EXCEEDED), the number of open workflows has no limit
// (OPEN_WORKFLOWS_LIMIT_EXCEEDED), and permissions are those of NATS, which refuses the message itself
// (OPERATION_NOT_PERMITTED). ScheduleLambdaFunction is an activity of the built-in type "request"; its events are those of
// any activity.

// swfCase is one decision in one situation.
type swfCase struct {
	name     string
	before   []schemas.DecisionAttributes // decided first
	prepare  func(*world)
	decision schemas.DecisionAttributes
	event    schemas.EventType // what becomes of it
	cause    schemas.Cause     // "" for a success
}

func activityA() *schemas.ScheduleActivity {
	return &schemas.ScheduleActivity{ActivityID: "A", ActivityType: "work"}
}

func timerT() *schemas.ScheduleTimer {
	return &schemas.ScheduleTimer{TimerID: "T", StartToFireTimeout: schemas.Seconds(60)}
}

func childC() *schemas.StartChild {
	return &schemas.StartChild{WorkflowID: "child-1", WorkflowType: "payment"}
}

func partOf(typ string) *schemas.StartChild {
	return &schemas.StartChild{WorkflowID: "child-1", WorkflowType: typ, Part: true}
}

var tooLong = strings.Repeat("x", schemas.MaxIDLen+1)

// full leaves no room for more events.
func full(w *world) { w.c.MaxEvents = 1 }

// unseen lets something happen that the decider which answers next has not seen.
func unseen(w *world) {
	w.do(Taken{})
	w.do(Signal{Name: "late"})
}

func types(required bool, kind schemas.TypeKind, name string, status schemas.TypeStatus) func(*world) {
	return func(w *world) {
		w.c.Types = NewTypes(required, []schemas.TypeInfo{{Kind: kind, Name: name, Status: status}})
	}
}

func open(field func(*Config) *int) func(*world) { return func(w *world) { *field(&w.c) = 1 } }

func swfCases() map[string][]swfCase {
	closing := func(d schemas.DecisionAttributes, event schemas.EventType) []swfCase {
		return []swfCase{
			{name: "success", decision: d, event: event},
			{name: "with an activity open", before: []schemas.DecisionAttributes{activityA()}, decision: d, event: event},
			{name: "UNHANDLED_DECISION", prepare: unseen, decision: d, event: schemas.EventWorkflowCloseFailed, cause: schemas.CauseUnhandledDecision},
		}
	}
	return map[string][]swfCase{
		"ScheduleActivityTask": {
			{name: "success", decision: activityA(), event: schemas.EventActivityScheduled},
			{name: "registered", prepare: types(true, schemas.ActivityKind, "work", schemas.TypeRegistered), decision: activityA(), event: schemas.EventActivityScheduled},
			{name: "deprecated", prepare: types(false, schemas.ActivityKind, "work", schemas.TypeDeprecated), decision: activityA(), event: schemas.EventActivityScheduleFailed, cause: schemas.CauseActivityTypeDeprecated},
			{name: "unknown type", prepare: types(true, schemas.ActivityKind, "other", schemas.TypeRegistered), decision: activityA(), event: schemas.EventActivityScheduleFailed, cause: schemas.CauseActivityTypeUnknown},
			{name: "another type is registered, and none has to be", prepare: types(false, schemas.ActivityKind, "other", schemas.TypeRegistered), decision: activityA(), event: schemas.EventActivityScheduled},
			{name: "id in use", before: []schemas.DecisionAttributes{activityA()}, decision: activityA(), event: schemas.EventActivityScheduleFailed, cause: schemas.CauseActivityIDInUse},
			{name: "too many", before: []schemas.DecisionAttributes{activityA()}, prepare: open(func(c *Config) *int { return &c.OpenActivities }), decision: &schemas.ScheduleActivity{ActivityID: "B", ActivityType: "work"}, event: schemas.EventActivityScheduleFailed, cause: schemas.CauseOpenActivitiesLimit},
			{name: "no list", prepare: func(w *world) { w.s.Start.ActivityDefaults = nil; w.rebased = true }, decision: activityA(), event: schemas.EventActivityScheduleFailed, cause: schemas.CauseListUndefined},
			{name: "no id", decision: &schemas.ScheduleActivity{ActivityType: "work"}, event: schemas.EventActivityScheduleFailed, cause: schemas.CauseInvalidAttributes},
			{name: "long type", decision: &schemas.ScheduleActivity{ActivityID: "A", ActivityType: tooLong}, event: schemas.EventActivityScheduleFailed, cause: schemas.CauseInvalidAttributes},
			{name: "bad list", decision: &schemas.ScheduleActivity{ActivityID: "A", ActivityType: "work", List: "a b"}, event: schemas.EventActivityScheduleFailed, cause: schemas.CauseInvalidAttributes},
			{name: "history full", prepare: full, decision: activityA(), event: schemas.EventActivityScheduleFailed, cause: schemas.CauseEventLimitExceeded},
		},
		"RequestCancelActivityTask": {
			{name: "started", before: []schemas.DecisionAttributes{activityA()}, prepare: func(w *world) { w.report("A", schemas.ReportStarted) }, decision: &schemas.RequestCancelActivity{ActivityID: "A"}, event: schemas.EventActivityCancelRequested},
			{name: "not started", before: []schemas.DecisionAttributes{activityA()}, decision: &schemas.RequestCancelActivity{ActivityID: "A"}, event: schemas.EventActivityCanceled},
			{name: "unknown", decision: &schemas.RequestCancelActivity{ActivityID: "A"}, event: schemas.EventActivityCancelFailed, cause: schemas.CauseActivityIDUnknown},
		},
		"StartTimer": {
			{name: "success", decision: timerT(), event: schemas.EventTimerScheduled},
			{name: "id in use", before: []schemas.DecisionAttributes{timerT()}, decision: timerT(), event: schemas.EventTimerScheduleFailed, cause: schemas.CauseTimerIDInUse},
			{name: "too many", before: []schemas.DecisionAttributes{timerT()}, prepare: open(func(c *Config) *int { return &c.OpenTimers }), decision: &schemas.ScheduleTimer{TimerID: "U"}, event: schemas.EventTimerScheduleFailed, cause: schemas.CauseOpenTimersLimit},
			{name: "no id", decision: &schemas.ScheduleTimer{}, event: schemas.EventTimerScheduleFailed, cause: schemas.CauseInvalidAttributes},
			{name: "before it began", decision: &schemas.ScheduleTimer{TimerID: "T", StartToFireTimeout: -1}, event: schemas.EventTimerScheduleFailed, cause: schemas.CauseInvalidAttributes},
			{name: "history full", prepare: full, decision: timerT(), event: schemas.EventTimerScheduleFailed, cause: schemas.CauseEventLimitExceeded},
		},
		"CancelTimer": {
			{name: "success", before: []schemas.DecisionAttributes{timerT()}, decision: &schemas.CancelTimer{TimerID: "T"}, event: schemas.EventTimerCanceled},
			{name: "unknown", decision: &schemas.CancelTimer{TimerID: "T"}, event: schemas.EventTimerCancelFailed, cause: schemas.CauseTimerIDUnknown},
		},
		"RecordMarker": {
			{name: "success", decision: &schemas.RecordMarker{MarkerName: "m"}, event: schemas.EventMarker},
			{name: "no name", decision: &schemas.RecordMarker{}, event: schemas.EventMarkerFailed, cause: schemas.CauseInvalidAttributes},
			{name: "history full", prepare: full, decision: &schemas.RecordMarker{MarkerName: "m"}, event: schemas.EventMarkerFailed, cause: schemas.CauseEventLimitExceeded},
		},
		"StartChildWorkflowExecution": {
			{name: "success", decision: childC(), event: schemas.EventChildScheduled},
			{name: "already running", before: []schemas.DecisionAttributes{childC()}, prepare: func(w *world) {
				w.do(Child{Report: &schemas.ChildReport{ParentRun: "run-1", ScheduledEventID: 5, Cause: schemas.CauseWorkflowRunning}})
			}, decision: &schemas.RecordMarker{MarkerName: "m"}, event: schemas.EventChildStartFailed, cause: schemas.CauseWorkflowRunning},
			{name: "itself", decision: &schemas.StartChild{WorkflowID: "order-1", WorkflowType: "order"}, event: schemas.EventChildStartFailed, cause: schemas.CauseWorkflowRunning},
			{name: "deprecated", prepare: types(false, schemas.WorkflowKind, "payment", schemas.TypeDeprecated), decision: childC(), event: schemas.EventChildStartFailed, cause: schemas.CauseWorkflowTypeDeprecated},
			{name: "unknown type", prepare: types(true, schemas.WorkflowKind, "order", schemas.TypeRegistered), decision: childC(), event: schemas.EventChildStartFailed, cause: schemas.CauseWorkflowTypeUnknown},
			{name: "a part of a run of a deprecated type", prepare: types(false, schemas.WorkflowKind, "order", schemas.TypeDeprecated), decision: partOf("order"), event: schemas.EventChildScheduled},
			{name: "a part of a run of an unknown type", prepare: types(true, schemas.WorkflowKind, "other", schemas.TypeRegistered), decision: partOf("order"), event: schemas.EventChildScheduled},
			{name: "no part, for it has another type", prepare: types(false, schemas.WorkflowKind, "payment", schemas.TypeDeprecated), decision: partOf("payment"), event: schemas.EventChildStartFailed, cause: schemas.CauseWorkflowTypeDeprecated},
			{name: "too many", before: []schemas.DecisionAttributes{childC()}, prepare: open(func(c *Config) *int { return &c.OpenChildren }), decision: &schemas.StartChild{WorkflowID: "child-2", WorkflowType: "payment"}, event: schemas.EventChildStartFailed, cause: schemas.CauseOpenChildrenLimit},
			{name: "too deep", prepare: func(w *world) { w.s.Start.Depth = 50; w.rebased = true }, decision: childC(), event: schemas.EventChildStartFailed, cause: schemas.CauseChildDepth},
			{name: "no id", decision: &schemas.StartChild{WorkflowType: "payment"}, event: schemas.EventChildStartFailed, cause: schemas.CauseInvalidAttributes},
			{name: "no type", decision: &schemas.StartChild{WorkflowID: "child-1"}, event: schemas.EventChildStartFailed, cause: schemas.CauseInvalidAttributes},
			{name: "bad policy", decision: &schemas.StartChild{WorkflowID: "child-1", WorkflowType: "payment", ChildPolicy: "EAT"}, event: schemas.EventChildStartFailed, cause: schemas.CauseInvalidAttributes},
			{name: "history full", prepare: full, decision: childC(), event: schemas.EventChildStartFailed, cause: schemas.CauseEventLimitExceeded},
		},
		"SignalExternalWorkflowExecution": {
			{name: "success", decision: &schemas.SignalExternal{WorkflowID: "other", SignalName: "s"}, event: schemas.EventSignalExternalScheduled},
			{name: "unknown", before: []schemas.DecisionAttributes{&schemas.SignalExternal{WorkflowID: "other", SignalName: "s"}}, prepare: unanswered, decision: &schemas.RecordMarker{MarkerName: "m"}, event: schemas.EventSignalExternalFailed, cause: schemas.CauseUnknownExecution},
			{name: "too many", before: []schemas.DecisionAttributes{&schemas.SignalExternal{WorkflowID: "other", SignalName: "s"}}, prepare: open(func(c *Config) *int { return &c.OpenExternals }), decision: &schemas.SignalExternal{WorkflowID: "other", SignalName: "s"}, event: schemas.EventSignalExternalFailed, cause: schemas.CauseOpenExternalsLimit},
			{name: "no name", decision: &schemas.SignalExternal{WorkflowID: "other"}, event: schemas.EventSignalExternalFailed, cause: schemas.CauseInvalidAttributes},
			{name: "no id", decision: &schemas.SignalExternal{SignalName: "s"}, event: schemas.EventSignalExternalFailed, cause: schemas.CauseInvalidAttributes},
			{name: "history full", prepare: full, decision: &schemas.SignalExternal{WorkflowID: "other", SignalName: "s"}, event: schemas.EventSignalExternalFailed, cause: schemas.CauseEventLimitExceeded},
		},
		"RequestCancelExternalWorkflowExecution": {
			{name: "success", decision: &schemas.CancelExternal{WorkflowID: "other"}, event: schemas.EventCancelExternalScheduled},
			{name: "unknown", before: []schemas.DecisionAttributes{&schemas.CancelExternal{WorkflowID: "other"}}, prepare: unanswered, decision: &schemas.RecordMarker{MarkerName: "m"}, event: schemas.EventCancelExternalFailed, cause: schemas.CauseUnknownExecution},
			{name: "too many", before: []schemas.DecisionAttributes{&schemas.CancelExternal{WorkflowID: "other"}}, prepare: open(func(c *Config) *int { return &c.OpenExternals }), decision: &schemas.CancelExternal{WorkflowID: "other"}, event: schemas.EventCancelExternalFailed, cause: schemas.CauseOpenExternalsLimit},
			{name: "no id", decision: &schemas.CancelExternal{}, event: schemas.EventCancelExternalFailed, cause: schemas.CauseInvalidAttributes},
			{name: "history full", prepare: full, decision: &schemas.CancelExternal{WorkflowID: "other"}, event: schemas.EventCancelExternalFailed, cause: schemas.CauseEventLimitExceeded},
		},
		"CompleteWorkflowExecution": closing(&schemas.CompleteWorkflow{}, schemas.EventWorkflowSuccess),
		"FailWorkflowExecution":     closing(&schemas.FailWorkflow{Reason: "no"}, schemas.EventWorkflowFailed),
		"CancelWorkflowExecution":   closing(&schemas.CancelWorkflow{}, schemas.EventWorkflowCanceled),
		"ContinueAsNewWorkflowExecution": append(closing(&schemas.ContinueAsNew{}, schemas.EventWorkflowContinuedAsNew),
			swfCase{name: "deprecated", prepare: types(false, schemas.WorkflowKind, "order", schemas.TypeDeprecated), decision: &schemas.ContinueAsNew{}, event: schemas.EventWorkflowCloseFailed, cause: schemas.CauseWorkflowTypeDeprecated},
			swfCase{name: "unknown type", prepare: types(true, schemas.WorkflowKind, "other", schemas.TypeRegistered), decision: &schemas.ContinueAsNew{}, event: schemas.EventWorkflowCloseFailed, cause: schemas.CauseWorkflowTypeUnknown},
			swfCase{name: "the rest of a run of a deprecated type", prepare: types(false, schemas.WorkflowKind, "order", schemas.TypeDeprecated), decision: &schemas.ContinueAsNew{Part: true}, event: schemas.EventWorkflowContinuedAsNew},
			swfCase{name: "the rest of a run of an unknown type", prepare: types(true, schemas.WorkflowKind, "other", schemas.TypeRegistered), decision: &schemas.ContinueAsNew{Part: true}, event: schemas.EventWorkflowContinuedAsNew},
			swfCase{name: "the rest by an unknown version", prepare: types(true, schemas.WorkflowKind, "order", schemas.TypeRegistered), decision: &schemas.ContinueAsNew{Part: true, WorkflowTypeVersion: "2"}, event: schemas.EventWorkflowCloseFailed, cause: schemas.CauseWorkflowTypeUnknown},
			swfCase{name: "bad policy", decision: &schemas.ContinueAsNew{ChildPolicy: "EAT"}, event: schemas.EventWorkflowCloseFailed, cause: schemas.CauseInvalidAttributes},
			swfCase{name: "bad list", decision: &schemas.ContinueAsNew{ActivityDefaults: &schemas.ActivityDefaults{List: "a b"}}, event: schemas.EventWorkflowCloseFailed, cause: schemas.CauseInvalidAttributes},
			swfCase{name: "history full", prepare: full, decision: &schemas.ContinueAsNew{}, event: schemas.EventWorkflowContinuedAsNew}),
		"ScheduleLambdaFunction": {
			{name: "success", decision: &schemas.ScheduleActivity{ActivityID: "A", ActivityType: "request", List: "lambda"}, event: schemas.EventActivityScheduled},
		},
	}
}

// unanswered answers the open signal or cancel request with SWF's UNKNOWN_EXTERNAL_WORKFLOW_EXECUTION.
func unanswered(w *world) {
	w.do(External{Answer: &schemas.ExternalAnswer{SourceRun: "run-1", ScheduledEventID: 5, Cause: schemas.CauseUnknownExecution}})
}

func TestDecisionsOfSWF(t *testing.T) { // S1-7, S1-15, S1-24, S1-25, S1-27
	cases := swfCases()
	if len(cases) != 13 {
		t.Fatalf("%d decisions, SWF has 13", len(cases))
	}
	for decision, cases := range cases {
		for _, c := range cases {
			t.Run(decision+"/"+c.name, func(t *testing.T) { c.play(t) })
		}
	}
}

func (c swfCase) play(t *testing.T) {
	w := decided(t, c.before...)
	w.do(Signal{Name: "go on"})
	if c.prepare != nil {
		c.prepare(w)
	}
	w.mark = len(w.events)
	from := slices.IndexFunc(w.events, func(e schemas.Event) bool { return e.Type() == schemas.EventSignal })
	alone := c.decision.DecisionType() == schemas.DecideContinueAsNew || schemas.Decide(c.decision).Closes()
	if alone {
		w.decide(c.decision)
	} else {
		w.decide(c.decision, &schemas.SetAttributes{Attributes: map[string]string{"rest": "applied"}})
	}
	var event schemas.Attributes
	seen := false // by a decider that started after it
	for _, e := range w.events[from:] {
		seen = seen || event != nil && e.Type() == schemas.EventDeciderStarted
		if e.Type() == c.event {
			event, seen = e.Attributes, false
		}
	}
	if event == nil {
		t.Fatalf("no %s", c.event)
	}
	if got := causeOf(event); got != c.cause {
		t.Fatalf("cause %q, want %q", got, c.cause)
	}
	if w.s.Closed() {
		if c.cause != "" {
			t.Fatalf("refused, and closed as %s", w.s.Status)
		}
		return
	}
	if !alone && w.s.Attributes["rest"] != "applied" {
		t.Fatal("the rest of the reply was not applied")
	}
	if c.cause != "" && !seen {
		if _, asked := w.s.WantsDecider(&w.c); !asked {
			t.Fatal("the decider is not asked again")
		}
	}
	// Whatever happened, the run is not wedged.
	w.c.MaxEvents = 1000
	for range 3 {
		if _, asked := w.s.WantsDecider(&w.c); !asked {
			w.do(Signal{Name: "end"})
		}
		w.decide(&schemas.CompleteWorkflow{})
		if w.s.Closed() {
			return
		}
	}
	t.Fatal("the run cannot be completed")
}

// causeOf is the cause that a refusal gives, "" for other events.
func causeOf(a schemas.Attributes) schemas.Cause {
	switch a := a.(type) {
	case *schemas.ActivityScheduleFailed:
		return a.Cause
	case *schemas.ActivityCancelFailed:
		return a.Cause
	case *schemas.TimerScheduleFailed:
		return a.Cause
	case *schemas.TimerCancelFailed:
		return a.Cause
	case *schemas.MarkerFailed:
		return a.Cause
	case *schemas.ChildStartFailed:
		return a.Cause
	case *schemas.SignalExternalFailed:
		return a.Cause
	case *schemas.CancelExternalFailed:
		return a.Cause
	case *schemas.WorkflowCloseFailed:
		return a.Cause
	}
	return ""
}

// A history never grows far beyond its limit: the service ends the run, and says why.
func TestEventLimit(t *testing.T) {
	w := begin(t)
	w.c.MaxEvents = 100
	for i := 0; !w.s.Closed() && i < 1000; i++ {
		if _, asked := w.s.WantsDecider(&w.c); !asked {
			w.do(Signal{Name: "more"})
		}
		w.decide(&schemas.RecordMarker{MarkerName: "m"})
	}
	end := last[*schemas.WorkflowTerminated](w)
	if end.Cause != schemas.CauseEventLimitExceeded || end.Reason == "" || w.s.LastID > 210 {
		t.Fatalf("ended by %+v with %d events", end, w.s.LastID)
	}
}

// At that limit a run is ended once, by itself if that is what its decider says just then.
func TestEndAtTheEventLimit(t *testing.T) {
	for before, want := range map[int64]string{197: "DeciderCompleted; WorkflowSuccess", 198: "DeciderCompleted; WorkflowSuccess", 199: ""} {
		w := begin(t)
		w.c.MaxEvents = 100
		for w.s.LastID < before {
			w.do(Signal{Name: "more"})
		}
		if w.s.Closed() {
			t.Fatalf("ended with %d events", before)
		}
		w.do(Taken{})
		w.since()
		w.answer(&schemas.CompleteWorkflow{})
		if w.follows(want); !w.s.Closed() {
			t.Fatalf("open with %d events", w.s.LastID)
		}
	}
}
