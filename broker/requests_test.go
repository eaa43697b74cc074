package broker_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/schemas"
)

// runsOf returns the run ids of a workflow id, the oldest first.
func (f *fleet) runsOf(id string) (runs []string) {
	f.t.Helper()
	answer := f.api("list", `{"workflowId":"`+id+`","limit":1000}`)
	if answer["error"] != nil {
		f.t.Logf("the runs of %s are not listed: %v", id, answer["error"])
	}
	list, _ := answer["executions"].([]any)
	for _, x := range list {
		run, _ := x.(map[string]any)["run"].(string)
		runs = append(runs, run)
	}
	return runs
}

// count counts the events of a type in all runs of a workflow id.
func (f *fleet) count(id string, typ schemas.EventType) (n int) {
	f.t.Helper()
	for _, run := range f.runsOf(id) {
		for _, e := range f.eventsOf(id, run) {
			if e.Type() == typ {
				n++
			}
		}
	}
	return n
}

// bodies keeps what a process has published to subjects with a prefix, and passes it on to another judge.
type bodies struct {
	prefix string
	then   func(string, []byte) cutwire.Verdict
	mu     sync.Mutex
	kept   []string
}

func (b *bodies) judge(subj string, body []byte) cutwire.Verdict {
	if strings.HasPrefix(subj, b.prefix) {
		b.mu.Lock()
		kept := string(body)
		if strings.HasPrefix(kept, "NATS/1.0") { // headers stand before it
			_, kept, _ = strings.Cut(kept, "\r\n\r\n")
		}
		b.kept = append(b.kept, kept)
		b.mu.Unlock()
	}
	if b.then == nil {
		return cutwire.Pass
	}
	return b.then(subj, body)
}

// first returns the first of them.
func (b *bodies) first(t *testing.T) string {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.kept) == 0 {
		t.Fatalf("nothing was published to %s", b.prefix)
	}
	return b.kept[0]
}

// Refusals have the version as any answer has, and a list where an answer has one.
func TestRefusalsAreAnswers(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		for _, verb := range []string{"start", "history", "signal", "replay", "audit", "describe", "terminate", "repair"} {
			for _, body := range []string{`{"workflowId":"o","name":"x","partition":0,"requestId":7}`, `{"workflowId":"o","name":"x","after":"x"}`, `{"workflowId":"o","name":"x","run":"r"}`} {
				a := f.api(verb, body)
				events, listed := a["events"]
				if a["error"] != nil && (a["v"] != 1.0 || listed && events == nil) {
					t.Errorf("%s %s: got %v", verb, body, a)
				}
			}
		}
	})
}

func TestStartRepeatedLate(t *testing.T) { // P-5
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.decider("order", ending)
		first := f.start(`{"workflowId":"o","type":"order","requestId":"q1","input":"complete"}`)
		f.result("o")
		repeat := func() {
			t.Helper()
			a := f.start(`{"workflowId":"o","type":"order","requestId":"q1","input":"complete"}`)
			if a["run"] != first["run"] || a["started"] != false || a["error"] != nil {
				t.Fatalf("the repeat was answered %v, the first %v", a, first)
			}
		}
		repeat()
		second := f.start(`{"workflowId":"o","type":"order","requestId":"q2","input":"stay"}`)
		if second["run"] == first["run"] || second["started"] != true {
			t.Fatalf("the second request was answered %v", second)
		}
		repeat()
		if a := f.api("terminate", `{"workflowId":"o"}`); a["run"] != second["run"] {
			t.Fatalf("terminate was answered %v", a)
		}
		repeat()
		if n := len(f.runsOf("o")); n != 2 {
			t.Fatalf("%d runs, want 2", n)
		}
	})
}

