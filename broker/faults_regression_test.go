package broker_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/schemas"
)

// What TestEveryPublish has found.

// A start with the request id of an earlier one is that start, however many runs have come after it in its chain. The
// client minted a new run id for each call, and beyond the latest run only run ids are looked up: the workflow began anew.
func TestRequestIDOutlivesItsChain(t *testing.T) { // P-5
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.decider("order", continuing(3))
		c, err := drover.Connect(t.Context(), &drover.Options{Conn: f.post.NATS()})
		if err != nil {
			t.Fatal(err)
		}
		start := func() *drover.Run {
			t.Helper()
			run, err := c.Start(t.Context(), "order", 0, &drover.StartOptions{ID: "o", RequestID: "q1"})
			if err != nil {
				t.Fatal(err)
			}
			return run
		}
		first := start()
		if err := first.Result(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if again := start(); again.RunID != first.RunID || again.Started() {
			t.Fatalf("the repeat got run %s, started %v; want %s again", again.RunID, again.Started(), first.RunID)
		}
		time.Sleep(10 * time.Second)
		runs := map[string]bool{}
		for _, r := range f.records(0) {
			runs[r.Run] = true
		}
		if len(runs) != 4 {
			t.Fatalf("%d runs, want 4", len(runs))
		}
	})
}

// alarms is how many alarms are armed.
func (f *fleet) alarms() uint64 {
	f.t.Helper()
	s, err := f.js.Stream(f.t.Context(), ns.StreamAlarms(0))
	if err != nil {
		f.t.Fatal(err)
	}
	return s.CachedInfo().State.Msgs
}

// The alarm of a run may have been armed by an earlier owner, or by this one before it forgot the run. It goes with the run
// all the same: it may be due in a year, and there may be a million of them.
func TestAlarmOfALoadedRunGoesWithIt(t *testing.T) { // I15
	for name, forget := range map[string]func(f *fleet, a *node){
		"by another owner": func(f *fleet, a *node) { a.kill(); f.node("b", nil) },
		"by an owner that forgot the run": func(f *fleet, _ *node) {
			for _, id := range []string{"x", "y", "z"} {
				f.start(`{"workflowId":"` + id + `","type":"quick","run":"` + id + `"}`)
				f.result(id)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				a := f.node("a", nil, func(o *broker.Options) { o.CachedRuns = 1 })
				f.decider("order", signaled)
				f.decider("quick", func(*decisionTask) string { return complete })
				f.start(startO)
				f.await("o", schemas.EventDeciderCompleted)
				for f.alarms() == 0 { // for its timeout, in a year
					time.Sleep(time.Second)
				}
				forget(f, a)
				f.publish(ns.Signal("o", "go"), "")
				f.result("o")
				time.Sleep(5 * time.Second)
				if n := f.alarms(); n != 0 {
					t.Fatalf("%d alarms are left", n)
				}
			})
		})
	}
}

// overdue loses the n-th record of a run, and tells when.
func overdue(n int, prefix string, lost *atomic.Bool) func(string, []byte) cutwire.Verdict {
	inner := nth(n, prefix, cutwire.Swallow)
	return func(subj string, body []byte) cutwire.Verdict {
		v := inner(subj, body)
		if v == cutwire.Swallow {
			lost.Store(true)
		}
		return v
	}
}

// The owner shows what it has decided only when that is in the history: the record may be lost. A worker that was told to
// stop by a decision which never was reported its activity as canceled, which failed it.
func TestHeartbeatTellsNoMoreThanTheHistory(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		var lost atomic.Bool
		f.node("a", func() func(string, []byte) cutwire.Verdict {
			return func(subj string, body []byte) cutwire.Verdict {
				if !lost.Load() && strings.HasPrefix(subj, "drover.default.history.0.o.") && brings(body, schemas.EventActivityCancelRequested) {
					lost.Store(true)
					return cutwire.Swallow
				}
				return cutwire.Pass
			}
		}())
		refuses := atomic.Bool{}
		f.decider("order", func(d *decisionTask) string {
			switch {
			case d.has("WorkflowStarted"):
				return "[" + scheduleActivity("a", "") + "]"
			case d.has("ActivitySuccess"):
				return complete
			case d.has("Signal") && !refuses.Load():
				refuses.Store(true) // asked again after the loss, it thinks otherwise
				return `[{"type":"RequestCancelActivity","attributes":{"activityId":"a"}}]`
			}
			return "[]"
		})
		f.start(startO)
		k := f.pull()
		k.begun()
		f.await("o", schemas.EventActivityStarted)
		f.publish(ns.Signal("o", "stop"), "")
		for !lost.Load() {
			time.Sleep(10 * time.Millisecond)
		}
		if raw := f.tryRequest(k.Beat, `{"token":"`+k.Token+`"}`); raw != nil {
			t.Fatalf("the heartbeat was answered %s: that is in no history", raw)
		}
		time.Sleep(20 * time.Second)
		if a := k.beat("1"); a.CancelRequested || a.Gone {
			t.Fatalf("the heartbeat was answered %+v", a)
		}
		k.report("success", `,"result":1`)
		f.completes("o")
	})
}

