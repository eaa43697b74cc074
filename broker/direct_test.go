package broker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/schemas"
)

// direct is where a task's outcome goes to the owner, by where its heartbeats go.
func direct(beat string) string {
	p, wid, list, err := subject.ParseBeat(beat)
	if err != nil {
		panic(err)
	}
	return ns.Outcome(p, wid, list)
}

// hand sends a report straight to the owner. Nobody answering, or not in time, is the same as a refusal.
func (f *fleet) hand(subj, report string) (stored bool) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), 2*time.Second)
	defer cancel()
	m, err := f.nc.RequestMsgWithContext(ctx, &nats.Msg{Subject: subj, Data: []byte(report)})
	if err != nil {
		return false
	}
	var a schemas.OutcomeAnswer
	if err := json.Unmarshal(m.Data, &a); err != nil || (a.Error == nil) != (a.Sequence > 0) {
		f.t.Fatalf("answer %s: %v", m.Data, err)
	}
	if a.Sequence > 0 {
		got, err := f.post.GetSeq(f.t.Context(), ns.StreamHistory(0), a.Sequence)
		if err != nil || !strings.HasPrefix(got.Subject, "drover.default.history.0."+strings.Split(subj, ".")[4]+".") {
			f.t.Fatalf("record %d is %+v, %v, want one of the run", a.Sequence, got, err)
		}
	}
	return a.Error == nil
}

// Starts and outcomes leave no message in the inbox.
func TestStartsAndOutcomesGoToTheOwner(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.decider("order", one(""))
		f.start(startO)
		k := f.pull()
		if !f.hand(direct(k.Beat), `{"token":"`+k.Token+`","kind":"success","result":"done"}`) {
			t.Fatal("the outcome was not taken")
		}
		f.wantTypes("o", oneActivity...)
		if _, last, err := f.post.StreamState(t.Context(), ns.StreamIn(0)); err != nil || last != 0 {
			t.Fatalf("the inbox has got %d messages (%v), want none", last, err)
		}
		_, last, err := f.post.StreamState(t.Context(), ns.StreamHistory(0))
		if err != nil || last != 3 {
			t.Fatalf("the history has got %d messages (%v), want the fence and two records", last, err)
		}
	})
}

// What is not the outcome of a current attempt leaves no trace on this way. The worker takes the other, where it is judged.
func TestOutcomesThatTheOwnerDoesNotTake(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.decider("order", one(""))
		f.start(startO)
		k := f.pull()
		good := `{"token":"` + k.Token + `","kind":"success"}`
		for name, c := range map[string]struct{ subject, report string }{
			"another list":        {ns.Outcome(0, "o", "other"), good},
			"an unknown workflow": {ns.Outcome(0, "nobody", "main"), good},
			"another attempt":     {direct(k.Beat), `{"token":"r1.5.2","kind":"success"}`},
			"another run":         {direct(k.Beat), `{"token":"r0.5.1","kind":"success"}`},
			"no token":            {direct(k.Beat), `{"kind":"success"}`},
			"no outcome":          {direct(k.Beat), `{"token":"` + k.Token + `","kind":"started"}`},
			"a question":          {direct(k.Beat), `{"token":"` + k.Token + `","kind":"begin","replyTo":"x","nonce":"n"}`},
			"nothing readable":    {direct(k.Beat), "\xdd\xff\xff\xff\xff"},
			"too large":           {direct(k.Beat), `{"token":"` + k.Token + `","kind":"success","result":"` + strings.Repeat("x", schemas.PayloadThreshold) + `"}`},
			"too large in JSON":   {direct(k.Beat), `{"token":"` + k.Token + `","kind":"success","result":"` + strings.Repeat("<", schemas.PayloadThreshold-1<<10) + `"}`},
		} {
			if f.hand(c.subject, c.report) {
				t.Errorf("%s was taken", name)
			}
		}
		if got := f.types("o"); len(got) != 5 {
			t.Fatalf("history %v, want nothing after the scheduled activity", got)
		}
		if got := f.dead(); len(got) != 0 {
			t.Fatalf("dead letters %v, want none", got)
		}
		if !f.hand(direct(k.Beat), good) {
			t.Fatal("the outcome was not taken")
		}
		if f.hand(direct(k.Beat), good) {
			t.Fatal("it was taken twice")
		}
		f.wantTypes("o", oneActivity...)
	})
}