// A signal-with-start that has signaled an open run is repeated when that run is closed: it begins no other.
func TestSignalWithStartRepeatedLate(t *testing.T) { // P-5
	virtually(t, 1, func(t *testing.T, f *fleet) {
		first := f.node("a", nil)
		f.decider("order", signaled)
		f.start(`{"workflowId":"o","type":"order","run":"r1"}`)
		body := `{"workflowId":"o","type":"order","run":"r2","requestId":"q2","signal":{"name":"go"}}`
		for i := range 3 {
			if a := f.start(body); a["run"] != "r1" || a["started"] != false || a["error"] != nil {
				t.Fatalf("answer %d is %v", i, a)
			}
			f.result("o")
			if i == 1 {
				first.stop()
				f.node("b", nil)
			}
		}
		if n := f.count("o", schemas.EventSignal); n != 1 || len(f.runsOf("o")) != 1 {
			t.Fatalf("%d signals in the runs %v, want 1 in r1", n, f.runsOf("o"))
		}
	})
}

// Wherever the owner dies, the signal of a signal-with-start is there once.
func TestOwnerDiesInASignalWithStart(t *testing.T) { // P-5
	for _, open := range []bool{false, true} {
		for _, verdict := range []cutwire.Verdict{cutwire.CutBefore, cutwire.CutAfter} {
			for n := 1; n <= 3; n++ {
				t.Run(fmt.Sprintf("open %v/%v/%d", open, verdict, n), func(t *testing.T) {
					virtually(t, 1, func(t *testing.T, f *fleet) {
						f.decider("order", when("Signal", `[{"type":"RecordMarker","attributes":{"markerName":"m"}}]`))
						if open {
							calm := f.node("calm", nil)
							f.start(`{"workflowId":"o","type":"order","run":"r1"}`)
							f.await("o", schemas.EventDeciderCompleted)
							calm.stop()
						}
						place := []string{"drover.default.history.0.o.", "drover.default.decide.", "$KV.drover-default-checkpoints."}[n-1]
						a := f.node("a", nth(1, place, verdict))
						gone := make(chan struct{})
						go func() {
							defer close(gone)
							<-a.wire.Killed()
							a.stop()
							f.node("b", nil)
						}()
						f.start(`{"workflowId":"o","type":"order","run":"r2","requestId":"q2","signal":{"name":"go"}}`)
						<-gone
						f.await("o", schemas.EventMarker)
						f.start(`{"workflowId":"o","type":"order","run":"r2","requestId":"q2","signal":{"name":"go"}}`)
						if n := f.count("o", schemas.EventSignal); n != 1 || len(f.runsOf("o")) != 1 {
							t.Fatalf("%d signals in the runs %v, want 1 in one", n, f.runsOf("o"))
						}
					})
				})
			}
		}
	}
}

// Requests of operators that are repeated when their run is closed, and the next one is there, get their first answer and
// do nothing to the next one.
func TestRequestsRepeatedLate(t *testing.T) { // P-5
	for _, verb := range []string{"pause", "resume", "cancel", "terminate"} {
		t.Run(verb, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				first := f.node("a", nil)
				f.decider("order", func(*decisionTask) string { return "[]" })
				f.start(startO)
				f.await("o", schemas.EventDeciderCompleted)
				if verb == "resume" {
					f.api("pause", `{"workflowId":"o","run":"r1","requestId":"p"}`)
				}
				request := func() {
					t.Helper()
					if a := f.api(verb, `{"workflowId":"o","run":"r1","requestId":"late"}`); a["error"] != nil || a["run"] != "r1" {
						t.Fatalf("answer %v", a)
					}
				}
				request()
				f.api("terminate", `{"workflowId":"o","run":"r1","requestId":"end"}`)
				f.await("o", schemas.EventWorkflowTerminated)
				request()
				f.start(`{"workflowId":"o","type":"order","run":"r2"}`)
				f.await("o", schemas.EventDeciderCompleted)
				request()
				first.stop()
				f.node("b", nil)
				request()
				f.wantTypes("o", "WorkflowStarted", "DeciderScheduled", "DeciderStarted", "DeciderCompleted")
				a := f.api(verb, `{"workflowId":"o","run":"r1","requestId":"another"}`)
				if text := fmt.Sprint(a["error"]); code(a) != "closed" || !strings.Contains(text, "the latest is run r2 (open)") || strings.Contains(text, "start it again") {
					t.Fatalf("another request for the closed run was answered %v", a)
				}
				f.wantTypes("o", "WorkflowStarted", "DeciderScheduled", "DeciderStarted", "DeciderCompleted")
			})
		})
	}
}

