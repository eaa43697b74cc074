package broker_test

import (
	"testing"
	"time"

	"github.com/droverhq/drover/broker"
)

// A task that a parked run was to put on its list later is put there when its time has come, and once. Its activity does not stand in the
// first record: what such a one counts from is read from the server's time, which is before what its owner counted from.
func TestParkedRunDispatchesWhatWaits(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil, func(o *broker.Options) { o.CachedRuns = 1 })
		f.decider("order", func(d *decisionTask) string {
			if d.has("Signal") {
				return "[" + scheduleActivity("A", `,"startDelay":60`) + "," + scheduleActivity("B", `,"startDelay":30`) + "]"
			}
			return "[]"
		})
		f.start(startO)
		f.publish("drover.default.signal.o.s", "")
		for range 10 {
			time.Sleep(9 * time.Second)
			f.api("describe", `{"workflowId":"o"}`)
		}
		for _, want := range []string{"B", "A"} {
			k := f.tryPull(time.Minute)
			if k == nil {
				t.Fatalf("the task of %s never comes: %v", want, f.api("why", `{"workflowId":"o"}`)["because"])
			}
			if k.ActivityID != want {
				t.Fatalf("the task of %s came, want that of %s", k.ActivityID, want)
			}
			k.success()
		}
		if f.tryPull(time.Second) != nil {
			t.Fatal("a task is there twice")
		}
	})
}
