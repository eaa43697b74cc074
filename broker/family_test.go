package broker_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/schemas"
)

func child(id, more string) string {
	return `{"type":"StartChild","attributes":{"workflowId":"` + id + `","workflowType":"kid"` + more + `}}`
}

// parent starts the child "kid" and completes when it has closed.
func parent(t *decisionTask) string {
	switch {
	case t.has("WorkflowStarted"):
		return "[" + child("kid", "") + "]"
	case t.has("ChildSuccess"), t.has("ChildFailed"), t.has("ChildCanceled"), t.has("ChildTerminated"), t.has("ChildTimedOut"), t.has("ChildStartFailed"):
		return complete
	}
	return "[]"
}

var withChild = []string{
	"WorkflowStarted", "DeciderScheduled", "DeciderStarted", "DeciderCompleted", "ChildScheduled", "ChildStarted",
	"ChildSuccess", "DeciderScheduled", "DeciderStarted", "DeciderCompleted", "WorkflowSuccess",
}

func TestChild(t *testing.T) { // S1-24
	virtually(t, 4, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.decider("order", parent)
		f.decider("kid", func(*decisionTask) string { return complete })
		f.start(startO)
		f.completes("o")
		f.wantTypes("o", withChild...)
		kid := f.events("kid")[0].Attributes.(*schemas.WorkflowStarted)
		if p := kid.ParentWorkflowExecution; p == nil || p.WorkflowID != "o" || p.Run != "r1" || kid.ParentScheduledEventID != 5 || kid.Depth != 1 {
			t.Fatalf("the child does not know its parent: %+v", kid)
		}
	})
}

// Wherever the owner dies, the next one starts the child once and hears of its end once.
func TestOwnerDiesBetweenParentAndChild(t *testing.T) { // P-1, P-5
	for _, verdict := range []cutwire.Verdict{cutwire.CutBefore, cutwire.CutAfter} {
		for _, place := range []string{
			"drover.default.in.0.kid.start", "drover.default.in.0.o.child", "drover.default.history.0.kid.", "drover.default.history.0.o.",
		} {
			for n := 1; n <= 2; n++ {
				t.Run(fmt.Sprintf("%v/%s/%d", verdict, place, n), func(t *testing.T) {
					virtually(t, 1, func(t *testing.T, f *fleet) {
						first := f.node("a", nth(n, place, verdict))
						f.decider("order", parent)
						f.decider("kid", slowly(func(*decisionTask) string { return complete }))
						f.start0("o", "order", "r1")
						if !(place == "drover.default.in.0.kid.start" && n == 2) {
							first.waitKilled()
							f.node("b", nil)
						}
						f.completes("o")
						got := f.types("o")
						if !slices.Equal(got, withChild) {
							t.Fatalf("history: %v", got)
						}
						f.wantTypes("kid", "WorkflowStarted", "DeciderScheduled", "DeciderStarted", "DeciderCompleted", "WorkflowSuccess")
					})
				})
			}
		}
	}
}

func TestChildIsOpenAlready(t *testing.T) {
	virtually(t, 4, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.decider("order", parent)
		f.decider("kid", func(*decisionTask) string { return "[]" })
		f.start(`{"workflowId":"kid","type":"kid","run":"k1"}`)
		f.start(startO)
		f.completes("o")
		for _, e := range f.events("o") {
			if a, ok := e.Attributes.(*schemas.ChildStartFailed); ok && a.Cause != schemas.CauseWorkflowRunning {
				t.Fatalf("cause %s", a.Cause)
			}
		}
		f.wantTypes("o", "WorkflowStarted", "DeciderScheduled", "DeciderStarted", "DeciderCompleted", "ChildScheduled", "ChildStartFailed",
			"DeciderScheduled", "DeciderStarted", "DeciderCompleted", "WorkflowSuccess")
	})
}