// Wherever the owner dies with an outcome in hand, the worker puts it into the inbox, and it counts once.
func TestOwnerDiesWithAnOutcome(t *testing.T) { // P-1
	for _, verdict := range []cutwire.Verdict{cutwire.CutBefore, cutwire.CutAfter} {
		for _, place := range []struct {
			prefix string
			n      int
		}{{"drover.default.decide.", 2}, {"drover.default.history.0.o.", 2}} {
			t.Run(fmt.Sprintf("%v/%s", verdict, place.prefix), func(t *testing.T) {
				virtually(t, 1, func(t *testing.T, f *fleet) {
					f.decider("order", one(""))
					a := f.node("a", nth(place.n, place.prefix, verdict))
					f.start(startO)
					k := f.pull()
					if f.hand(direct(k.Beat), `{"token":"`+k.Token+`","kind":"success"}`) {
						t.Fatal("an owner that is dead has taken the outcome")
					}
					a.waitKilled()
					k.success()
					f.node("b", nil)
					f.completes("o")
					f.wantTypes("o", oneActivity...)
				})
			})
		}
	}
}

// An owner whose write is refused sends back what it has taken, so that no worker waits for its own timeout.
func TestOutcomeIsSentBackByAnOwnerThatStartsAnew(t *testing.T) { // P-2
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.decider("order", one(""))
		f.start(startO)
		k := f.pull()
		f.publish("drover.default.history.0.stranger.x", `{}`)
		began := time.Now()
		if f.hand(direct(k.Beat), `{"token":"`+k.Token+`","kind":"success"}`) {
			t.Fatal("the outcome counts as stored by a record that was refused")
		}
		if took := time.Since(began); took > time.Second {
			t.Fatalf("it was sent back after %v", took)
		}
		k.success()
		f.completes("o")
		f.wantTypes("o", oneActivity...)
	})
}

// A record does not wait long for a decision, and those of a slow decider not at all.
func TestSlowDeciderHoldsNothingBack(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.decider("order", func(d *decisionTask) string {
			time.Sleep(2 * time.Second)
			return complete
		})
		f.api("describe", `{"workflowId":"o"}`) // the owner is there
		for i, most := range []time.Duration{21 * time.Millisecond, 5 * time.Millisecond} {
			began := time.Now()
			f.start(fmt.Sprintf(`{"workflowId":"o%d","type":"order"}`, i))
			if took := time.Since(began); took > most {
				t.Errorf("start %d was answered after %v, want %v at most", i, took, most)
			}
		}
		for i := range 2 {
			f.completes(fmt.Sprint("o", i))
		}
	})
}

// Signals that come while a record waits for a decision are after it, and the decider is asked about them.
func TestSignalWhileARecordWaits(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		asked := make(chan struct{}, 16)
		f.decider("order", func(d *decisionTask) string {
			asked <- struct{}{}
			time.Sleep(10 * time.Millisecond)
			return complete
		})
		go f.start(startO)
		<-asked
		f.publish(ns.Signal("o", "go"), "")
		f.completes("o")
		f.wantTypes("o", "WorkflowStarted", "DeciderScheduled", "DeciderStarted", "Signal", "DeciderScheduled", "DeciderCompleted",
			"WorkflowCloseFailed", "DeciderStarted", "DeciderCompleted", "WorkflowSuccess")
	})
}

// However records and answers cross, each window begins after the last decision, and every signal is in one.
func TestWindowsWhileRecordsWait(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		const signals = 400
		seen := make(map[int64]int)
		asked := 0
		done := make(chan struct{})
		f.decider("order", func(d *decisionTask) string {
			asked++
			time.Sleep(time.Duration(asked*7%25) * time.Millisecond) // about as long as a record waits
			for _, e := range d.Events {
				if e.ID <= d.PreviousStartedID || e.ID > d.StartedID {
					t.Errorf("event %d %s is in the window of %d to %d", e.ID, e.Type, d.PreviousStartedID, d.StartedID)
				}
				if e.Type == "Signal" {
					seen[e.ID]++
				}
			}
			if len(seen) == signals {
				close(done)
				return complete
			}
			return "[]"
		})
		f.start(startO)
		for i := range signals {
			f.publish(ns.Signal("o", "go"), fmt.Sprint(i))
			time.Sleep(time.Duration(i%9) * time.Millisecond)
		}
		<-done
		f.completes("o")
		for id, n := range seen {
			if n != 1 {
				t.Errorf("signal %d was in %d windows", id, n)
			}
		}
		f.check()
	})
}
