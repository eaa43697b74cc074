package checker_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/droverhq/drover/broker/checker"
)

// again asks the decider once more and lets it answer.
const again = "Signal s\nDeciderScheduled\nDeciderStarted\nDeciderCompleted\n"

// legal are corners that must pass: a checker that cries wolf is switched off.
var legal = map[string]string{
	"retry after an interrupt names the lost start": active + "ActivityInterrupted A\nActivityRetryScheduled A startedEventId=6 attempt=1\nActivityStarted A\n",
	"retry after an interrupt names no start":       active + "ActivityInterrupted A\nActivityRetryScheduled A attempt=1\nActivityStarted A\n",
	"failed for good": active + "ActivityFailed A reason=busy final=true\nDeciderScheduled\n",
	"failed for a reason that rules retries out":     decided + "ActivityScheduled A retry={\"nonRetryable\":[\"no\"]}\nActivityStarted A\nActivityFailed A reason=no\nDeciderScheduled\n",
	"failed at the last attempt":                     decided + "ActivityScheduled A retry={\"maximumAttempts\":1}\nActivityStarted A\nActivityInterrupted A\nActivityStarted A\nActivityFailed A\nDeciderScheduled\n",
	"failed without time for another attempt":        decided + "ActivityScheduled A scheduleToCloseTimeout=5\nActivityStarted A\n+5s ActivityFailed A\nDeciderScheduled\n",
	"failed though its end was wanted":               active + again + "ActivityCancelRequested A\nActivityFailed A reason=busy\nDeciderScheduled\n",
	"canceled without a request":                     active + "ActivityFailed A reason=canceled\nDeciderScheduled\n",
	"told that a child has begun":                    decided + "ChildScheduled c tell=true\nChildStarted c\nDeciderScheduled\nDeciderStarted\n",
	"told of a signal and of a cancel request":       decided + "SignalExternalScheduled x tell=true\nCancelExternalScheduled x tell=true\nExternalSignaled x\nDeciderScheduled\nExternalCancelRequested x\n",
	"closed over a child that has begun":             decided + again + "ChildScheduled c\nSignal s\nDeciderScheduled\nDeciderStarted\nChildStarted c\nDeciderCompleted\nWorkflowSuccess\n",
	"continued over a child that has begun":          decided + "ChildScheduled c\nSignal s\nDeciderScheduled\nDeciderStarted\nChildStarted c\nDeciderCompleted\nWorkflowContinuedAsNew newExecutionRun=r2\n",
	"refused over a child that was to be told":       decided + again + "ChildScheduled c tell=true\nSignal s\nDeciderScheduled\nDeciderStarted\nChildStarted c\nDeciderScheduled\nDeciderCompleted\nWorkflowCloseFailed cause=UNHANDLED_DECISION\n",
	"retry of what nobody took":                      decided + "ActivityScheduled A\nActivityRetryScheduled A attempt=1\nActivityStarted A attempt=2\n",
	"not idempotent, retried by its policy":          decided + "ActivityScheduled A notIdempotent=true\nActivityStarted A\nActivityRetryScheduled A\nActivityStarted A\n",
	"not idempotent, retried after an interrupt":     decided + "ActivityScheduled A notIdempotent=true\nActivityStarted A\nActivityInterrupted A\nActivityRetryScheduled A attempt=1\nActivityStarted A\n",
	"canceled between attempts":                      active + "ActivityInterrupted A\n" + again + "ActivityCancelRequested A\nActivityCanceled A\nDeciderScheduled\n",
	"canceled between attempts, names the start":     active + "ActivityRetryScheduled A\n" + again + "ActivityCancelRequested A\nActivityCanceled A startedEventId=6\nDeciderScheduled\n",
	"canceled by the loss of its worker":             active + again + "ActivityCancelRequested A\nActivityInterrupted A\nActivityCanceled A startedEventId=6\nDeciderScheduled\n",
	"canceled at the second request":                 active + again + "ActivityCancelRequested A\n" + again + "ActivityCancelRequested A\nActivityCanceled A\nDeciderScheduled\n",
	"schedule-to-close between attempts":             "WorkflowStarted activityDefaults={\"scheduleToCloseTimeout\":9}\nDeciderScheduled\nDeciderStarted\nDeciderCompleted\nActivityScheduled A\nActivityStarted A\nActivityRetryScheduled A\n+9s ActivityTimedOut A timeoutType=SCHEDULE_TO_CLOSE\nDeciderScheduled\n",
	"schedule-to-close names the lost start":         "WorkflowStarted activityDefaults={\"scheduleToCloseTimeout\":9}\nDeciderScheduled\nDeciderStarted\nDeciderCompleted\nActivityScheduled A\nActivityStarted A\nActivityRetryScheduled A\n+9s ActivityTimedOut A timeoutType=SCHEDULE_TO_CLOSE startedEventId=6\nDeciderScheduled\n",
	"activity id is free again":                      active + "ActivitySuccess A\nDeciderScheduled\nDeciderStarted\nDeciderCompleted\nActivityScheduled A\nActivityStarted A\n",
	"timer id is free again":                         decided + "TimerScheduled T startToFireTimeout=1\nTimerCanceled T\nTimerScheduled T startToFireTimeout=1\n+1s TimerExpired T\nDeciderScheduled\n",
	"timer of no duration":                           decided + "TimerScheduled T startToFireTimeout=0\nTimerExpired T\nDeciderScheduled\n",
	"the service fails the run":                      running + "WorkflowFailed deciderCompletedEventId=0\n",
	"the service fails the run over a signal":        running + "Signal s\nDeciderScheduled\nDeciderCompleted\nDeciderStarted\nWorkflowFailed deciderCompletedEventId=0\n",
	"the service releases a lock":                    decided + "LockRequested L\nLockAcquired L fence=3\nDeciderScheduled\nLockReleased L fence=3 deciderCompletedEventId=0\nWorkflowTerminated\n",
	"the service releases a lock among decisions":    decided + "Marker m\nLockReleased L deciderCompletedEventId=0\nMarker m\n",
	"a lock of the same fence again":                 decided + "LockRequested L\nLockAcquired L fence=3\nDeciderScheduled\nDeciderStarted\nDeciderCompleted\nLockRequested L\nLockAcquired L fence=3\nDeciderScheduled\n",
	"a lock that is held is released, not its queue": decided + "LockRequested L\nLockAcquired L fence=3\nDeciderScheduled\nDeciderStarted\nDeciderCompleted\nLockRequested L\nLockReleased L\nLockAcquired L fence=4\nDeciderScheduled\n",
	"a leased lock again, no word of the lease":      decided + "LockRequested L lease=30\nLockAcquired L fence=3 expires=\"2026-01-01T00:00:30Z\"\nDeciderScheduled\nDeciderStarted\nDeciderCompleted\nLockRequested L\nLockAcquired L fence=3 expires=\"2026-01-01T00:00:30Z\"\nDeciderScheduled\n",
	"a lock by its state key":                        decided + "StateRequested lock-L decision=SetState\nLockAcquired L fence=3 scheduledEventId=5\nStateSet lock-L scheduledEventId=5 revision=3\nDeciderScheduled\n",
	"a state key of a lock that the run holds":       decided + "StateRequested lock-L decision=ClearState\nStateCleared lock-L\nMarker m\nDeciderScheduled\n",
	"a state key refused at once":                    decided + "StateRefused k scheduledEventId=0 deciderCompletedEventId=4\nMarker m\nDeciderScheduled\n",
	"another lock is withdrawn":                      decided + "LockRequested L\nLockRequested M\nLockRequested L scope=s\nStateRequested L decision=GetState\nLockReleased M\nLockAcquired L scheduledEventId=5\nDeciderScheduled\nLockAcquired L scope=s scheduledEventId=7\nStateRead L\n",
	"the lock of another scope is withdrawn":         decided + "LockRequested L scope=s\nLockReleased L\nLockAcquired L scope=s fence=3 scheduledEventId=5\nDeciderScheduled\n",
	"refused at once, with a schedule":               decided + "ChildScheduled c\nChildStartFailed c\nMarker m\nDeciderScheduled\n",
	"refused at once, without":                       decided + "ChildStartFailed c scheduledEventId=0 deciderCompletedEventId=4\nMarker m\nDeciderScheduled\n",
	"refused for other reasons":                      decided + "ActivityScheduled A\nActivityScheduleFailed B cause=OPEN_ACTIVITIES_LIMIT_EXCEEDED\nActivityCancelFailed A cause=OPERATION_NOT_PERMITTED\nTimerScheduleFailed T cause=OPEN_TIMERS_LIMIT_EXCEEDED\nDeciderScheduled\n",
	"closed over what the decision itself woke":      decided + "MarkerFailed m\nWorkflowSuccess\n",
	"refused over what the decision itself woke":     decided + "MarkerFailed m\nWorkflowCloseFailed cause=UNHANDLED_DECISION\nDeciderScheduled\n",
	"close refused for another reason":               decided + "WorkflowCloseFailed cause=OPERATION_NOT_PERMITTED\nDeciderScheduled\n",
	"pending over a pause":                           begun + "WorkflowPaused\nSignal s\nWorkflowResumed\nDeciderStarted\n",
	"completed in a pause":                           running + "WorkflowPaused\nDeciderCompleted\nActivityScheduled A\n",
	"one request id for two kinds":                   begun + "Signal s requestId=q\nWorkflowCancelRequested requestId=q\n",
	"signals without request ids":                    begun + "Signal s\nSignal s\n",
	"signals of two events of one run":               begun + "Signal s externalScheduledEventId=7 externalWorkflowExecution={\"workflowId\":\"x\"}\nSignal s externalScheduledEventId=8 externalWorkflowExecution={\"workflowId\":\"x\"}\n",
	"signals of a run that names no event":           begun + strings.Repeat("Signal s externalWorkflowExecution={\"workflowId\":\"x\"}\n", 2),
	"signals of an event that names no run":          begun + strings.Repeat("Signal s externalScheduledEventId=7\n", 2),
	"timed out to the nanosecond":                    "WorkflowStarted executionStartToCloseTimeout=0.000000001\nDeciderScheduled\n+1ns WorkflowTimedOut\n",
	"decider without limit of the run has its own":   "WorkflowStarted taskStartToCloseTimeout=NONE\nDeciderScheduled startToCloseTimeout=1\nDeciderStarted\n+1s DeciderTimedOut\nDeciderScheduled\n",
	"news of a later version woke the decider":       decided + "LaterNews\nDeciderScheduled\n",

	"undone, then decided":                      begun + undone + "DeciderStarted\nDeciderCompleted\nWorkflowSuccess\n",
	"closed over signals at last":               begun + strings.Repeat(undone, 10) + overSignal + "Marker m\nWorkflowSuccess unreadSignals=1\n",
	"continued as ever, undone before":          begun + strings.Repeat(strings.ReplaceAll(undone, "CompleteWorkflow", "ContinueAsNew"), 3) + overSignal + "WorkflowContinuedAsNew newExecutionRun=r2 unreadSignals=1\n",
	"a continuation undone for a cancel, often": begun + strings.Repeat("DeciderStarted\nWorkflowCancelRequested\nDeciderScheduled\nDeciderFailed cause=UNHANDLED_DECISION decision=ContinueAsNew\n", 12),
	"the row goes on while not all is seen":     begun + strings.Repeat(undone, 9) + overSignal + undone + overSignal + "WorkflowFailed unreadSignals=1\n",
	"another decision":                          running + "DeciderCompleted again=true\nMarker m\nDeciderScheduled\nDeciderStarted\nDeciderCompleted again=true\nDeciderScheduled\nDeciderStarted\nDeciderCompleted\nWorkflowSuccess\n",
	"another decision, that is pending already": running + "Signal s\nDeciderScheduled\nDeciderCompleted again=true\nMarker m\nActivityScheduled A\nActivityStarted A\n",
	"another decision, of a run that closed":    running + "DeciderCompleted again=true\nWorkflowSuccess\n",
	"another decision, of a run that is parked": running + "DeciderCompleted again=true\nMarkerFailed m\nWorkflowPaused\n",
	"another decision, after a pause":           running + "WorkflowPaused\nDeciderCompleted again=true\nWorkflowResumed\nDeciderScheduled\n",
	"another decision, of a run that is ended":  running + "DeciderCompleted again=true\nMarker m\nWorkflowTerminated\n",
	"code that never fits":                      begun + strings.Repeat(mismatch+"DeciderScheduled\n", 2) + mismatch + "WorkflowPaused cause=DECIDER_ATTEMPTS_EXCEEDED\nWorkflowResumed\nDeciderScheduled\n" + mismatch + "DeciderScheduled\n",
	"code that fits now and then":               begun + strings.Repeat(mismatch+"DeciderScheduled\n"+mismatch+"DeciderScheduled\nDeciderStarted\nDeciderFailed\nDeciderScheduled\n", 3),
	"code that fits in the end":                 begun + strings.Repeat(mismatch+"DeciderScheduled\n"+mismatch+"DeciderScheduled\nDeciderStarted\nDeciderCompleted\nSignal s\nDeciderScheduled\n", 3),
	"code that does not fit, or answer":         begun + strings.Repeat(mismatch+"DeciderScheduled\n"+mismatch+"DeciderScheduled\nDeciderStarted\n+10s DeciderTimedOut\nDeciderScheduled\n", 3),
	"code that never fits, of a paused run":     begun + strings.Repeat(mismatch+"DeciderScheduled\n", 2) + "DeciderStarted\nWorkflowPaused\nDeciderFailed cause=NON_DETERMINISTIC\nWorkflowResumed\nDeciderScheduled\n",
	"undone in a pause":                         running + "WorkflowPaused\nSignal s\nDeciderFailed cause=UNHANDLED_DECISION decision=CompleteWorkflow\nWorkflowResumed\nDeciderScheduled\n",
}