// The same message is in the inbox twice: it happens once, also to the next run.
func TestRequestsTwiceInTheInbox(t *testing.T) { // P-5
	for verb, want := range map[string]schemas.EventType{
		"pause": schemas.EventWorkflowPaused, "cancel": schemas.EventWorkflowCancelRequested, "terminate": schemas.EventWorkflowTerminated,
	} {
		t.Run(verb, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				b := &bodies{prefix: ns.In(0, "o", verb)}
				f.node("a", b.judge)
				f.decider("order", func(*decisionTask) string { return "[]" })
				f.start(startO)
				f.api(verb, `{"workflowId":"o","requestId":"q"}`)
				f.publish(b.prefix, b.first(t))
				f.api("resume", `{"workflowId":"o","requestId":"on"}`)
				f.publish(b.prefix, b.first(t))
				f.api("terminate", `{"workflowId":"o"}`)
				f.publish(b.prefix, b.first(t))
				f.start(`{"workflowId":"o","type":"order","run":"r2"}`)
				f.publish(b.prefix, b.first(t))
				f.await("o", schemas.EventDeciderCompleted)
				time.Sleep(time.Second)
				if n := f.count("o", want); n != 1 {
					t.Fatalf("%d times %s, want once", n, want)
				}
				f.wantTypes("o", "WorkflowStarted", "DeciderScheduled", "DeciderStarted", "DeciderCompleted")
			})
		})
	}
}

// The start of a child is read again after the child has closed and its id has been used again: the parent hears how its
// child ended, once, and the run that is there now is left alone.
func TestChildStartRepeatedLate(t *testing.T) { // P-5
	virtually(t, 1, func(t *testing.T, f *fleet) {
		b := &bodies{prefix: ns.In(0, "kid", "start")}
		first := f.node("a", b.judge)
		f.decider("order", when("WorkflowStarted", "["+child("kid", "")+"]"))
		f.decider("kid", func(d *decisionTask) string {
			if d.Events[0].Attributes["parentWorkflowExecution"] != nil {
				return complete
			}
			return "[]"
		})
		f.start(startO)
		f.await("o", schemas.EventChildSuccess)
		for i, before := range []func(){
			func() {}, // the child is closed
			func() { f.start(`{"workflowId":"kid","type":"kid","run":"k2"}`) },
			func() { f.api("terminate", `{"workflowId":"kid"}`) },
			func() { first.stop(); f.node("b", nil) },
		} {
			before()
			f.publish(b.prefix, b.first(t))
			time.Sleep(2 * time.Second)
			if n := len(f.runsOf("kid")); n > 2 || i == 0 && n != 1 {
				t.Fatalf("repeat %d: %d runs of the child", i, n)
			}
			if starts, ends := f.count("o", schemas.EventChildStarted), f.count("o", schemas.EventChildSuccess); starts != 1 || ends != 1 {
				t.Fatalf("repeat %d: the parent heard of %d starts and %d ends", i, starts, ends)
			}
		}
	})
}

