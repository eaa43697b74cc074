package checker_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/droverhq/drover/broker/checker"
)

// Beginnings of histories.
const (
	begun   = "WorkflowStarted\nDeciderScheduled\n"
	running = begun + "DeciderStarted\n"
	decided = running + "DeciderCompleted\n"
	active  = decided + "ActivityScheduled A\nActivityStarted A\n"
)

// undone is a reply of which nothing stands, after a DeciderScheduled, and overSignal one that stands though a signal came in.
const (
	undone     = "DeciderStarted\nSignal s\nDeciderScheduled\nDeciderFailed cause=UNHANDLED_DECISION decision=CompleteWorkflow\n"
	overSignal = "DeciderStarted\nSignal s\nDeciderScheduled\nDeciderCompleted\n"
)

// mismatch is a decider whose code does not fit the history, after a DeciderScheduled.
const mismatch = "DeciderStarted\nDeciderFailed cause=NON_DETERMINISTIC\n"

// illegal are histories that break one rule each. The name of a case says what is wrong; ids count from 1.
var illegal = []struct{ rule, name, text string }{
	{checker.RuleFirst, "no events", ""},
	{checker.RuleFirst, "begins with a signal", "Signal s\nDeciderScheduled\n"},
	{checker.RuleFirst, "nothing is scheduled at once", "WorkflowStarted\nSignal s\nDeciderScheduled\n"},
	{checker.RuleFirst, "started twice", begun + "WorkflowStarted\n"},
	{checker.RuleFirst, "another run", "WorkflowStarted run=other\nDeciderScheduled\n"},
	{checker.RuleFirst, "another workflow", "WorkflowStarted workflowId=other\nDeciderScheduled\n"},

	{checker.RuleClosed, "signal after success", decided + "WorkflowSuccess\nSignal s\n"},
	{checker.RuleClosed, "success after success", decided + "WorkflowSuccess\nWorkflowSuccess\n"},
	{checker.RuleClosed, "timeout after termination", begun + "WorkflowTerminated\n+8760h WorkflowTimedOut\n"},
	{checker.RuleClosed, "decision after the closing one", decided + "WorkflowFailed\nActivityScheduled A\n"},
	{checker.RuleClosed, "anything after a continuation", decided + "WorkflowContinuedAsNew newExecutionRun=r2\nDeciderScheduled\n"},
	{checker.RuleClosed, "anything after a timeout", begun + "+8760h WorkflowTimedOut\nDeciderScheduled\n"},
	{checker.RuleClosed, "anything after a cancellation", decided + "WorkflowCanceled\nMarker m\n"},

	{checker.RuleTime, "back by a nanosecond", running + "+-1ns DeciderCompleted\n"},

	{checker.RuleEvent, "run timed out by another limit", begun + "+8760h WorkflowTimedOut timeoutType=SCHEDULE_TO_START\n"},
	{checker.RuleEvent, "decider timed out by another limit", running + "+10s DeciderTimedOut timeoutType=HEARTBEAT\nDeciderScheduled\n"},
	{checker.RuleEvent, "activity timed out by no limit", active + "ActivityTimedOut A timeoutType=SOON\nDeciderScheduled\n"},
	{checker.RuleEvent, "schedule-to-start as the other event", active + "ActivityTimedOut A timeoutType=SCHEDULE_TO_START\nDeciderScheduled\n"},
	{checker.RuleEvent, "never taken, by another limit", decided + "ActivityScheduled A scheduleToStartTimeout=5\n+5s ActivityScheduledTimeout A timeoutType=HEARTBEAT\nDeciderScheduled\n"},

	{checker.RuleOnce, "signal repeated", begun + "Signal s requestId=q\nSignal s requestId=q\n"},
	{checker.RuleOnce, "cancel request repeated", begun + "WorkflowCancelRequested requestId=q\nWorkflowCancelRequested requestId=q\n"},
	{checker.RuleOnce, "pause repeated", begun + "WorkflowPaused requestId=q\nWorkflowResumed\nWorkflowPaused requestId=q\n"},
	{checker.RuleOnce, "resume repeated", begun + "WorkflowPaused\nWorkflowResumed requestId=q\nWorkflowPaused\nWorkflowResumed requestId=q\n"},
	{checker.RuleOnce, "signal of another run repeated", begun + strings.Repeat(`Signal s externalScheduledEventId=7 externalWorkflowExecution={"workflowId":"x","run":"r1"}`+"\n", 2)},
	{checker.RuleOnce, "cancel request of another run repeated", begun + strings.Repeat(`WorkflowCancelRequested externalScheduledEventId=7 externalWorkflowExecution={"workflowId":"x","run":"r1"}`+"\n", 2)},

	{checker.RuleDeciderScheduled, "two pending", begun + "DeciderScheduled\n"},
	{checker.RuleDeciderScheduled, "two pending after a running one", running + "Signal s\nDeciderScheduled\nSignal s\nDeciderScheduled\n"},
	{checker.RuleDeciderScheduled, "a second one after a timeout", running + "Signal s\nDeciderScheduled\n+10s DeciderTimedOut\nDeciderScheduled\n"},
	{checker.RuleDeciderScheduled, "without reason", decided + "Marker m\nDeciderScheduled\n"},
	{checker.RuleDeciderScheduled, "asked for, and two", running + "DeciderCompleted again=true\nDeciderScheduled\nDeciderScheduled\n"},
	{checker.RuleDeciderScheduled, "asked for once", running + "DeciderCompleted again=true\nDeciderScheduled\nDeciderStarted\nDeciderCompleted\nDeciderScheduled\n"},
	{checker.RuleDeciderScheduled, "asked for in a pause", running + "WorkflowPaused\nDeciderCompleted again=true\nWorkflowResumed\nDeciderScheduled\nDeciderStarted\nDeciderCompleted\nDeciderScheduled\n"},
	{checker.RuleDeciderScheduled, "while the one who saw the reason runs", running + "DeciderScheduled\n"},

	{checker.RuleDeciderStarted, "two running", running + "Signal s\nDeciderScheduled\nDeciderStarted\n"},
	{checker.RuleDeciderStarted, "nothing pending", decided + "DeciderStarted scheduledEventId=2\n"},
	{checker.RuleDeciderStarted, "another one pending", decided + "Signal s\nDeciderScheduled\nDeciderStarted scheduledEventId=2\n"},
	{checker.RuleDeciderStarted, "pending one timed out", begun + "+1m DeciderTimedOut scheduledEventId=2\nDeciderStarted scheduledEventId=2\n"},

	{checker.RuleDeciderClosed, "completed without start", begun + "DeciderCompleted scheduledEventId=2\n"},
	{checker.RuleDeciderClosed, "completed twice", decided + "DeciderCompleted scheduledEventId=2 startedEventId=3\n"},
	{checker.RuleDeciderClosed, "failed without start", begun + "DeciderFailed\n"},
	{checker.RuleDeciderClosed, "failed after it completed", decided + "DeciderFailed scheduledEventId=2 startedEventId=3\nDeciderScheduled\n"},
	{checker.RuleDeciderClosed, "timed out without start", begun + "+10s DeciderTimedOut timeoutType=START_TO_CLOSE\n"},
	{checker.RuleDeciderClosed, "completed names another start", running + "DeciderCompleted startedEventId=2\n"},
	{checker.RuleDeciderClosed, "completed names another schedule", running + "DeciderCompleted scheduledEventId=1\n"},
	{checker.RuleDeciderClosed, "timed out names another start", running + "+10s DeciderTimedOut startedEventId=1\nDeciderScheduled\n"},
	{checker.RuleDeciderClosed, "schedule-to-start of none", decided + "DeciderTimedOut timeoutType=SCHEDULE_TO_START scheduledEventId=0\nDeciderScheduled\n"},
	{checker.RuleDeciderClosed, "schedule-to-start of a started one", "WorkflowStarted taskScheduleToStartTimeout=5\nDeciderScheduled\nDeciderStarted\n+5s DeciderTimedOut timeoutType=SCHEDULE_TO_START\nDeciderScheduled\n"},
	{checker.RuleDeciderClosed, "schedule-to-start with a start", "WorkflowStarted taskScheduleToStartTimeout=5\nDeciderScheduled\n+5s DeciderTimedOut startedEventId=1\nDeciderScheduled\n"},
	{checker.RuleDeciderClosed, "schedule-to-start of another one", "WorkflowStarted taskScheduleToStartTimeout=5\nDeciderScheduled\n+5s DeciderTimedOut scheduledEventId=1\nDeciderScheduled\n"},

	{checker.RuleDecided, "before the decider answered", running + "ActivityScheduled A\n"},
	{checker.RuleDecided, "after a signal", decided + "Signal s\nTimerScheduled T startToFireTimeout=1\nDeciderScheduled\n"},
	{checker.RuleDecided, "after the next DeciderScheduled", running + "Signal s\nDeciderScheduled\nDeciderCompleted\nDeciderStarted\nMarker m\n"},
	{checker.RuleDecided, "after a failure", running + "DeciderFailed\nMarker m deciderCompletedEventId=4\nDeciderScheduled\n"},
	{checker.RuleDecided, "names another completion", decided + "Marker m deciderCompletedEventId=3\n"},
	{checker.RuleDecided, "names none", decided + "Marker m deciderCompletedEventId=0\n"},
	{checker.RuleDecided, "success without decision", begun + "WorkflowSuccess\n"},
	{checker.RuleDecided, "cancellation without decision", begun + "WorkflowCanceled\n"},
	{checker.RuleDecided, "failure that was decided elsewhere", begun + "WorkflowFailed deciderCompletedEventId=4\n"},
	{checker.RuleDecided, "continuation without decision", begun + "WorkflowContinuedAsNew newExecutionRun=r2\n"},
	{checker.RuleDecided, "child without decision", begun + "ChildScheduled c\n"},
	{checker.RuleDecided, "signal to another without decision", begun + "SignalExternalScheduled c\n"},
	{checker.RuleDecided, "cancel of another without decision", begun + "CancelExternalScheduled c\n"},
	{checker.RuleDecided, "after the answer to an earlier decision", decided + "LockRequested L\nSignal s\nDeciderScheduled\nDeciderStarted\nDeciderCompleted\nMarker m\nLockAcquired L fence=1\nMarker m\nDeciderScheduled\n"},
	{checker.RuleDecided, "lock without decision", begun + "LockRequested L\n"},
	{checker.RuleDecided, "release that was decided elsewhere", begun + "LockReleased L deciderCompletedEventId=4\n"},
	{checker.RuleDecided, "state without decision", begun + "StateRequested k decision=GetState\n"},
	{checker.RuleDecided, "replay point without decision", begun + "ReplayPointSet x\n"},
	{checker.RuleDecided, "reset without decision", begun + "ReplayPointsReset\n"},
	{checker.RuleDecided, "retention without decision", begun + "RetentionSet\n"},
	{checker.RuleDecided, "attributes without decision", begun + "AttributesSet\n"},
	{checker.RuleDecided, "cancel request without decision", active + "ActivityCancelRequested A\n"},
	{checker.RuleDecided, "timer canceled without decision", decided + "TimerScheduled T startToFireTimeout=1\nActivityScheduled A\nActivityStarted A\nTimerCanceled T\n"},
	{checker.RuleDecided, "activity refused without decision", begun + "ActivityScheduleFailed A\n"},
	{checker.RuleDecided, "cancel refused without decision", begun + "ActivityCancelFailed A\n"},
	{checker.RuleDecided, "timer refused without decision", begun + "TimerScheduleFailed T\n"},
	{checker.RuleDecided, "timer cancel refused without decision", begun + "TimerCancelFailed T\n"},
	{checker.RuleDecided, "marker refused without decision", begun + "MarkerFailed m\n"},
	{checker.RuleDecided, "close refused without decision", begun + "WorkflowCloseFailed cause=OPERATION_NOT_PERMITTED\n"},
	{checker.RuleDecided, "child refused without decision", begun + "ChildStartFailed c deciderCompletedEventId=1\n"},
	{checker.RuleDecided, "signal refused without decision", begun + "SignalExternalFailed c deciderCompletedEventId=1\n"},
	{checker.RuleDecided, "cancel of another refused without decision", begun + "CancelExternalFailed c deciderCompletedEventId=1\n"},
	{checker.RuleDecided, "after the next start", decided + "ActivityScheduled A\nActivityCancelRequested A\nActivityCanceled A\nMarker m\nDeciderScheduled\nDeciderStarted\nMarker m\n"},
	{checker.RuleDecided, "after a worker's cancellation", active + "Signal s\nDeciderScheduled\nDeciderStarted\nDeciderCompleted\n" +
		"ActivityCancelRequested A\nActivityCanceled A\nMarker m\nDeciderScheduled\n"},

	{checker.RuleRefusal, "timer id is not in use", decided + "TimerScheduleFailed T cause=TIMER_ID_ALREADY_IN_USE\nDeciderScheduled\n"},
	{checker.RuleRefusal, "timer is known", decided + "TimerScheduled T startToFireTimeout=5\nTimerCancelFailed T cause=TIMER_ID_UNKNOWN\nDeciderScheduled\n"},
	{checker.RuleRefusal, "activity id is not in use", decided + "ActivityScheduleFailed A cause=ACTIVITY_ID_ALREADY_IN_USE\nDeciderScheduled\n"},
	{checker.RuleRefusal, "activity is known", decided + "ActivityScheduled A\nActivityCancelFailed A cause=ACTIVITY_ID_UNKNOWN\nDeciderScheduled\n"},

	{checker.RuleUnhandled, "success over a signal", running + "Signal s\nDeciderScheduled\nDeciderCompleted\nWorkflowSuccess\n"},
	{checker.RuleUnhandled, "failure over a signal", running + "Signal s\nDeciderScheduled\nDeciderCompleted\nWorkflowFailed\n"},
	{checker.RuleUnhandled, "cancellation over a signal", running + "Signal s\nDeciderScheduled\nDeciderCompleted\nMarker m\nWorkflowCanceled\n"},
	{checker.RuleUnhandled, "continuation over a child that was to be told", decided + "ChildScheduled c tell=true\nSignal s\nDeciderScheduled\nDeciderStarted\nChildStarted c\nDeciderScheduled\nDeciderCompleted\nWorkflowContinuedAsNew newExecutionRun=r2\n"},
	{checker.RuleUnhandled, "continuation over a cancel request", running + "WorkflowCancelRequested\nDeciderScheduled\nDeciderCompleted\nWorkflowContinuedAsNew newExecutionRun=r2\n"},
	{checker.RuleUnhandled, "refused without reason", decided + "WorkflowCloseFailed cause=UNHANDLED_DECISION\nDeciderScheduled\n"},
	{checker.RuleUnhandled, "undone without reason", running + "DeciderFailed cause=UNHANDLED_DECISION decision=CompleteWorkflow\nDeciderScheduled\n"},
	{checker.RuleUnhandled, "undone for what the decider saw", begun + "Signal s\nDeciderStarted\nDeciderFailed cause=UNHANDLED_DECISION decision=ContinueAsNew\nDeciderScheduled\n"},
	{checker.RuleUnhandled, "undone eleven times in a row", begun + strings.Repeat(undone, 11)},
	{checker.RuleUnhandled, "closed over a signal the tenth time", begun + strings.Repeat(undone, 9) + overSignal + "WorkflowSuccess unreadSignals=1\n"},
	{checker.RuleUnhandled, "closed over a signal the tenth time since all was seen", begun + strings.Repeat(undone, 9) + "DeciderStarted\nDeciderCompleted\nSignal s\nDeciderScheduled\n" + undone + overSignal + "WorkflowSuccess unreadSignals=1\n"},
	{checker.RuleUnhandled, "continued over a cancel request after ten refusals", begun + strings.Repeat(undone, 10) + "DeciderStarted\nWorkflowCancelRequested\nDeciderScheduled\nDeciderCompleted\nWorkflowContinuedAsNew newExecutionRun=r2\n"},
	{checker.RuleUnhandled, "success without the unread signal", begun + strings.Repeat(undone, 10) + overSignal + "WorkflowSuccess\n"},
	{checker.RuleUnhandled, "failure with too many unread signals", begun + strings.Repeat(undone, 10) + overSignal + "WorkflowFailed unreadSignals=2\n"},
	{checker.RuleUnhandled, "cancellation with unread signals of none", decided + "WorkflowCanceled unreadSignals=1\n"},
	{checker.RuleUnhandled, "refused for what the decider saw", begun + "Signal s\nDeciderStarted\nDeciderCompleted\nWorkflowCloseFailed cause=UNHANDLED_DECISION\nDeciderScheduled\n"},

	{checker.RuleWake, "signal", decided + "Signal s\n"},
	{checker.RuleWake, "signal while a decider runs", running + "Signal s\n"},
	{checker.RuleWake, "outcome", active + "ActivitySuccess A\n"},
	{checker.RuleWake, "refusal", decided + "MarkerFailed m\n"},
	{checker.RuleWake, "decider failed", running + "DeciderFailed\n"},
	{checker.RuleWake, "decider timed out", running + "+10s DeciderTimedOut\n"},
	{checker.RuleWake, "resumed", decided + "WorkflowPaused\nSignal s\nWorkflowResumed\n"},
	{checker.RuleWake, "timer", decided + "TimerScheduled T startToFireTimeout=1\n+1s TimerExpired T\n"},
	{checker.RuleWake, "start", "WorkflowStarted\n"},
	{checker.RuleWake, "another decision that was asked for", running + "DeciderCompleted again=true\n"},
	{checker.RuleWake, "another decision, after what was decided", running + "DeciderCompleted again=true\nMarker m\nActivityScheduled A\nActivityStarted A\n"},
	{checker.RuleWake, "another decision, before anything else", running + "DeciderCompleted again=true\nMarker m\nSignal s\nDeciderScheduled\n"},
	{checker.RuleWake, "blamed where the next decider starts", decided + "Signal s\nDeciderStarted scheduledEventId=2\n"},

	{checker.RulePaused, "scheduled", decided + "WorkflowPaused\nSignal s\nDeciderScheduled\n"},
	{checker.RulePaused, "started", begun + "WorkflowPaused\nDeciderStarted\n"},
	{checker.RulePaused, "paused twice", begun + "WorkflowPaused\nWorkflowPaused\n"},
	{checker.RulePaused, "resumed twice", begun + "WorkflowPaused\nWorkflowResumed\nWorkflowResumed\n"},
	{checker.RulePaused, "code that never fits", begun + strings.Repeat(mismatch+"DeciderScheduled\n", 3)},
	{checker.RulePaused, "code that never fits, and the end", begun + mismatch + "DeciderScheduled\n" + mismatch + "DeciderScheduled\n" + "DeciderStarted\nSignal s\nDeciderScheduled\nDeciderFailed cause=NON_DETERMINISTIC\n"},
	{checker.RulePaused, "code that never fits, after a pause", begun + strings.Repeat(mismatch+"WorkflowPaused\nWorkflowResumed\nDeciderScheduled\n", 2) + strings.Repeat(mismatch+"DeciderScheduled\n", 3)},
	{checker.RulePaused, "resumed only", begun + "WorkflowResumed\n"},
}

