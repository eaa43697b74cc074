package broker_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/schemas"
)

// renewing continues as new on every signal and cancel request, and ends when it is asked to: also if it could not the first
// time, since something came meanwhile, and the signal is in its window no longer.
func renewing(d *decisionTask) string {
	for _, e := range d.Events {
		if e.Type == "Signal" && e.Attributes["signalName"] == "end" || e.Type == "WorkflowCloseFailed" && e.Attributes["decision"] == "CompleteWorkflow" {
			return complete
		}
	}
	if d.has("Signal") || d.has("WorkflowCancelRequested") {
		return `[{"type":"ContinueAsNew"}]`
	}
	return "[]"
}

// laterContinuation judges the n-th record of "o" after the first one with which it continues, counted from 0.
func laterContinuation(n int, v cutwire.Verdict) func(string, []byte) cutwire.Verdict {
	continued := false
	return func(subj string, body []byte) cutwire.Verdict {
		if !strings.HasPrefix(subj, "drover.default.history.0.o.") {
			return cutwire.Pass
		}
		if continued = continued || brings(body, schemas.EventWorkflowContinuedAsNew); continued {
			if n--; n == -1 {
				return v
			}
		}
		return cutwire.Pass
	}
}

// errands counts the signals and cancel requests of other workflows in all runs of a workflow id.
func (f *fleet) errands(id string) (n int) {
	f.t.Helper()
	for _, run := range f.runsOf(id) {
		for _, e := range f.eventsOf(id, run) {
			switch a := e.Attributes.(type) {
			case *schemas.Signal:
				if a.ExternalWorkflowExecution != nil {
					n++
				}
			case *schemas.WorkflowCancelRequested:
				if a.ExternalWorkflowExecution != nil {
					n++
				}
			}
		}
	}
	return n
}

// A signal or a cancel request of another workflow comes again after its target has continued as new, and after it has
// closed: the chain takes it once, and the sender hears each time that it has arrived.
func TestErrandRepeatedInAChain(t *testing.T) { // P-6
	for _, tc := range []struct {
		kind, decision string
		event, known   schemas.EventType
	}{
		{"signal", `{"type":"SignalExternal","attributes":{"workflowId":"kid","signalName":"go"%s}}`, schemas.EventSignal, schemas.EventExternalSignaled},
		{"cancel", `{"type":"CancelExternal","attributes":{"workflowId":"kid"%s}}`, schemas.EventWorkflowCancelRequested, schemas.EventExternalCancelRequested},
	} {
		for _, named := range []string{"no run", "the first run", "the second run"} {
			t.Run(tc.kind+"/"+named, func(t *testing.T) {
				virtually(t, 1, func(t *testing.T, f *fleet) {
					calm := f.node("calm", nil)
					f.decider("kid", renewing)
					f.start(`{"workflowId":"kid","type":"kid","run":"k1"}`)
					f.publish("drover.default.signal.kid.on", "")
					runs := f.runsOf("kid")
					for ; len(runs) < 2; runs = f.runsOf("kid") {
						time.Sleep(time.Second)
					}
					run := map[string]string{"the first run": `,"run":"k1"`, "the second run": `,"run":"` + runs[1] + `"`}[named]
					calm.stop()
					b := &bodies{prefix: ns.In(0, "kid", tc.kind), then: nth(1, ns.In(0, "o", "external"), cutwire.CutBefore)}
					first := f.node("a", b.judge)
					f.decider("order", when("WorkflowStarted", "["+fmt.Sprintf(tc.decision, run)+"]"))
					f.start0("o", "order", "r1")
					first.waitKilled()
					f.node("b", nil)
					f.await("o", tc.known)
					again := func() {
						t.Helper()
						f.publish(b.prefix, b.first(t))
						time.Sleep(2 * time.Second)
						if n := f.errands("kid"); n != 1 {
							t.Fatalf("%d times %s of the sender in the chain %v, want once", n, tc.event, f.runsOf("kid"))
						}
					}
					again()
					if n := len(f.runsOf("kid")); n != 3 {
						t.Fatalf("%d runs of the target, want 3", n)
					}
					f.api("terminate", `{"workflowId":"kid"}`)
					again()
					if known := f.count("o", tc.known); known != 1 {
						t.Fatalf("the sender was told %d times", known)
					}
					if failed := f.count("o", schemas.EventCancelExternalFailed) + f.count("o", schemas.EventSignalExternalFailed); failed != 0 {
						t.Fatalf("the sender was told %d times that it failed", failed)
					}
				})
			})
		}
	}
}

