package broker_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/schemas"
)

// two does one activity after the other.
func two(more string) func(*decisionTask) string {
	done := 0
	return func(t *decisionTask) string {
		switch {
		case t.has("WorkflowStarted"):
			done = 0
			return "[" + scheduleActivity("a", more) + "]"
		case t.has("ActivitySuccess"):
			if done++; done == 1 {
				return "[" + scheduleActivity("b", more) + "]"
			}
			return complete
		}
		return "[]"
	}
}

// idle is a worker of list main that hears offers.
func (f *fleet) idle() <-chan *nats.Msg {
	f.t.Helper()
	offers := make(chan *nats.Msg, 16)
	if _, err := f.nc.ChanQueueSubscribe(ns.Offer("main"), "workers", offers); err != nil {
		f.t.Fatal(err)
	}
	f.flush()
	return offers
}

// quick does the first task, from the list, fast enough for the next to be offered.
func (f *fleet) quick() {
	f.t.Helper()
	k := f.pull()
	f.success(k, time.Millisecond)
	if err := k.msg.Ack(); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fleet) success(k *task, took time.Duration) {
	f.t.Helper()
	if !f.hand(direct(k.Beat), fmt.Sprintf(`{"token":"%s","kind":"success","elapsed":"%v"}`, k.Token, took)) {
		f.t.Fatal("the outcome was not taken")
	}
}

// offered starts workflow "o" at owner a and does the first of its two tasks, so that the second is offered: k. Later offers come
// from the channel.
func (f *fleet) offered() (k *task, offers <-chan *nats.Msg, a *node) {
	f.t.Helper()
	a = f.node("a", nil)
	f.decider("order", two(""))
	offers = f.idle()
	f.start(startO)
	f.quick()
	return f.opened(<-offers), offers, a
}

func (f *fleet) opened(m *nats.Msg) *task {
	f.t.Helper()
	k := &task{f: f}
	if err := json.Unmarshal(m.Data, k); err != nil {
		f.t.Fatal(err)
	}
	return k
}

func (f *fleet) stored() uint64 {
	f.t.Helper()
	_, last, err := f.post.StreamState(f.t.Context(), ns.StreamTasks("main"))
	if err != nil {
		f.t.Fatal(err)
	}
	return last
}

// taskAt waits for a message of list main, whichever its priority.
func (f *fleet) taskAt(seq uint64) *task {
	f.t.Helper()
	for range 100 {
		if m, err := f.post.GetSeq(f.t.Context(), ns.StreamTasks("main"), seq); err == nil {
			return f.opened(&nats.Msg{Data: m.Data})
		}
		time.Sleep(10 * time.Millisecond)
	}
	f.t.Fatalf("task %d is not stored", seq)
	return nil
}

var twoActivities = []string{
	"WorkflowStarted", "DeciderScheduled", "DeciderStarted", "DeciderCompleted", "ActivityScheduled",
	"ActivityStarted", "ActivitySuccess", "DeciderScheduled", "DeciderStarted", "DeciderCompleted", "ActivityScheduled",
	"ActivityStarted", "ActivitySuccess", "DeciderScheduled", "DeciderStarted", "DeciderCompleted", "WorkflowSuccess",
}

// A task of a type that is quick goes to an idle worker, and no message of it is stored.
func TestQuickTaskIsOffered(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		k, _, _ := f.offered()
		if k.ActivityID != "b" || k.NotIdempotent {
			t.Fatalf("got the task of %q, ask first: %t, want that of b, at once", k.ActivityID, k.NotIdempotent)
		}
		f.success(k, time.Millisecond)
		f.completes("o")
		time.Sleep(10 * time.Second)
		f.wantTypes("o", twoActivities...)
		if n := f.stored(); n != 1 {
			t.Fatalf("got %d messages of tasks, want that of the first alone", n)
		}
	})
}

// A worker judges by the times that stand in an offer whether it has lain there for long (ADR 0049): what is given away late says so.
func TestOfferTellsThatItIsLate(t *testing.T) { // P-7
	for more, want := range map[string]time.Duration{"": 0, `,"startDelay":3`: 3 * time.Second} {
		t.Run(more, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				f.node("a", nil)
				f.decider("order", two(more))
				offers := f.idle()
				f.start(startO)
				f.quick()
				var offer schemas.ActivityTask
				if err := json.Unmarshal((<-offers).Data, &offer); err != nil {
					t.Fatal(err)
				}
				late := time.Duration(0)
				if offer.DispatchedAt != 0 {
					late = offer.DispatchedAt.Sub(offer.ScheduledAt).Round(100 * time.Millisecond)
				}
				if late != want {
					t.Errorf("it says that it is late by %v, want %v", late, want)
				}
			})
		})
	}
}

