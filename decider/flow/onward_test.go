package flow

import (
	"strings"
	"testing"

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
		t.Errorf("got %s, want the activity behind the signal that had come in", got)
	}
}