func TestChildPolicies(t *testing.T) {
	for policy, want := range map[schemas.ChildPolicy]schemas.EventType{
		schemas.ChildTerminate: schemas.EventWorkflowTerminated, schemas.ChildRequestCancel: schemas.EventWorkflowCancelRequested, schemas.ChildAbandon: "",
	} {
		t.Run(string(policy), func(t *testing.T) {
			virtually(t, 4, func(t *testing.T, f *fleet) {
				f.node("a", nil)
				f.decider("order", parent)
				f.decider("kid", func(*decisionTask) string { return "[]" })
				f.start(`{"workflowId":"o","type":"order","run":"r1","childPolicy":"` + string(policy) + `"}`)
				f.await("o", schemas.EventChildStarted)
				if a := f.api("terminate", `{"workflowId":"o","reason":"enough"}`); a["error"] != nil || a["run"] != "r1" {
					t.Fatalf("terminate answered %v", a)
				}
				if got := f.result("o"); got != "terminated" {
					t.Fatalf("status %s", got)
				}
				if got := fmt.Sprint(f.api("describe", `{"workflowId":"o"}`)["children"]); !strings.Contains(got, "policy:"+string(policy)) {
					t.Fatalf("children %s, want what was done about them: %s", got, policy)
				}
				if want == "" {
					time.Sleep(time.Minute)
					if got := f.result0("kid"); got != "open" {
						t.Fatalf("the abandoned child is %s", got)
					}
					return
				}
				f.await("kid", want)
				for _, e := range f.events("kid") {
					switch a := e.Attributes.(type) {
					case *schemas.WorkflowTerminated:
						if a.Cause != schemas.CauseChildPolicyApplied {
							t.Fatalf("cause %s", a.Cause)
						}
					case *schemas.WorkflowCancelRequested:
						if a.Cause != schemas.CauseChildPolicyApplied {
							t.Fatalf("cause %s", a.Cause)
						}
					}
				}
			})
		})
	}
}

func TestCancel(t *testing.T) {
	virtually(t, 4, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.decider("order", when("WorkflowCancelRequested", `[{"type":"CancelWorkflow","attributes":{"details":"bye"}}]`))
		f.start(startO)
		f.await("o", schemas.EventDeciderCompleted)
		for range 2 { // a repeat gets the first answer, also when the run has closed by then
			if a := f.api("cancel", `{"workflowId":"o","run":"r1","requestId":"c1","reason":"no more"}`); a["error"] != nil || a["run"] != "r1" {
				t.Fatalf("cancel answered %v", a)
			}
			if got := f.result("o"); got != "canceled" {
				t.Fatalf("status %s", got)
			}
		}
		f.wantTypes("o", "WorkflowStarted", "DeciderScheduled", "DeciderStarted", "DeciderCompleted", "WorkflowCancelRequested",
			"DeciderScheduled", "DeciderStarted", "DeciderCompleted", "WorkflowCanceled")
		if a := f.api("cancel", `{"workflowId":"o"}`); a["error"] == nil {
			t.Fatalf("cancel of a closed workflow answered %v", a)
		}
	})
}

// continuing continues as new until its input, a number, is the given one.
func continuing(last int) func(*decisionTask) string {
	return func(d *decisionTask) string {
		for _, e := range d.Events {
			if e.Type == "WorkflowStarted" {
				if n, _ := e.Attributes["input"].(float64); int(n) < last {
					return fmt.Sprintf(`[{"type":"ContinueAsNew","attributes":{"input":%d}}]`, int(n)+1)
				}
			}
		}
		return complete
	}
}

