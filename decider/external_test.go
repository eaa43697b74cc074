package decider_test

import (
	"slices"
	"testing"

	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/schemas"
	"github.com/google/go-cmp/cmp"
)

func TestExternals(t *testing.T) {
	c := schemas.Payload(`"c"`)
	sent := []schemas.Attributes{
		&schemas.SignalExternalScheduled{WorkflowID: "a", SignalName: "go", Control: c},   // 1
		&schemas.SignalExternalScheduled{WorkflowID: "a", Run: "R-1", SignalName: "stop"}, // 2
		&schemas.CancelExternalScheduled{WorkflowID: "a"},                                 // 3
		&schemas.SignalExternalScheduled{WorkflowID: "b", SignalName: "go"},               // 4
	}
	type externals = []decider.External
	signals := func(change func(externals)) externals {
		all := externals{
			{ScheduledID: 1, WorkflowID: "a", Signal: "go", Status: decider.ExternalSent, Control: c},
			{ScheduledID: 2, WorkflowID: "a", Run: "R-1", Signal: "stop", Status: decider.ExternalSent},
		}
		change(all)
		return all
	}
	same := func(externals) {}
	cancel := decider.External{ScheduledID: 3, WorkflowID: "a", Cancel: true, Status: decider.ExternalSent}
	lost := func(x *decider.External) {
		x.Status, x.Cause, x.Details = decider.ExternalFailed, schemas.CauseUnknownExecution, "d"
	}
	for name, tc := range map[string]struct {
		then             []schemas.Attributes
		signals, cancels externals // to a
	}{
		"sent": {nil, signals(same), externals{cancel}},
		"delivered": {
			[]schemas.Attributes{
				&schemas.ExternalSignaled{ScheduledEventID: 1, WorkflowExecution: schemas.Execution{WorkflowID: "a", Run: "R-7"}},
				&schemas.ExternalSignaled{ScheduledEventID: 2, WorkflowExecution: schemas.Execution{WorkflowID: "a"}},
				&schemas.ExternalCancelRequested{ScheduledEventID: 3, WorkflowExecution: schemas.Execution{WorkflowID: "a", Run: "R-7"}},
			},
			signals(func(all externals) {
				all[0].Status, all[0].Run = decider.ExternalDelivered, "R-7"
				all[1].Status = decider.ExternalDelivered
			}),
			externals{{ScheduledID: 3, WorkflowID: "a", Run: "R-7", Cancel: true, Status: decider.ExternalDelivered}},
		},
		"reached nobody": {
			[]schemas.Attributes{
				&schemas.SignalExternalFailed{WorkflowID: "a", ScheduledEventID: 1, Cause: schemas.CauseUnknownExecution, Details: "d", Control: c},
				&schemas.CancelExternalFailed{WorkflowID: "a", ScheduledEventID: 3, Cause: schemas.CauseUnknownExecution, Details: "d"},
			},
			signals(func(all externals) { lost(&all[0]) }),
			func() externals { x := cancel; lost(&x); return externals{x} }(),
		},
		"refused at once": {
			[]schemas.Attributes{
				&schemas.SignalExternalFailed{WorkflowID: "a", Run: "R", Cause: schemas.CauseOpenExternalsLimit, Control: c},
				&schemas.CancelExternalFailed{WorkflowID: "a", Cause: schemas.CauseOpenExternalsLimit},
			},
			append(signals(same), decider.External{WorkflowID: "a", Run: "R", Status: decider.ExternalFailed, Cause: schemas.CauseOpenExternalsLimit, Control: c}),
			externals{cancel, {WorkflowID: "a", Cancel: true, Status: decider.ExternalFailed, Cause: schemas.CauseOpenExternalsLimit}},
		},
		"answered twice, and of what was not added": {
			[]schemas.Attributes{
				&schemas.ExternalSignaled{ScheduledEventID: 1}, &schemas.SignalExternalFailed{ScheduledEventID: 1, Cause: schemas.CauseUnknownExecution},
				&schemas.ExternalCancelRequested{ScheduledEventID: 99}, &schemas.CancelExternalFailed{ScheduledEventID: 99},
			},
			signals(func(all externals) { all[0].Status = decider.ExternalDelivered }),
			externals{cancel},
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := viewOf(numbered(append(sent[:len(sent):len(sent)], tc.then...)))
			if diff := cmp.Diff(tc.signals, v.ExternalSignals("a")); diff != "" {
				t.Errorf("signals (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.cancels, v.ExternalCancels("a")); diff != "" {
				t.Errorf("cancel requests (-want +got):\n%s", diff)
			}
			if got, want := len(v.ExternalSignals()), len(tc.signals)+1; got != want {
				t.Errorf("got %d signals to all, want %d", got, want)
			}
			if got := v.ExternalCancels("b"); got != nil {
				t.Errorf("got cancel requests %v to b, want none", got)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	c := schemas.Payload(`"c"`)
	v := viewOf(numbered([]schemas.Attributes{
		&schemas.ActivityScheduleFailed{ActivityID: "a", Cause: schemas.CauseListUndefined, Details: "name a list"},
		&schemas.ActivityCancelFailed{ActivityID: "a", Cause: schemas.CauseActivityIDUnknown},
		&schemas.TimerScheduleFailed{TimerID: "t", Cause: schemas.CauseOpenTimersLimit, Details: "1000"},
		&schemas.TimerCancelFailed{TimerID: "t", Cause: schemas.CauseTimerIDUnknown},
		&schemas.MarkerFailed{MarkerName: "m", Cause: schemas.CauseInvalidAttributes, Details: "long"},
		&schemas.ChildStartFailed{WorkflowID: "w", Cause: schemas.CauseChildDepth, Details: "50", Control: c},
		&schemas.SignalExternalFailed{WorkflowID: "x", Cause: schemas.CauseUnknownExecution, Details: "gone", ScheduledEventID: 70, Control: c},
		&schemas.CancelExternalFailed{WorkflowID: "y", Cause: schemas.CauseUnknownExecution, ScheduledEventID: 71, Control: c},
		&schemas.Signal{SignalName: "no refusal"},
		&schemas.WorkflowCloseFailed{Decision: schemas.DecideCompleteWorkflow, Cause: schemas.CauseUnhandledDecision, Details: "new"},
		&schemas.WorkflowCloseFailed{Decision: schemas.DecideContinueAsNew, Cause: schemas.CauseWorkflowTypeUnknown},
		&schemas.LockRefused{Lock: "l", Cause: schemas.CauseLockQueue, Details: "1000", ScheduledEventID: 72},
		&schemas.LockRefused{Lock: "l", Cause: schemas.CauseLockRequested, Details: "tried", Decision: schemas.DecideReleaseLock},
	}))
	want := []decider.Refusal{
		{EventID: 1, Decision: schemas.DecideScheduleActivity, ID: "a", Cause: schemas.CauseListUndefined, Details: "name a list"},
		{EventID: 2, Decision: schemas.DecideRequestCancelActivity, ID: "a", Cause: schemas.CauseActivityIDUnknown},
		{EventID: 3, Decision: schemas.DecideScheduleTimer, ID: "t", Cause: schemas.CauseOpenTimersLimit, Details: "1000"},
		{EventID: 4, Decision: schemas.DecideCancelTimer, ID: "t", Cause: schemas.CauseTimerIDUnknown},
		{EventID: 5, Decision: schemas.DecideRecordMarker, ID: "m", Cause: schemas.CauseInvalidAttributes, Details: "long"},
		{EventID: 6, Decision: schemas.DecideStartChild, ID: "w", Cause: schemas.CauseChildDepth, Details: "50", Control: c},
		{EventID: 7, Decision: schemas.DecideSignalExternal, ID: "x", Cause: schemas.CauseUnknownExecution, Details: "gone", ScheduledID: 70, Control: c},
		{EventID: 8, Decision: schemas.DecideCancelExternal, ID: "y", Cause: schemas.CauseUnknownExecution, ScheduledID: 71, Control: c},
		{EventID: 10, Decision: schemas.DecideCompleteWorkflow, Cause: schemas.CauseUnhandledDecision, Details: "new"},
		{EventID: 11, Decision: schemas.DecideContinueAsNew, Cause: schemas.CauseWorkflowTypeUnknown},
		{EventID: 12, Decision: schemas.DecideAcquireLock, ID: "l", Cause: schemas.CauseLockQueue, Details: "1000", ScheduledID: 72},
		{EventID: 13, Decision: schemas.DecideReleaseLock, ID: "l", Cause: schemas.CauseLockRequested, Details: "tried"},
	}
	if diff := cmp.Diff(want, v.Refused()); diff != "" {
		t.Errorf("all (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]decider.Refusal{want[5], want[9]}, v.Refused(schemas.DecideContinueAsNew, schemas.DecideStartChild)); diff != "" {
		t.Errorf("some (-want +got):\n%s", diff)
	}
	if got := v.Timer("t"); got != decider.TimerRefused {
		t.Errorf("timer is %v, want refused", got)
	}
	if status, _, reason := v.Activity("a"); status != decider.ActivityRefused || reason != string(schemas.CauseListUndefined) {
		t.Errorf("activity is %v, %q, want refused", status, reason)
	}
	if got := viewOf(nil).Refused(); got != nil {
		t.Errorf("got %v of nothing", got)
	}
}

func TestLineage(t *testing.T) {
	parent := &schemas.Execution{WorkflowID: "p", Run: "R-0"}
	type lineage struct {
		Parent           *schemas.Execution
		Continued, First string
	}
	for name, c := range map[string]struct {
		started *schemas.WorkflowStarted
		want    lineage
	}{
		"alone":    {&schemas.WorkflowStarted{Run: "R-1"}, lineage{nil, "", "R-1"}},
		"a child":  {&schemas.WorkflowStarted{Run: "R-1", ParentWorkflowExecution: parent}, lineage{parent, "", "R-1"}},
		"the next": {&schemas.WorkflowStarted{Run: "R-3", ContinuedExecutionRun: "R-2", FirstExecutionRun: "R-1", ParentWorkflowExecution: parent}, lineage{parent, "R-2", "R-1"}},
		"no event": {nil, lineage{}},
	} {
		t.Run(name, func(t *testing.T) {
			v := decider.NewView()
			if c.started != nil {
				v = viewOf(numbered([]schemas.Attributes{c.started}))
			}
			if diff := cmp.Diff(c.want, lineage{v.Parent(), v.ContinuedRun(), v.FirstRun()}); diff != "" {
				t.Fatalf("lineage (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCancelRequestAndAttributes(t *testing.T) {
	v := viewOf(numbered([]schemas.Attributes{&schemas.WorkflowStarted{Attributes: map[string]string{"a": "1", "b": "2", "none": ""}}}))
	if v.CancelRequest() != nil || v.CancelRequested() {
		t.Fatalf("got request %v before any came", v.CancelRequest())
	}
	who := &schemas.Execution{WorkflowID: "boss"}
	for i, a := range []schemas.Attributes{
		&schemas.AttributesSet{Attributes: map[string]string{"a": "", "b": "3", "c": "4"}},
		&schemas.WorkflowCancelRequested{Reason: "enough", Identity: "ada", ExternalWorkflowExecution: who, Cause: schemas.CauseChildPolicyApplied},
		&schemas.WorkflowCancelRequested{Reason: "again"},
	} {
		v.Add(schemas.Event{ID: int64(i) + 2, Attributes: a})
	}
	if got := v.CancelRequest(); got == nil || got.Reason != "enough" || got.Identity != "ada" || got.ExternalWorkflowExecution != who || !v.CancelRequested() {
		t.Errorf("got %+v, want the first request", got)
	}
	want := map[string]string{"b": "3", "c": "4"}
	got := v.Attributes()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("attributes (-want +got):\n%s", diff)
	}
	got["b"] = "changed by the caller"
	if diff := cmp.Diff(want, v.Attributes()); diff != "" {
		t.Errorf("attributes after a change outside (-want +got):\n%s", diff)
	}
}

// S2-6, S2-8: a decider is told that it is to continue as new, and why, and what began its run. A broker of before gives no reason.
func TestSuggestContinueAsNew(t *testing.T) {
	for _, tt := range []struct {
		suggests      bool
		reasons, want []string
	}{
		{},
		{true, []string{"age", "history"}, []string{"age", "history"}},
		{true, nil, []string{"history"}},
	} {
		task, err := decider.NewTask(schemas.DecisionTask{
			WorkflowID: "w", Run: "r", StartedID: 1, Events: numbered([]schemas.Attributes{&schemas.DeciderStarted{}}),
			SuggestContinueAsNew: tt.suggests, ContinueReasons: tt.reasons, StartMode: schemas.ModeAutoStart,
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := task.SuggestContinueAsNew(); got != tt.suggests {
			t.Errorf("got %v, want %v", got, tt.suggests)
		}
		if got := task.ContinueReasons(); !slices.Equal(got, tt.want) {
			t.Errorf("got %q, want %q", got, tt.want)
		}
		if got := task.StartMode(); got != "AutoStart" {
			t.Errorf("got %q", got)
		}
	}
}