// A client that was shown a continuation whose record was lost sent the next signal to a run that did not expect it.
func TestDescribeTellsNoMoreThanTheHistory(t *testing.T) {
	for _, verb := range []string{"describe", "why", "signal", "cancel"} {
		t.Run(verb, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				var lost atomic.Bool
				f.node("a", overdue(2, "drover.default.history.0.o.", &lost)) // start and first answer, signal and close
				f.decider("order", signaled)
				f.start(startO)
				f.await("o", schemas.EventDeciderCompleted)
				f.publish(ns.Signal("o", "go"), "")
				for !lost.Load() {
					time.Sleep(10 * time.Millisecond)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
				defer cancel()
				m, err := f.post.Request(ctx, ns.API(verb), natsconn.Header{}, []byte(`{"workflowId":"o","name":"late","requestId":"x"}`))
				if err == nil {
					for _, sign := range []string{"completed", "closed"} {
						if strings.Contains(string(m.Data), sign) {
							t.Fatalf("%s was answered %s: that is in no history", verb, m.Data)
						}
					}
				}
				f.completes("o")
			})
		})
	}
}

// An alarm that is due already rings at once, and the ring can overtake the acknowledgement of the alarm. The owner took
// the alarm for armed then, and armed no other: the run's next timer never fired.
func TestFireOvertakesItsAcknowledgement(t *testing.T) { // P-10, I8
	virtually(t, 1, func(t *testing.T, f *fleet) {
		const n = 60
		f.decider("order", func(d *decisionTask) string {
			switch {
			case d.has("WorkflowStarted"):
				return `[{"type":"ScheduleTimer","attributes":{"timerId":"first","startToFireTimeout":5}}]`
			case d.has("TimerExpired") && d.PreviousStartedID < 5:
				return `[{"type":"ScheduleTimer","attributes":{"timerId":"second","startToFireTimeout":5}}]`
			case d.has("TimerExpired"):
				return complete
			}
			return "[]"
		})
		a := f.node("a", nil)
		for i := range n {
			f.start(fmt.Sprintf(`{"workflowId":"w%d","type":"order","run":"r%d"}`, i, i))
		}
		time.Sleep(time.Second)
		a.kill() // when another owner comes, all the first timers are overdue
		f.node("b", nil)
		time.Sleep(time.Minute)
		for i := range n {
			if got := f.result0(fmt.Sprintf("w%d", i)); got != "completed" {
				t.Errorf("w%d is %s: %v", i, got, f.api("why", fmt.Sprintf(`{"workflowId":"w%d"}`, i))["because"])
			}
		}
	})
}

// The alarm that is to replace a later one is stored, its acknowledgement is lost, and it rings. The owner took the later
// one for armed still, which was gone: the timer that it stood for never fired.
func TestLostAcknowledgementOfAnEarlierAlarm(t *testing.T) { // P-10, I8
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.decider("order", func(d *decisionTask) string {
			switch {
			case d.has("WorkflowStarted"):
				return `[{"type":"ScheduleTimer","attributes":{"timerId":"late","startToFireTimeout":60}}]`
			case d.has("Signal"):
				return `[{"type":"ScheduleTimer","attributes":{"timerId":"early","startToFireTimeout":20}}]`
			}
			for _, e := range d.Events {
				if e.Type == "TimerExpired" && e.Attributes["timerId"] == "late" {
					return complete
				}
			}
			return "[]"
		})
		a := f.node("a", nil)
		f.start(startO)
		for f.alarms() == 0 {
			time.Sleep(100 * time.Millisecond)
		}
		a.wire.Judge(func(subj string, _ []byte) cutwire.Verdict {
			if strings.HasPrefix(subj, "drover.default.alarm.") || strings.HasPrefix(subj, "$JS.API.STREAM.MSG.GET.drover-default-alarms") {
				return cutwire.Unanswered
			}
			return cutwire.Pass
		})
		f.publish(ns.Signal("o", "go"), "")
		time.Sleep(29 * time.Second) // it has rung, and what was published since is not acknowledged either
		a.wire.Judge(func(string, []byte) cutwire.Verdict { return cutwire.Pass })
		time.Sleep(time.Minute)
		if got := f.result0("o"); got != "completed" {
			t.Fatalf("status %s: %v", got, f.api("why", `{"workflowId":"o"}`)["because"])
		}
	})
}

// brings tells whether a published record, after its headers, has an event of a type.
func brings(message []byte, typ schemas.EventType) bool {
	_, body, _ := bytes.Cut(message, []byte("\r\n\r\n"))
	var r schemas.Record
	err := schemas.Unmarshal(body, &r)
	return err == nil && slices.ContainsFunc(r.Events, func(e schemas.Event) bool { return e.Type() == typ })
}
