package broker_test

import (
	"fmt"
	"testing"
	"time"
)

// A log loses its end while its owner lives and keeps its connection, as after the power loss of another server of a cluster. What is stored
// from then on is read all the same (P-9).
func TestOwnerReadsOnLaterALostEnd(t *testing.T) {
	for _, log := range []string{"signals", "inbox"} {
		t.Run(log, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				f.decider("order", func(*decisionTask) string { return "[]" })
				f.node("a", nil)
				f.start(startO)
				for i := range 4 {
					f.publish(fmt.Sprintf("drover.default.signal.o.s%d", i), "")
					f.publish(ns.In(0, "o", "pause"), fmt.Sprintf(`{"workflowId":"o","requestId":"p%d"}`, i))
					f.publish(ns.In(0, "o", "resume"), fmt.Sprintf(`{"workflowId":"o","requestId":"r%d"}`, i))
					time.Sleep(time.Second)
				}
				if log == "signals" {
					f.truncate(ns.StreamSignals(), 2)
				} else {
					f.truncate(ns.StreamIn(0), 2)
				}
				time.Sleep(30 * time.Second)
				f.publish("drover.default.signal.o.late", "")
				f.publish(ns.In(0, "o", "pause"), `{"workflowId":"o","requestId":"last"}`)
				time.Sleep(10 * time.Minute)
				types := f.types("o")
				got := f.signalsOf()
				if got[len(got)-1] != "late" {
					t.Errorf("10 minutes after the acknowledgement of a signal it is neither in the history nor a dead letter: signals %v, dead letters %v", got, f.dead())
				}
				pauses := 0
				for _, ty := range types {
					if ty == "WorkflowPaused" {
						pauses++
					}
				}
				if pauses != 5 {
					t.Errorf("10 minutes after the acknowledgement of a request in the inbox it is neither in the history nor a dead letter: %d of 5", pauses)
				}
			})
		})
	}
}
