package broker_test

import (
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/schemas"
)

// E5. A decider that schedules the same activity again after each refusal is not asked again at once: the history stays short, and why names the
// refusal, before the run is parked and after that.
func TestSameActivityAgainAndAgain(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		again := f.decider("order", func(*decisionTask) string { return "[" + scheduleActivity("a", "") + "]" })
		f.start(startO)
		f.publish("drover.default.signal.o.s", "1")
		const refusal = `everything that it decided was refused, ScheduleActivity "a" with ACTIVITY_ID_ALREADY_IN_USE: activityId: the activity of event 5 bears it and is open`
		time.Sleep(2 * time.Second)
		if why := f.why("o"); !strings.Contains(why, refusal) || !strings.Contains(why, "times in a row and is asked again at") {
			t.Errorf("while it is asked again: %s", why)
		}
		time.Sleep(time.Minute)
		if n := f.lastEvent("o"); n > 100 {
			t.Errorf("%d events after a minute", n)
		}
		if why := f.why("o"); !strings.Contains(why, refusal) || !strings.Contains(why, "it is parked") {
			t.Errorf("at last: %s", why)
		}
		if err := again.Unsubscribe(); err != nil {
			t.Fatal(err)
		}
		f.decider("order", when("WorkflowResumed", complete))
		f.api("resume", `{"workflowId":"o"}`)
		f.completes("o")
		if n := f.happened("o", schemas.EventWorkflowPaused); n != 1 {
			t.Errorf("it was paused %d times", n)
		}
	})
}
