package broker_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/schemas"
)

// guide starts a child, signals it, cancels it and completes, each as soon as it is told of the last. more is in each decision.
func guide(more string) func(*decisionTask) string {
	return when(
		"WorkflowStarted", "["+child("kid", more)+"]",
		"ChildStarted", `[{"type":"SignalExternal","attributes":{"workflowId":"kid","signalName":"go"`+more+`}}]`,
		"ExternalSignaled", `[{"type":"CancelExternal","attributes":{"workflowId":"kid"`+more+`}}]`,
		"ExternalCancelRequested", complete,
	)
}

var guided = []string{
	"WorkflowStarted", "DeciderScheduled", "DeciderStarted", "DeciderCompleted", "ChildScheduled",
	"ChildStarted", "DeciderScheduled", "DeciderStarted", "DeciderCompleted", "SignalExternalScheduled",
	"ExternalSignaled", "DeciderScheduled", "DeciderStarted", "DeciderCompleted", "CancelExternalScheduled",
	"ExternalCancelRequested", "DeciderScheduled", "DeciderStarted", "DeciderCompleted", "WorkflowSuccess",
}

// A decider is told of what it asked to be told of, while nothing else happens to its run; else it is not asked.
func TestDeciderIsTold(t *testing.T) {
	for _, partitions := range []int{1, 4} {
		virtually(t, partitions, func(t *testing.T, f *fleet) {
			f.node("a", nil)
			f.decider("kid", func(*decisionTask) string { return "[]" })
			f.decider("order", guide(`,"tell":true`))
			f.start(startO)
			f.completes("o")
			f.wantTypes("o", guided...)
		})
	}
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.decider("kid", func(*decisionTask) string { return "[]" })
		var asked atomic.Int64
		decide := guide("")
		f.decider("order", func(d *decisionTask) string { asked.Add(1); return decide(d) })
		f.start(startO)
		f.await("o", schemas.EventChildStarted)
		for n := int64(1); n <= 3; n++ {
			time.Sleep(time.Hour)
			if got := asked.Load(); got != n {
				t.Fatalf("after %d signals the decider was asked %d times: %v", n-1, got, f.types("o"))
			}
			f.publish(ns.Signal("o", "look"), "1")
		}
		f.completes("o")
	})
}

// Wherever the owner dies, the next one tells, once.
func TestOwnerDiesBeforeItTells(t *testing.T) { // P-1
	for _, verdict := range []cutwire.Verdict{cutwire.CutBefore, cutwire.CutAfter} {
		for place, times := range map[string]int{"drover.default.in.0.o.": 3, "drover.default.history.0.o.": 4, "drover.default.decide.order": 4} {
			for n := 1; n <= times; n++ {
				t.Run(fmt.Sprintf("%v/%s/%d", verdict, place, n), func(t *testing.T) {
					virtually(t, 1, func(t *testing.T, f *fleet) {
						a := f.node("a", nth(n, place, verdict))
						defer f.relieve(a)()
						f.decider("kid", func(*decisionTask) string { return "[]" })
						f.decider("order", guide(`,"tell":true`))
						f.start0("o", "order", "r1")
						f.completes("o")
						if !a.killed() {
							t.Fatal("the crash never came: nothing matched")
						}
						for typ, want := range map[schemas.EventType]int{
							schemas.EventChildStarted: 1, schemas.EventExternalSignaled: 1, schemas.EventExternalCancelRequested: 1, schemas.EventDeciderCompleted: 4,
						} {
							if got := f.happened("o", typ); got != want {
								t.Errorf("%d %s, want %d: %v", got, typ, want, f.types("o"))
							}
						}
					})
				})
			}
		}
	}
}
