package broker_test

import (
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/schemas"
)

// What an owner buries is a dead letter before any record of its run moves past it. Here the letters of an owner never come to the server, the run
// goes on as far as it can, and the owner ends: the next one must find the message, and bury it once. (E4)
func TestLettersBeforePositions(t *testing.T) {
	const second = `{"token":"TOKEN","kind":"success","result":"another","identity":"v"}`
	var done *task
	outcome := func(f *fleet, id, run string) {
		f.publish(ns.ActOutcome(0, id, "main"), strings.Replace(second, "TOKEN", run+".2.1", 1))
	}
	closes := func(f *fleet, id, run string) {
		f.start(`{"workflowId":"` + id + `","type":"order","run":"` + run + `"}`)
		f.signalAsync(id, "end")
		f.completes(id)
	}
	for _, tc := range []struct {
		name    string
		before  func(*fleet) // what must be there when the message comes
		message func(*fleet)
		after   func(*fleet) // what makes a record after it
		event   schemas.EventType
		reason  string
	}{
		{
			"a second outcome", func(f *fleet) {
				f.start(`{"workflowId":"o","type":"order"}`)
				f.signalAsync("o", "work")
				done = f.pull()
				done.success()
				f.await("o", schemas.EventActivitySuccess)
			},
			func(f *fleet) { f.publish(done.Report, strings.Replace(second, "TOKEN", done.Token, 1)) },
			func(f *fleet) { f.signalAsync("o", "more") }, schemas.EventSignal, "closed-activity",
		},
		{
			"an outcome of another list", func(f *fleet) {
				f.start(`{"workflowId":"o","type":"order"}`)
				f.signalAsync("o", "work")
				f.await("o", schemas.EventActivityScheduled)
			},
			func(f *fleet) {
				f.publish(ns.ActOutcome(0, "o", "other"), strings.Replace(second, "TOKEN", f.pull().Token, 1))
			},
			func(f *fleet) { f.signalAsync("o", "more") }, schemas.EventSignal, "foreign-list",
		},
		{
			"an outcome for a closed run", func(f *fleet) { closes(f, "o", "r1") },
			func(f *fleet) { outcome(f, "o", "r1") },
			func(f *fleet) { f.startAsync("o", "r2") }, schemas.EventWorkflowStarted, "closed-activity",
		},
		{
			"a signal for a closed run", func(f *fleet) { closes(f, "o", "r1") },
			func(f *fleet) { f.publish(ns.Signal("o", "any"), `1`) },
			func(f *fleet) { f.startAsync("o", "r2") }, schemas.EventWorkflowStarted, "closed-workflow",
		},
		{
			"an outcome for an unknown id", func(*fleet) {}, func(f *fleet) { outcome(f, "o", "r1") },
			func(f *fleet) { f.startAsync("o", "r2") }, schemas.EventWorkflowStarted, "unknown-workflow",
		},
		{
			"a signal for an unknown id", func(*fleet) {}, func(f *fleet) { f.publish(ns.Signal("o", "any"), `1`) },
			func(f *fleet) { f.startAsync("o", "r2") }, schemas.EventWorkflowStarted, "unknown-workflow",
		},
		{
			"what nobody can read", func(f *fleet) { f.start(`{"workflowId":"o","type":"order"}`) },
			func(f *fleet) { f.publish(ns.ActOutcome(0, "o", "main"), `{"token":`) },
			func(f *fleet) { f.signalAsync("o", "more") }, schemas.EventSignal, "undecodable",
		},
	} {
		for end, ends := range map[string]func(*node){"killed": (*node).kill, "stopped": (*node).stop} {
			t.Run(tc.name+", "+end, func(t *testing.T) {
				virtually(t, 1, func(t *testing.T, f *fleet) {
					a := f.node("a", every("drover.default.dead.", cutwire.Swallow), func(o *broker.Options) { o.CheckpointEvery = time.Hour })
					f.decider("order", func(d *decisionTask) string {
						for _, e := range d.Events {
							switch {
							case e.Type != "Signal":
							case e.Attributes["signalName"] == "end":
								return complete
							case e.Attributes["signalName"] == "work":
								return "[" + scheduleActivity("a", "") + "]"
							}
						}
						return "[]"
					})
					tc.before(f)
					had := f.lastSequence("o")
					tc.message(f)
					time.Sleep(100 * time.Millisecond)
					tc.after(f)
					f.until(20*time.Second, func() bool { return f.lastSequence("o") > had })
					ends(a)
					f.node("b", nil)
					if !f.until(time.Minute, func() bool { return f.happened("o", tc.event) > 0 }) {
						t.Errorf("what came after it is not in the history: %v", f.recordedTypes("o"))
					}
					time.Sleep(time.Minute)
					places := f.dead()
					for _, e := range f.recorded("o") {
						if s, ok := e.Attributes.(*schemas.Signal); ok && s.SignalName == "any" { // the next owner has read the start before it
							places = append(places, tc.reason)
						}
					}
					if got := strings.Join(places, " "); got != tc.reason {
						t.Errorf("it is in these places: %q, want %q once", got, tc.reason)
					}
				})
			})
		}
	}
}

// lastSequence is that of a workflow's last record; 0 if it has none.
func (f *fleet) lastSequence(id string) uint64 {
	f.t.Helper()
	m := f.lastRecord(id)
	if m == nil {
		return 0
	}
	return m.Seq
}

// startAsync asks for a run, and waits for no answer: the owner that has the request may end.
func (f *fleet) startAsync(id, run string) {
	f.t.Helper()
	f.publish(ns.In(0, id, "start"), `{"workflowId":"`+id+`","type":"order","run":"`+run+`"}`)
}

// signalAsync stores a signal, and waits for nothing else.
func (f *fleet) signalAsync(id, name string) {
	f.t.Helper()
	f.publish(ns.Signal(id, name), `1`)
}

// A letter whose owner has ended before it knew that the letter is stored stays the only one, also if the next owner has another reason for it. (E4)
func TestLettersAreWrittenOnce(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		a := f.node("a", every("drover.default.dead.", cutwire.Unanswered))
		f.decider("order", func(d *decisionTask) string {
			switch {
			case d.has("Signal"):
				time.Sleep(5 * time.Second)
				return `[{"type":"RequestCancelActivity","attributes":{"activityId":"a"}}]`
			case d.has("WorkflowStarted"):
				return "[" + scheduleActivity("a", `,"retry":{"initialInterval":600}`) + "]"
			}
			return "[]"
		})
		f.start(startO)
		k := f.pull()
		k.report("failed", `,"reason":"bad luck"`)
		f.await("o", schemas.EventActivityRetryScheduled)
		f.signalAsync("o", "end")
		f.await("o", schemas.EventSignal)
		k.report("success", `,"result":"another"`)
		f.await("o", schemas.EventActivityCanceled)
		if got := f.dead(); len(got) != 1 || got[0] != "stale-token" {
			t.Fatalf("dead letters %q, want stale-token", got)
		}
		a.kill()
		f.node("b", nil)
		f.signalAsync("o", "end") // after it
		f.awaitTimes("o", schemas.EventSignal, 2)
		if got := f.dead(); len(got) != 1 || got[0] != "stale-token" {
			t.Errorf("dead letters %q, want stale-token once", got)
		}
	})
}
