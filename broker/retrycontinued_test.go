package broker_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/droverhq/drover/internal/cutwire"
)

// A task that is being stored when its run continues as new says nothing of the tasks of the next run: those are found again when their owner
// dies before they are stored.
func TestTaskOfTheRunBefore(t *testing.T) { // P-1
	virtually(t, 1, func(t *testing.T, f *fleet) {
		const retried = `,"retry":{"initialInterval":1}`
		var tasks atomic.Int64
		a := f.node("a", func(subj string, _ []byte) cutwire.Verdict {
			if !strings.HasPrefix(subj, "drover.default.task.main") {
				return cutwire.Pass
			}
			switch tasks.Add(1) {
			case 3: // the retry of the first run; before it the list was not there
				return cutwire.Late
			case 5: // that of the second
				return cutwire.Swallow
			}
			return cutwire.Pass
		})
		a.wire.Delay(4 * time.Second)
		f.decider("order", func(d *decisionTask) string {
			switch {
			case d.has("WorkflowStarted") && strings.HasPrefix(d.Token, "r1."):
				return "[" + scheduleActivity("a", retried) + "]"
			case d.has("WorkflowStarted"):
				return "[" + scheduleActivity("b", retried) + "]"
			case d.has("ActivitySuccess"):
				return complete
			case d.has("Signal"):
				return `[{"type":"ContinueAsNew","attributes":{}}]`
			}
			return "[]"
		})
		fail := func() {
			k := f.pull()
			k.report("failed", `,"reason":"not yet"`)
			if err := k.msg.Ack(); err != nil {
				t.Fatal(err)
			}
		}
		f.start(startO)
		fail()
		time.Sleep(1500 * time.Millisecond) // the second attempt is on its way to the list
		f.publish("drover.default.signal.o.on", "")
		time.Sleep(100 * time.Millisecond)
		k := f.pull()
		if k.ActivityID != "b" {
			t.Fatalf("got the task of %q, want that of the next run", k.ActivityID)
		}
		time.Sleep(5 * time.Second) // the late one is stored
		k.report("failed", `,"reason":"not yet"`)
		if err := k.msg.Ack(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second) // all that is in the history is after the checkpoint
		if n := tasks.Load(); n != 5 {
			t.Fatalf("%d tasks were sent, want 5", n)
		}
		a.kill()
		f.node("b", nil)
		for range 10 {
			k := f.tryPull(time.Minute)
			if k == nil {
				t.Fatalf("the task is lost: %s", f.why("o"))
			}
			if k.ActivityID == "b" {
				k.success()
				break
			}
			if err := k.msg.Ack(); err != nil { // of the first run
				t.Fatal(err)
			}
		}
		f.completes("o")
	})
}