// The owner dies before it has told the parent that a child has closed, and the child's id is used again before the next
// owner comes.
func TestParentHearsOfAChildWhoseIDIsUsedAgain(t *testing.T) { // P-1
	virtually(t, 1, func(t *testing.T, f *fleet) {
		first := f.node("a", nth(2, ns.In(0, "o", "child"), cutwire.CutBefore))
		f.decider("order", parent)
		f.decider("kid", func(d *decisionTask) string {
			if d.Events[0].Attributes["parentWorkflowExecution"] != nil {
				return complete
			}
			return "[]"
		})
		f.start0("o", "order", "r1")
		first.waitKilled()
		f.start0("kid", "kid", "k2")
		f.node("b", nil)
		f.completes("o")
		f.wantTypes("o", withChild...)
		if got := f.runsOf("kid"); len(got) != 2 || got[1] != "k2" {
			t.Fatalf("runs of the child: %v", got)
		}
		if got := f.result0("kid"); got != "open" {
			t.Fatalf("the other run of the child's id is %s", got)
		}
	})
}

// The owner dies before it has applied the child policy of a closed run, and the parent's id is used again before the next
// owner comes.
func TestChildPolicyOfARunWhoseIDIsUsedAgain(t *testing.T) { // P-1
	for policy, want := range map[schemas.ChildPolicy]schemas.EventType{
		schemas.ChildTerminate: schemas.EventWorkflowTerminated, schemas.ChildRequestCancel: schemas.EventWorkflowCancelRequested,
	} {
		t.Run(string(policy), func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				kind := map[schemas.ChildPolicy]string{schemas.ChildTerminate: "terminate", schemas.ChildRequestCancel: "cancel"}[policy]
				first := f.node("a", nth(1, ns.In(0, "kid", kind), cutwire.CutBefore))
				f.decider("order", func(d *decisionTask) string {
					if d.has("WorkflowStarted") && d.Events[0].Attributes["run"] == "r1" {
						return "[" + child("kid", "") + "]"
					}
					return "[]"
				})
				f.decider("kid", func(*decisionTask) string { return "[]" })
				f.start(`{"workflowId":"o","type":"order","run":"r1","childPolicy":"` + string(policy) + `"}`)
				f.await("o", schemas.EventChildStarted)
				f.publish(ns.In(0, "o", "terminate"), `{"workflowId":"o","run":"r1"}`)
				first.waitKilled()
				f.start0("o", "order", "r2")
				f.node("b", nil)
				f.await("kid", want)
				if n := f.count("kid", want); n != 1 {
					t.Fatalf("%d times %s, want once", n, want)
				}
				if got := f.result0("o"); got != "open" {
					t.Fatalf("the next run is %s", got)
				}
			})
		})
	}
}

// A request that is repeated while its first try waits for the history is answered after it: the owner may never be able to
// write that record, and the next one knows only what is stored (chaos, seed 614, cluster).
func TestRepeatedRequestIsAnsweredLaterItsRecord(t *testing.T) { // P-1, P-5
	virtually(t, 1, func(t *testing.T, f *fleet) {
		a := f.node("a", func(subj string, body []byte) cutwire.Verdict {
			if strings.HasPrefix(subj, "drover.default.history.0.o.") && brings(body, schemas.EventWorkflowTerminated) {
				return cutwire.Swallow
			}
			return cutwire.Pass
		})
		f.decider("order", func(*decisionTask) string { return "[]" })
		f.start(startO)
		end := `{"workflowId":"o","requestId":"end-1"}`
		answers := make(chan []byte, 2)
		for range 2 {
			go func() { answers <- f.tryRequest("drover.default.api.terminate", end) }()
			time.Sleep(500 * time.Millisecond)
		}
		select {
		case got := <-answers:
			t.Fatalf("answered %s, and nothing is stored", got)
		default:
		}
		if got := f.types("o"); slices.Contains(got, "WorkflowTerminated") {
			t.Fatalf("history %v: the record was stored, so this test shows nothing", got)
		}
		a.kill()
		f.node("b", nil)
		if got := f.result("o"); got != "terminated" {
			t.Fatalf("status %s, want the request that was stored to happen", got)
		}
	})
}
