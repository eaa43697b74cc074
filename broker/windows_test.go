package broker_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/schemas"
)

// More has come for a run than one record holds, and its owner dies after one of the records: what stands in none of them
// is not consumed, and the next owner reads it again.
func TestOwnerDiesBetweenTheRecordsOfABacklog(t *testing.T) { // P-1
	for _, verdict := range []cutwire.Verdict{cutwire.CutBefore, cutwire.CutAfter} {
		for n := 1; n <= 4; n++ {
			t.Run(fmt.Sprintf("%v/%d", verdict, n), func(t *testing.T) {
				virtually(t, 1, func(t *testing.T, f *fleet) {
					const signals = 20
					f.start0("o", "order", "r1")
					for i := range signals {
						f.publish("drover.default.signal.o.s", fmt.Sprintf(`"%d %s"`, i, strings.Repeat("n", 200_000)))
					}
					first := f.node("a", nth(n, "drover.default.history.0.o.", verdict))
					first.waitKilled()
					f.node("b", nil)
					f.decider("order", func(d *decisionTask) string { return "[]" })
					f.publish("drover.default.signal.o.end", "")
					for wait := 0; f.lastEvent("o") < signals+3; wait++ {
						if wait == 600 {
							t.Fatalf("%d events, want %d: signals are lost", f.lastEvent("o"), signals+3)
						}
						time.Sleep(time.Second)
					}
					time.Sleep(10 * time.Second)
					wantSignals(t, slices.DeleteFunc(f.recorded("o"), func(e schemas.Event) bool {
						s, ok := e.Attributes.(*schemas.Signal)
						return ok && s.SignalName == "end"
					}), signals)
				})
			})
		}
	}
}

// 5,000 signals of 10 KiB make a window that no message holds: the task shows its beginning and says that there is more,
// and api.history has the rest.
func TestWindowOfManySignals(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		const signals = 5000 / fewer
		f.node("a", nil)
		f.start(startO)
		f.api("pause", `{"workflowId":"o"}`) // or the decider would be asked in between
		note := strings.Repeat("n", 10<<10)
		for i := range signals {
			if _, err := f.js.PublishAsync("drover.default.signal.o.s", fmt.Appendf(nil, `"%d %s"`, i, note)); err != nil {
				t.Fatal(err)
			}
			if i%200 == 0 {
				<-f.js.PublishAsyncComplete()
			}
		}
		<-f.js.PublishAsyncComplete()
		for f.lastEvent("o") < signals+3 {
			time.Sleep(time.Second)
		}

		raw := make(chan string, 100)
		sub, err := f.nc.Subscribe(ns.Decide("order"), func(m *nats.Msg) { raw <- string(m.Data) })
		if err != nil {
			t.Fatal(err)
		}
		f.flush()
		f.api("resume", `{"workflowId":"o"}`)
		var task schemas.DecisionTask
		if err := schemas.Unmarshal([]byte(<-raw), &task); err != nil {
			t.Fatal(err)
		}
		if !task.More || len(task.Events) == 0 {
			t.Fatalf("%d events in the task, more: %v; want a page and more", len(task.Events), task.More)
		}
		events := task.Events
		for last := events[len(events)-1].ID; last < task.StartedID-1; last = events[len(events)-1].ID {
			var page schemas.HistoryResponse
			if err := schemas.Unmarshal(f.request(ns.API("history"), fmt.Sprintf(`{"workflowId":"o","run":"r1","after":%d}`, last)), &page); err != nil || page.Error != nil {
				t.Fatal(err, page.Error)
			}
			if len(page.Events) == 0 || page.Events[0].ID != last+1 {
				t.Fatalf("the page after event %d has %d events", last, len(page.Events))
			}
			events = append(events, page.Events...)
		}
		wantSignals(t, events, signals)
		if err := sub.Unsubscribe(); err != nil { // it has never answered: the next one is asked
			t.Fatal(err)
		}

		client, err := drover.Connect(t.Context(), &drover.Options{Conn: f.post.NATS(), Logger: f.log})
		if err != nil {
			t.Fatal(err)
		}
		deciders := client.Deciders(nil)
		deciders.Register("order", decider.Func(func(ctx context.Context, task *decider.Task) ([]schemas.Decision, error) {
			wantSignals(t, task.Events(), signals)
			return []schemas.Decision{decider.Complete("all")}, nil
		}))
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := deciders.Run(ctx); err != nil {
				t.Errorf("got %v", err)
			}
		})
		f.completes("o")
		cancel()
		wg.Wait()
	})
}

// A window of more than the server puts into one batch of direct gets (64 MiB) is read anew by the next owner.
func TestLargeWindowAfterATakeOver(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		const signals = 300 / fewer
		few := func(o *broker.Options) { o.SnapshotEvents = 20 } // what is not in the last snapshot must be read
		first := f.node("a", nil, few)
		f.start(startO)
		f.api("pause", `{"workflowId":"o"}`)
		note := string(large(250_000))
		for range signals {
			f.publish("drover.default.signal.o.s", note)
		}
		in := func() {
			for f.lastEvent("o") < signals+3 {
				time.Sleep(time.Second)
			}
		}
		in()
		first.stop()
		f.node("b", nil, few)
		in() // the first owner may not have committed all
		f.decider("order", func(*decisionTask) string { return complete })
		f.api("resume", `{"workflowId":"o"}`)
		f.completes("o")
		if n := len(f.recorded("o")); n != signals+7 {
			t.Fatalf("%d events, want %d", n, signals+7)
		}
	})
}

// wantSignals wants so many signals in order, each with its own number.
func wantSignals(t *testing.T, events []schemas.Event, want int) {
	t.Helper()
	next := 0
	for _, e := range events {
		if s, ok := e.Attributes.(*schemas.Signal); ok {
			if !strings.HasPrefix(string(s.Input), fmt.Sprintf(`"%d `, next)) {
				t.Errorf("signal %d is %.20s", next, s.Input)
				return
			}
			next++
		}
	}
	if next != want {
		t.Errorf("%d signals, want %d", next, want)
	}
}

// A decision that waits to be written takes effect before the next one is asked for, though what that is about waits with it.
func TestDecisionBeforeTheNextQuestion(t *testing.T) { // ADR 0020
	virtually(t, 1, func(t *testing.T, f *fleet) {
		var asked, completed atomic.Int32
		a := f.node("a", func(subj string, body []byte) cutwire.Verdict {
			return every("drover.default.history.0.o.", cutwire.Late)(subj, body)
		})
		a.wire.Delay(100 * time.Millisecond)
		f.decider("order", func(*decisionTask) string {
			switch asked.Add(1) {
			case 1:
				time.Sleep(50 * time.Millisecond) // meanwhile a signal comes, and is on its way to the history for longer
				return "[" + scheduleActivity("a", "") + "]"
			case 2:
				for _, r := range f.records(0) {
					for _, e := range r.Events {
						if e.Type() == schemas.EventDeciderCompleted {
							completed.Add(1)
						}
					}
				}
			}
			return "[]"
		})
		f.start(`{"workflowId":"o","type":"order","input":"` + strings.Repeat("x", 70<<10) + `"}`) // too large for the first question to hold it up
		for asked.Load() == 0 {
			time.Sleep(time.Millisecond)
		}
		f.publish("drover.default.signal.o.s", "")
		for asked.Load() < 2 {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Second)
		if n := completed.Load(); n != 1 {
			t.Errorf("%d decisions were in the history when the second was asked for, want the first", n)
		}
	})
}
