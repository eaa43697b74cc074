package flow

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/schemas"
)

// A run that was to go on for another, and was ended by force before its first decision, may be replayed as any other. The lock that it
// took over was free when it had ended: its replay went on as if it still had it, beside whoever has it now.
func TestReplayOfWhatWasToGoOn(t *testing.T) {
	const text = `
lock: l
steps:
- wait for signal go
- {step: activity work, idempotent: yes}
`
	acquire := `AcquireLock {"lock":"l"}`
	tp := record(t, text, "")
	tp.want(tp.decide(), acquire)
	granted := func(tp *tape) schemas.Attributes {
		return &schemas.LockAcquired{Lock: "l", Fence: 1, ScheduledEventID: tp.asked(schemas.EventLockRequested)}
	}
	tp.want(tp.decide(granted(tp)))
	tp.full = true
	next := tp.next(tp.decide(&schemas.Signal{SignalName: "go"}))

	// The ordinary way: the lock has been handed over.
	on := record(t, text, next)
	on.want(on.decide(), `ScheduleActivity {"activityId":"1#1","activityType":"work","list":"main"}`)

	again := record(t, text, next)
	started, ok := again.events[0].Attributes.(*schemas.WorkflowStarted)
	if !ok {
		t.Fatalf("the first event is %+v", again.events[0])
	}
	started.ContinuedExecutionRun, started.Replays = "", &schemas.ReplayOf{Run: "r-2", From: schemas.ReplayFromStart}
	again.want(again.decide(), acquire)
	if got := again.decide(granted(again)); len(got) != 1 || !strings.HasPrefix(got[0], `ScheduleActivity {"activityId":"1#1"`) {
		t.Errorf("got %s, want the activity after the signal that had come in", got)
	}
}

// S2-8, P-4: a run that is asked to continue as new while it sleeps goes on sleeping in the next run, for what is left of the time, and not
// at all if nothing is left. A signal that came meanwhile goes along. The next run can tell what began it.
func TestContinuesAsNewWithinSleep(t *testing.T) {
	const text = `
steps:
- {step: sleep 1h, timeout: 2h}
- wait-for-signal go
- return ${workflow.start_mode} after ${output}
`
	timer := func(id string, seconds int) string {
		return fmt.Sprintf(`ScheduleTimer {"timerId":%q,"startToFireTimeout":%d}`, id, seconds)
	}
	suggested := &schemas.ContinuationSuggested{Reasons: []string{schemas.ContinueAge}}
	tp := record(t, text, "")
	tp.want(tp.decide(), timer("0#1!timeout", 7200), timer("0#1", 3600))
	tp.now = tp.now.Add(40 * time.Minute)
	tp.want(tp.decide(&schemas.Signal{SignalName: "go", Input: schemas.Payload("7")}))
	tp.full = true
	next := tp.next(tp.decide(suggested))

	second := record(t, text, next)
	second.now = tp.now
	second.want(second.decide(), timer("0#1", 1200), timer("0#1!timeout", 4800))
	second.mode = schemas.ModeContinuation
	second.now, second.full = second.now.Add(time.Hour), true
	next = second.next(second.decide(suggested)) // the timer is due, and has not fired yet

	third := record(t, text, next)
	third.now, third.mode = second.now, schemas.ModeContinuation
	third.want(third.decide(), timer("0#1", 0), timer("0#1!timeout", 1200))
	third.want(third.decide(&schemas.TimerExpired{TimerID: "0#1"}), `CancelTimer {"timerId":"0#1!timeout"}`, `CompleteWorkflow {"result":"AutoStart (Continuation) after 7"}`)
}

// A step that waits for its next look, or before it tries again, is no hindrance either.
func TestContinuesAsNewBetweenTries(t *testing.T) {
	const text = `
steps:
- {step: activity work, idempotent: yes, on-error: retry limit 5 backoff 10m}
`
	tp := record(t, text, "")
	tp.decide()
	tp.want(tp.decide(&schemas.ActivityFailed{ScheduledEventID: tp.asked(schemas.EventActivityScheduled), Reason: "busy"}), `ScheduleTimer {"timerId":"0.on-error.0#1","startToFireTimeout":600}`)
	tp.now, tp.full = tp.now.Add(4*time.Minute), true
	next := tp.next(tp.decide(&schemas.ContinuationSuggested{Reasons: []string{schemas.ContinueRecycle}}))
	second := record(t, text, next)
	second.now = tp.now
	second.want(second.decide(), `ScheduleTimer {"timerId":"0.on-error.0#1","startToFireTimeout":360}`)
	if got := second.decide(&schemas.TimerExpired{TimerID: "0.on-error.0#1"}); len(got) != 1 || !strings.HasPrefix(got[0], "ScheduleActivity ") {
		t.Errorf("got %s, want the activity again", got)
	}
}

// S2-8: what began a run stands in a variable.
func TestStartMode(t *testing.T) {
	for mode, want := range map[schemas.StartMode]string{"": "Manual", schemas.ModeSchedule: "Schedule", schemas.ModeAutoStart: "AutoStart"} {
		tp := record(t, "steps: ['return ${workflow.start_mode}']", "")
		tp.mode = mode
		tp.want(tp.decide(), fmt.Sprintf("CompleteWorkflow {\"result\":%q}", want))
	}
}

// P-4: a run that is asked to continue at its very beginning arms the timers first that it has from the one before. If it were refused to
// continue, it would wait for ever.
func TestArmsTimersBeforeItContinues(t *testing.T) {
	tp := record(t, "steps: [sleep 1h]", "")
	tp.decide()
	tp.now, tp.full = tp.now.Add(40*time.Minute), true
	next := tp.next(tp.decide(&schemas.ContinuationSuggested{Reasons: []string{schemas.ContinueAge}}))
	second := record(t, "steps: [sleep 1h]", next)
	second.now, second.full = tp.now, true
	second.want(second.decide(), `ScheduleTimer {"timerId":"0#1","startToFireTimeout":1200}`)
	second.next(second.decide(&schemas.Signal{SignalName: "noise"}))
}