func TestLegalCornersPass(t *testing.T) {
	for name, text := range legal {
		t.Run(name, func(t *testing.T) {
			events := script(t, text)
			if found := checker.CheckEvents("w", "r", events); len(found) != 0 {
				t.Fatalf("got %v\n%s", found, show(events))
			}
		})
	}
}

// An id that as many others have come after as a chain remembers may be used again after ten minutes.
func TestOldRequestsMayComeAgain(t *testing.T) {
	for text, most := range map[string]int{
		"Signal s requestId=q%d": 1000,
		"Signal s externalScheduledEventId=%d externalWorkflowExecution={\"workflowId\":\"x\",\"run\":\"r1\"}": 1000,
		"WorkflowCancelRequested requestId=q%d":         100,
		"WorkflowPaused requestId=q%d\nWorkflowResumed": 100,
		"WorkflowPaused\nWorkflowResumed requestId=q%d": 100,
		"LockBroken L requestId=q%d":                    100,
	} {
		for _, tc := range []struct {
			others       int
			later, wants string
		}{
			{most - 1, "+1h ", checker.RuleOnce},
			{most, "", checker.RuleOnce}, // E1
			{4 * most, "+599s ", checker.RuleOnce},
			{most, "+10m ", "passes"},
		} {
			var b strings.Builder
			b.WriteString(begun)
			for i := range tc.others + 1 {
				fmt.Fprintf(&b, text+"\n", i+1)
			}
			fmt.Fprintf(&b, tc.later+text+"\n", 1)
			if got := rules(checker.CheckEvents("w", "r", script(t, b.String()))); got != tc.wants {
				t.Errorf("%s: %s after %d others and %s, want %s", text, got, tc.others, tc.later, tc.wants)
			}
		}
	}
}

// A mirror of the deciders' limits: the second decision has none of its own and takes the run's.
func TestLimitsAreNotInherited(t *testing.T) {
	events := script(t, "WorkflowStarted taskStartToCloseTimeout=30\nDeciderScheduled startToCloseTimeout=1\nDeciderStarted\n+1s DeciderTimedOut\nDeciderScheduled\nDeciderStarted\n+1s DeciderTimedOut\nDeciderScheduled\n")
	checkRules(t, checker.CheckEvents("w", "r", events), checker.RuleEarly, "", show(events))
}
