package broker_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/schemas"
)

// A refusal may answer a start that its sender has repeated since. It is believed only when nothing can begin the child any
// more.
func TestRefusalOfARepeatedChildStart(t *testing.T) { // P-5
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.decider("order", parent)
		f.decider("kid", func(*decisionTask) string { return "[]" })
		a := f.node("a", func(subj string, _ []byte) cutwire.Verdict {
			if strings.HasPrefix(subj, "drover.default.in.0.kid.start") {
				return cutwire.CutBefore // the child's start is never stored
			}
			return cutwire.Pass
		})
		f.start0("o", "order", "r1")
		a.waitKilled()
		var overdue atomic.Int64
		f.node("b", func(subj string, _ []byte) cutwire.Verdict {
			if strings.HasPrefix(subj, "drover.default.in.0.o.child") && overdue.Add(1) == 1 {
				return cutwire.Swallow // that it has begun is not heard of for a while
			}
			return cutwire.Pass
		})
		f.await("kid", schemas.EventDeciderCompleted)
		child := f.events("o")[4].Attributes.(*schemas.ChildScheduled)
		f.publish(ns.In(0, "o", "child"), fmt.Sprintf(`{"parentRun":"r1","scheduledEventId":5,"child":{"workflowId":"kid","run":"%s"},"status":"","cause":"WORKFLOW_ALREADY_RUNNING"}`, child.Run))
		f.await("o", schemas.EventChildStarted)
		time.Sleep(time.Minute)
		f.wantTypes("o", "WorkflowStarted", "DeciderScheduled", "DeciderStarted", "DeciderCompleted", "ChildScheduled", "ChildStarted")
		// A refusal that stands is believed.
		f.publish(ns.In(0, "kid", "terminate"), `{"workflowId":"kid"}`)
		f.completes("o")
	})
}

// The child is refused to both, the owner that is gone and the one that repeats the start: then the refusal stands.
func TestRepeatedChildStartIsRefused(t *testing.T) { // P-5
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.decider("order", parent)
		f.decider("kid", func(*decisionTask) string { return "[]" })
		f.start0("kid", "kid", "k1")
		a := f.node("a", nth(1, "drover.default.in.0.kid.start", cutwire.CutBefore))
		f.start0("o", "order", "r1")
		a.waitKilled()
		f.node("b", nil)
		f.completes("o")
		f.wantTypes("o", "WorkflowStarted", "DeciderScheduled", "DeciderStarted", "DeciderCompleted", "ChildScheduled", "ChildStartFailed",
			"DeciderScheduled", "DeciderStarted", "DeciderCompleted", "WorkflowSuccess")
	})
}

// A child begins after its parent was terminated and the parent's id is in use again: its policy finds it all the same.
func TestChildOfAnEndedParentBeginsLate(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.decider("order", parent)
		f.decider("kid", func(*decisionTask) string { return "[]" })
		var starts atomic.Int64
		f.node("a", func(subj string, _ []byte) cutwire.Verdict {
			if strings.HasPrefix(subj, "drover.default.in.0.kid.start") && starts.Add(1) == 1 {
				return cutwire.Swallow
			}
			return cutwire.Pass
		})
		f.start0("o", "order", "r1")
		f.await("o", schemas.EventChildScheduled)
		if a := f.api("terminate", `{"workflowId":"o","run":"r1"}`); a["error"] != nil {
			t.Fatalf("terminate answered %v", a)
		}
		f.start(`{"workflowId":"o","type":"other","run":"r2"}`)
		for starts.Load() < 2 {
			time.Sleep(time.Second)
		}
		if got := f.result("kid"); got != "terminated" {
			t.Fatalf("the child is %s", got)
		}
	})
}

// A signal from another workflow is repeated when its target has closed and its id is in use again: it is in one history.
func TestSignalIsRepeatedToALaterRun(t *testing.T) { // P-6
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.decider("kid", signaled)
		f.decider("order", when("WorkflowStarted", `[{"type":"SignalExternal","attributes":{"workflowId":"kid","signalName":"go"}}]`))
		f.start(`{"workflowId":"kid","type":"kid","run":"k1"}`)
		f.start(startO)
		f.completes("kid")
		f.start(`{"workflowId":"kid","type":"kid","run":"k2"}`)
		f.publish(ns.In(0, "kid", "signal"), `{"name":"go","source":{"workflowId":"o","run":"r1"},"scheduledEventId":5}`)
		time.Sleep(time.Minute)
		f.wantTypes("kid", "WorkflowStarted", "DeciderScheduled", "DeciderStarted", "DeciderCompleted")
	})
}