// What has a priority and what is not known to be quick is put on the list.
func TestTasksThatAreNotOffered(t *testing.T) {
	for name, c := range map[string]struct {
		more string
		took time.Duration
	}{
		"urgent": {`,"taskPriority":3`, time.Millisecond},
		"slow":   {"", 21 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				f.node("a", nil)
				f.decider("order", two(c.more))
				offers := f.idle()
				f.start(startO)
				for seq := range 2 {
					f.success(f.taskAt(uint64(seq+1)), c.took)
				}
				if got := f.result("o"); got != "completed" || len(offers) != 0 {
					t.Fatalf("status %s with %d offers, want it completed without", got, len(offers))
				}
			})
		})
	}
}

// An offer that is refused, or that nobody hears, is on the list at once.
func TestOfferIsNotTaken(t *testing.T) {
	for _, refused := range []bool{true, false} {
		t.Run(fmt.Sprintf("refused %t", refused), func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				f.node("a", nil)
				f.decider("order", two(""))
				if refused {
					offers := f.idle()
					go func() {
						if err := (<-offers).Respond([]byte("busy")); err != nil {
							t.Error(err)
						}
					}()
				}
				f.start(startO)
				f.quick()
				began := time.Now()
				k := f.pull()
				if took := time.Since(began); k.ActivityID != "b" || k.NotIdempotent || took > 100*time.Millisecond {
					t.Fatalf("got the task of %q after %v, ask first: %t, want that of b at once", k.ActivityID, took, k.NotIdempotent)
				}
				k.success()
				f.completes("o")
				f.wantTypes("o", twoActivities...)
			})
		})
	}
}

// A worker that dies with an offer in hand costs a second: the task is on the list, and whoever gets it must ask.
func TestWorkerDiesWithAnOffer(t *testing.T) { // P-7
	virtually(t, 1, func(t *testing.T, f *fleet) {
		lost, _, _ := f.offered()
		began := time.Now()
		k := f.pull()
		if took := time.Since(began); !k.NotIdempotent || k.Token != lost.Token || took > 1100*time.Millisecond {
			t.Fatalf("got %s after %v, ask first: %t, want %s within a second", k.Token, took, k.NotIdempotent, lost.Token)
		}
		if p := k.begin("n"); !p.Go || p.Token != lost.Token {
			t.Fatalf("got %+v, want the attempt that was offered", p)
		}
		k.success()
		f.completes("o")
		f.wantTypes("o", twoActivities...)
	})
}

