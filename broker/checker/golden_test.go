package checker_test

import (
	"testing"

	"github.com/droverhq/drover/broker/checker"
)

// golden are the histories of the requirements, and some that hold one of everything.
var golden = map[string]string{
	"S1-44 empty run": `
		1 WorkflowStarted
		2 DeciderScheduled
		3 DeciderStarted
		4 DeciderCompleted
		5 WorkflowSuccess`,

	// The runner takes B first and B ends first. At 13 the decider of 11 is still running; at 16 the next one sees that A is
	// done and C is scheduled, and decides nothing.
	"S1-45 A and B in parallel, then C": `
		1 WorkflowStarted
		2 DeciderScheduled
		3 DeciderStarted scheduledEventId=2
		4 DeciderCompleted scheduledEventId=2 startedEventId=3
		5 ActivityScheduled A
		6 ActivityScheduled B
		7 ActivityStarted B
		8 ActivityStarted A
		9 ActivitySuccess B
		10 DeciderScheduled
		11 DeciderStarted scheduledEventId=10
		12 ActivitySuccess A
		13 DeciderScheduled
		14 DeciderCompleted scheduledEventId=10 startedEventId=11
		15 ActivityScheduled C
		16 DeciderStarted scheduledEventId=13
		17 ActivityStarted C
		18 DeciderCompleted scheduledEventId=13 startedEventId=16
		19 ActivitySuccess C
		20 DeciderScheduled
		21 DeciderStarted scheduledEventId=20
		22 DeciderCompleted scheduledEventId=20 startedEventId=21
		23 WorkflowSuccess`,

	"S1-46 decider timeout": `
		WorkflowStarted taskStartToCloseTimeout=5
		DeciderScheduled
		DeciderStarted
		+5s DeciderTimedOut
		DeciderScheduled attempt=2
		DeciderStarted
		DeciderCompleted`,

	"S1-47 timer canceled by a signal": `
		WorkflowStarted
		DeciderScheduled
		DeciderStarted
		DeciderCompleted
		TimerScheduled T startToFireTimeout=60
		+10s Signal stop
		DeciderScheduled
		DeciderStarted
		DeciderCompleted
		TimerCanceled T`,

	"S1-47 timer expired before it was canceled": `
		WorkflowStarted
		DeciderScheduled
		DeciderStarted
		DeciderCompleted
		TimerScheduled T startToFireTimeout=60
		Signal stop
		DeciderScheduled
		DeciderStarted
		+60s TimerExpired T
		DeciderScheduled
		DeciderCompleted
		TimerCancelFailed T cause=TIMER_ID_UNKNOWN
		DeciderStarted
		DeciderCompleted
		TimerScheduled T startToFireTimeout=1
		TimerScheduleFailed T cause=TIMER_ID_ALREADY_IN_USE
		DeciderScheduled`,

	"unhandled decision": `
		WorkflowStarted
		DeciderScheduled
		DeciderStarted
		Signal late
		DeciderScheduled
		DeciderCompleted
		WorkflowCloseFailed decision=CompleteWorkflow cause=UNHANDLED_DECISION
		DeciderStarted
		DeciderCompleted
		WorkflowSuccess`,

	"activities": `
		WorkflowStarted activityDefaults={"scheduleToStartTimeout":3,"scheduleToCloseTimeout":1000}
		DeciderScheduled
		DeciderStarted
		DeciderCompleted
		ActivityScheduled A startToCloseTimeout=10
		ActivityScheduled B heartbeatTimeout=2
		ActivityScheduled C notIdempotent=true
		ActivityScheduled D
		ActivityScheduled E scheduleToCloseTimeout=20
		ActivityScheduled F
		ActivityScheduleFailed F cause=ACTIVITY_ID_ALREADY_IN_USE
		DeciderScheduled
		+1s ActivityStarted A
		ActivityStarted B
		ActivityStarted C
		ActivityStarted E
		ActivityStarted F
		DeciderStarted
		+2s ActivityTimedOut B timeoutType=HEARTBEAT
		DeciderScheduled
		ActivityScheduledTimeout D
		ActivityInterrupted A
		ActivityStarted A
		ActivityInterrupted C
		ActivityFailed C reason=interrupted startedEventId=15
		DeciderCompleted
		ActivityCancelRequested A
		ActivityCancelFailed B cause=ACTIVITY_ID_UNKNOWN
		ActivityScheduled G
		ActivityCancelRequested G
		ActivityCanceled G
		ActivityScheduled G
		ActivityRetryScheduled E cause=flaky
		DeciderStarted
		DeciderCompleted
		ActivityStarted G
		ActivityCanceled A
		DeciderScheduled
		+20s ActivityTimedOut E timeoutType=SCHEDULE_TO_CLOSE
		ActivityFailed G reason=boom
		+10m ActivityTimedOut F`,

	"children, signals and cancels to others": `
		WorkflowStarted
		DeciderScheduled
		DeciderStarted
		DeciderCompleted
		ChildScheduled c1
		ChildScheduled c2
		ChildScheduled c3
		SignalExternalScheduled s1
		SignalExternalScheduled s2
		CancelExternalScheduled x1
		CancelExternalScheduled x2
		ChildStarted c1
		ChildStarted c2
		ExternalSignaled s1
		ExternalCancelRequested x1
		ChildStartFailed c3
		DeciderScheduled
		SignalExternalFailed s2
		CancelExternalFailed x2
		ChildSuccess c1
		ChildTerminated c2 workflowExecution={"workflowId":"c2","run":"c2-later"}`,

	"locks, states and notes": `
		WorkflowStarted
		DeciderScheduled
		DeciderStarted
		DeciderCompleted
		LockRequested L scope=s
		LockRequested M
		StateRequested k decision=GetState
		StateRequested m decision=SetState
		StateRequested n decision=ClearState
		StateRequested o decision=SetState
		Marker note
		MarkerFailed x
		ReplayPointSet here
		ReplayPointsReset
		RetentionSet
		AttributesSet
		DeciderScheduled
		LockAcquired L scope=s fence=7
		StateRead k
		StateSet m
		StateCleared n
		StateRefused o
		DeciderStarted
		DeciderCompleted
		LockReleased L scope=s fence=7
		LockRequested L scope=s
		LockReleased M
		LockAcquired L scope=s fence=9
		DeciderScheduled
		LockBroken L scope=s
		WorkflowCancelRequested requestId=q1
		DeciderStarted
		DeciderCompleted
		LockReleased L scope=s
		WorkflowCanceled`,

	"paused and resumed": `
		WorkflowStarted
		DeciderScheduled
		DeciderStarted
		DeciderFailed cause=DECIDER_PANIC
		WorkflowPaused cause=DECIDER_ATTEMPTS_EXCEEDED
		Signal s requestId=q1
		WorkflowResumed
		DeciderScheduled
		DeciderStarted
		WorkflowPaused
		Signal s requestId=q2
		DeciderCompleted
		WorkflowResumed
		DeciderScheduled
		DeciderStarted
		DeciderCompleted
		WorkflowContinuedAsNew newExecutionRun=r2`,

	"nobody listens": `
		WorkflowStarted taskScheduleToStartTimeout=30 executionStartToCloseTimeout=60
		DeciderScheduled
		+30s DeciderTimedOut
		DeciderScheduled
		+30s WorkflowTimedOut`,

	"terminated": `
		WorkflowStarted
		DeciderScheduled
		WorkflowTerminated reason=enough`,

	"an event of a later version": `
		WorkflowStarted
		DeciderScheduled
		DeciderStarted
		DeciderCompleted
		LaterDecision
		ActivityScheduled A
		LaterNews
		DeciderScheduled`,
}

func TestGoldenHistoriesPass(t *testing.T) {
	for name, text := range golden {
		t.Run(name, func(t *testing.T) {
			events := script(t, text)
			if found := checker.CheckEvents("w", "r", events); len(found) != 0 {
				t.Fatalf("got %v\n%s", found, show(events))
			}
		})
	}
}