// consequences are the rules that cannot but be broken together with the one that a case is about.
var consequences = map[string]string{
	"pending one timed out":                checker.RuleWake + " " + checker.RuleEarly,
	"blamed where the next decider starts": checker.RuleDeciderStarted,
}

func TestIllegalHistories(t *testing.T) {
	for _, tt := range slices.Concat(illegal, illegalTasks) {
		t.Run(tt.rule+"/"+tt.name, func(t *testing.T) {
			events := script(t, tt.text)
			checkRules(t, checker.CheckEvents("w", "r", events), tt.rule, consequences[tt.name], show(events))
		})
	}
}

// checkRules checks that the rule is among those found, and no others but the consequences.
func checkRules(t *testing.T, found []checker.Violation, rule, besides, context string) {
	t.Helper()
	hit := false
	for _, v := range found {
		hit = hit || v.Rule == rule
		if v.Rule != rule && !slices.Contains(strings.Fields(besides), v.Rule) {
			t.Errorf("also found %v", v)
		}
		if v.Detail == "" || v.WorkflowID != "w" || !strings.HasPrefix(v.String(), v.Rule+": workflow \"w\" run ") {
			t.Errorf("a violation that says too little: %q", v)
		}
	}
	if !hit {
		t.Errorf("got %v, want %s", found, rule)
	}
	if t.Failed() {
		t.Log("\n" + context)
	}
}