func TestContinueAsNew(t *testing.T) { // S1-25, P-4
	virtually(t, 4, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.decider("order", continuing(3))
		f.start(`{"workflowId":"o","type":"order","run":"r1","input":0}`)
		a := f.api("result", `{"workflowId":"o","run":"r1","wait":20}`)
		if a["status"] != "continuedAsNew" || a["newRun"] == "" {
			t.Fatalf("the first run ended as %v", a)
		}
		if got := f.result("o"); got != "completed" && got != "continuedAsNew" {
			t.Fatalf("status %s", got)
		}
		f.await("o", schemas.EventWorkflowSuccess)
		s := f.events("o")[0].Attributes.(*schemas.WorkflowStarted)
		if s.FirstExecutionRun != "r1" || string(s.Input) != "3" {
			t.Fatalf("the last run began as %+v", s)
		}
	})
}

// Wherever the owner dies, the chain has each run once, and nothing that was sent to the id is lost.
func TestOwnerDiesInAContinuation(t *testing.T) { // P-4
	for _, verdict := range []cutwire.Verdict{cutwire.CutBefore, cutwire.CutAfter} {
		for n := 1; n <= 6; n++ {
			t.Run(fmt.Sprintf("%v/%d", verdict, n), func(t *testing.T) {
				virtually(t, 1, func(t *testing.T, f *fleet) {
					first := f.node("a", nth(n, "drover.default.history.0.o.", verdict))
					f.decider("order", slowly(continuing(3)))
					f.publish(ns.In(0, "o", "start"), `{"workflowId":"o","type":"order","run":"r1","input":0}`)
					first.waitKilled()
					f.node("b", nil)
					f.await("o", schemas.EventWorkflowSuccess)
					runs := 0
					for cursor := ""; ; {
						l := f.api("list", `{"workflowId":"o","cursor":"`+cursor+`"}`)
						list, _ := l["executions"].([]any)
						runs += len(list)
						if cursor, _ = l["cursor"].(string); cursor == "" {
							break
						}
					}
					if runs != 4 {
						t.Fatalf("%d runs, want 4", runs)
					}
				})
			})
		}
	}
}

func TestSignalToAnotherWorkflow(t *testing.T) { // P-6
	for _, place := range []string{"", "drover.default.in.0.kid.signal", "drover.default.in.0.o.external", "drover.default.history.0.kid."} {
		for _, verdict := range []cutwire.Verdict{cutwire.CutBefore, cutwire.CutAfter} {
			t.Run(fmt.Sprintf("%v/%s", verdict, place), func(t *testing.T) {
				virtually(t, 1, func(t *testing.T, f *fleet) {
					f.start0("kid", "kid", "k1")
					var judge func(string, []byte) cutwire.Verdict
					if place != "" {
						judge = nth(1, place, verdict)
					}
					n := f.node("a", judge)
					f.decider("kid", signaled)
					f.decider("order", func(d *decisionTask) string {
						if d.has("WorkflowStarted") {
							return `[{"type":"SignalExternal","attributes":{"workflowId":"kid","signalName":"go","input":7}},
								{"type":"SignalExternal","attributes":{"workflowId":"nobody","signalName":"go"}}]`
						}
						if d.has("SignalExternalFailed") {
							return complete
						}
						return "[]"
					})
					f.start0("o", "order", "r1")
					if place != "" {
						n.waitKilled()
						f.node("b", nil)
					}
					f.completes("o")
					f.completes("kid")
					signals := 0
					for _, e := range f.events("kid") {
						if a, ok := e.Attributes.(*schemas.Signal); ok {
							signals++
							if a.ExternalWorkflowExecution == nil || a.ExternalWorkflowExecution.Run != "r1" || string(a.Input) != "7" {
								t.Fatalf("signal %+v", a)
							}
						}
					}
					if signals != 1 {
						t.Fatalf("%d signals, want 1", signals)
					}
				})
			})
		}
	}
}

// start0 puts a start into the inbox, whether or not anybody serves it yet.
func (f *fleet) start0(id, typ, run string) {
	f.t.Helper()
	f.publish(ns.In(0, id, "start"), `{"workflowId":"`+id+`","type":"`+typ+`","run":"`+run+`"}`)
}