// While the worker of an offer answers for it, whoever holds its message leaves it. Then it is interrupted.
func TestWorkerOfAnOfferIsAsked(t *testing.T) { // P-7
	virtually(t, 1, func(t *testing.T, f *fleet) {
		k, _, _ := f.offered()
		holds := true
		asked := 0
		control, err := f.nc.Subscribe(ns.Control("w-1"), func(m *nats.Msg) {
			var c schemas.Control
			if err := schemas.Unmarshal(m.Data, &c); err != nil || c.Kind != schemas.ControlHolds {
				t.Errorf("asked %s, %v", m.Data, err)
			}
			if asked++; holds {
				if err := m.Respond([]byte(`{"node":"w-1","holds":true}`)); err != nil {
					t.Error(err)
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		f.flush()
		k.report("started", `,"identity":"w-1","nonce":"n1","offered":true,"elapsed":"50ms"`)
		held := f.pull()
		if !held.NotIdempotent || held.Token != k.Token {
			t.Fatalf("got %s, ask first: %t, want the message of the offer", held.Token, held.NotIdempotent)
		}
		for range 5 { // each time its lease is over
			if p := held.begin("n2"); p.Go || !p.Leave {
				t.Fatalf("got %+v, want it left", p)
			}
			held = f.pull()
			if held.Token != k.Token || held.delivered < 2 {
				t.Fatalf("got %s, delivery %d, want the same message again", held.Token, held.delivered)
			}
		}
		if asked != 5 {
			t.Fatalf("the worker was asked %d times, want 5", asked)
		}
		holds = false
		if err := control.Unsubscribe(); err != nil {
			t.Fatal(err)
		}
		if p := held.begin("n2"); !p.Leave {
			t.Fatalf("got %+v, want it left until the worker is known to be lost", p)
		}
		next := f.pull()
		if next.Attempt != 2 {
			t.Fatalf("got attempt %d, want the second", next.Attempt)
		}
		if p := next.begin("n3"); !p.Go && !next.NotIdempotent {
			t.Fatalf("got %+v", p)
		}
		next.success()
		f.completes("o")
		if f.hand(direct(k.Beat), `{"token":"`+k.Token+`","kind":"success"}`) {
			t.Fatal("the outcome of the lost attempt was taken")
		}
		if p := held.begin("n2"); p.Go || p.Leave {
			t.Fatalf("got %+v, want the message of the lost attempt dropped", p)
		}
		f.await("o", schemas.EventActivityInterrupted)
	})
}

// An owner that dies has offers in nobody's hand: the next one repeats them, and an outcome by either way counts once.
func TestOwnerDiesWithAnOffer(t *testing.T) { // P-1
	for _, done := range []bool{true, false} {
		t.Run(fmt.Sprintf("done %t", done), func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				a := f.node("a", nth(1, ns.Offer("main"), cutwire.CutAfter))
				f.decider("order", two(""))
				offers := f.idle()
				f.start(startO)
				f.quick()
				k := f.opened(<-offers)
				a.waitKilled()
				if done {
					k.report("success", `,"elapsed":"1ms"`) // by way of the inbox
				}
				f.node("b", nil)
				if !done {
					next := f.pull()
					if next.Token != k.Token {
						t.Fatalf("got %s, want %s again", next.Token, k.Token)
					}
					next.success()
				}
				f.completes("o")
				f.wantTypes("o", twoActivities...)
			})
		})
	}
}

// An owner that leaves as planned waits for what it has offered, if that is as quick as it should be.
func TestOwnerThatLeavesTakesOutcomes(t *testing.T) { // S2-1
	virtually(t, 1, func(t *testing.T, f *fleet) {
		offered, _, a := f.offered()
		before := f.stored()
		left := make(chan struct{})
		go func() { a.stop(); close(left) }()
		time.Sleep(100 * time.Millisecond)
		f.success(offered, time.Millisecond)
		<-left
		if after := f.stored(); after != before {
			t.Errorf("%d tasks are on the list, want the %d before: nobody shall ask whether it may do what is done", after, before)
		}
		f.node("b", nil)
		f.completes("o")
		f.wantTypes("o", twoActivities...)
	})
}

// An owner that leaves as planned leaves no offer after.
func TestOwnerLeavesWithAnOffer(t *testing.T) { // S2-1
	virtually(t, 1, func(t *testing.T, f *fleet) {
		offered, _, a := f.offered()
		began := time.Now()
		a.stop()
		if took := time.Since(began); took > 500*time.Millisecond {
			t.Fatalf("it left after %v, want no longer wait for the offer", took)
		}
		k := f.pull()
		if k.Token != offered.Token || !k.NotIdempotent {
			t.Fatalf("got %s, ask first: %t, want that of the offer", k.Token, k.NotIdempotent)
		}
		f.node("b", nil)
		f.api("describe", `{"workflowId":"o"}`) // the owner is there
		f.success(offered, time.Millisecond)
		f.completes("o")
		if p := k.begin("n"); p.Go {
			t.Fatalf("got %+v, want the message dropped", p)
		}
		f.wantTypes("o", twoActivities...)
	})
}

// A type that turns out slow is offered no more until many of its tasks were quick.
func TestSlowOffersEnd(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		k, offers, _ := f.offered()
		time.Sleep(500 * time.Millisecond)
		f.success(k, 500*time.Millisecond)
		f.result("o")
		f.start(`{"workflowId":"p","type":"order"}`)
		for range 2 {
			f.quick()
		}
		if got := f.result("p"); got != "completed" || len(offers) != 0 {
			t.Fatalf("status %s with %d offers, want it completed without", got, len(offers))
		}
	})
}

// The message that was stored for a long offer goes with its outcome.
func TestMessageOfAnOfferGoesWithIt(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		k, _, _ := f.offered()
		k.report("started", `,"identity":"w-1","nonce":"n1","offered":true,"elapsed":"50ms"`)
		copied := f.taskAt(2)
		if copied.Token != k.Token {
			t.Fatalf("got %s, want the message of the offer", copied.Token)
		}
		f.success(k, time.Second)
		f.completes("o")
		time.Sleep(time.Second)
		if m, err := f.post.GetSeq(t.Context(), ns.StreamTasks("main"), 2); !errors.Is(err, natsconn.ErrNotFound) {
			t.Fatalf("got %+v, %v, want it gone", m, err)
		}
	})
}