// Signals and cancel requests that come while a continuation is in flight belong to the chain: none is lost, none comes
// twice, none is parked.
func TestWhatComesDuringAContinuation(t *testing.T) { // P-4
	for _, verdict := range []cutwire.Verdict{cutwire.Pass, cutwire.CutBefore, cutwire.CutAfter} {
		for n := range 2 { // the record of the continuation, and the first one after it
			t.Run(fmt.Sprintf("%v/%d", verdict, n), func(t *testing.T) {
				virtually(t, 1, func(t *testing.T, f *fleet) {
					f.decider("order", renewing)
					first := f.node("a", laterContinuation(n, verdict))
					f.start0("o", "order", "r1")
					const signals = 60
					for i := range signals {
						f.publish("drover.default.signal.o.s", fmt.Sprint(i))
						if i%20 == 0 {
							f.publish(ns.In(0, "o", "cancel"), fmt.Sprintf(`{"workflowId":"o","run":"r1","requestId":"c%d","origin":{"firstRun":"r1"}}`, i))
						}
					}
					if verdict != cutwire.Pass {
						first.waitKilled()
						f.publish("drover.default.signal.o.s", "while nobody is there")
						f.node("b", nil)
					} else {
						f.publish("drover.default.signal.o.s", "last")
					}
					for tries := 0; tries < 100 && f.count("o", schemas.EventWorkflowCancelRequested) == 0; tries++ { // it does not come the way the signals come
						time.Sleep(time.Second)
					}
					f.publish("drover.default.signal.o.end", "")
					for f.result("o") != "completed" {
						time.Sleep(time.Second)
					}
					var inputs []string
					for _, run := range f.runsOf("o") {
						for _, e := range f.eventsOf("o", run) {
							if s, ok := e.Attributes.(*schemas.Signal); ok && s.SignalName == "s" && s.OriginRun == "" { // a copy is no signal of its own
								inputs = append(inputs, string(s.Input))
							}
						}
					}
					if len(inputs) != signals+1 {
						t.Fatalf("%d signals in the chain, want %d", len(inputs), signals+1)
					}
					for i := range signals {
						if inputs[i] != fmt.Sprint(i) {
							t.Fatalf("signal %d of the chain is %s: %v", i, inputs[i], inputs)
						}
					}
					if n := f.count("o", schemas.EventWorkflowCancelRequested); n == 0 {
						t.Fatal("no run of the chain has had a cancel request")
					}
					// A decider may have answered the owner that died.
					if dead := slices.DeleteFunc(f.dead(), func(reason string) bool { return reason == execution.DeadLateDecision }); len(dead) != 0 {
						t.Fatalf("dead letters %v", dead)
					}
				})
			})
		}
	}
}

// A signal that names itself is taken once, however often and however late it is sent, and by whichever run of a chain.
func TestSignalSentTwice(t *testing.T) { // P-6
	virtually(t, 1, func(t *testing.T, f *fleet) {
		first := f.node("a", nil)
		f.decider("order", func(d *decisionTask) string {
			for _, e := range d.Events {
				if e.Type == "Signal" && e.Attributes["signalName"] == "renew" {
					return `[{"type":"ContinueAsNew"}]`
				}
			}
			return "[]"
		})
		f.start(startO)
		send := func(name, id string) {
			t.Helper()
			if _, err := f.js.Publish(t.Context(), "drover.default.signal.o."+name, []byte(`1`), jetstream.WithMsgID(id)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		for i, before := range []func(){
			func() {},
			func() {},                              // the server drops it
			func() { time.Sleep(5 * time.Minute) }, // the server has forgotten it
			func() { send("renew", "renewal-1") },  // the run has another id
			func() { time.Sleep(5 * time.Minute) },
			func() { send("renew", "renewal-2"); first.stop(); f.node("b", nil) },
			func() { time.Sleep(5 * time.Minute) },
		} {
			before()
			send("s", "m1")
			signals := 0
			for _, run := range f.runsOf("o") {
				for _, e := range f.eventsOf("o", run) {
					if s, ok := e.Attributes.(*schemas.Signal); ok && s.SignalName == "s" && s.OriginRun == "" { // a copy is no signal of its own
						signals++
					}
				}
			}
			if signals != 1 {
				t.Fatalf("send %d: %d signals in the chain, want 1", i, signals)
			}
		}
		if n := len(f.runsOf("o")); n != 3 {
			t.Fatalf("%d runs, want 3", n)
		}
		if a := f.api("signal", `{"workflowId":"o","name":"s","requestId":"m1","input":1}`); a["error"] != nil {
			t.Fatalf("the same by the API was answered %v", a)
		}
		time.Sleep(time.Second)
		if types := f.types("o"); slices.Contains(types, "Signal") {
			t.Fatalf("the last run has %v", types)
		}
	})
}
