package decider_test

import (
	"bytes"
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/nearby"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/schemas"
)

// Who drains, has no room, or has no hands on its connection, takes no such task; its owner hears that at once.
func TestAheadTaskIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		full bool
		of   []string
		stop bool
	}{
		"no room":          {full: true, of: []string{"main", "charge"}},
		"a list of nobody": {of: []string{"other", "charge"}},
		"no activity type": {of: []string{"main"}},
		"while it drains":  {of: []string{"main", "charge"}, stop: true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, h *house) {
				w, first, r := h.both(nil, func(context.Context, *decider.Task) ([]schemas.Decision, error) {
					time.Sleep(5 * time.Second)
					return nil, nil
				})
				w.full.Store(c.full)
				if c.stop { // and has one decision left to make
					h.send(ns.Decide("order"), encoded(t, window(long(6, 6), 0)), "one")
					synctest.Wait()
					r.stop()
					synctest.Wait() // what comes while it unsubscribes, in one process with its server, is told to nobody
				}
				body := encoded(t, aheadTask(first))
				if err := h.broker.PublishReply(ns.DecideSticky("order", first.Sticky), "replies.ahead", natsconn.Header{schemas.AheadHeader: c.of}, body); err != nil {
					t.Fatal(err)
				}
				select {
				case m := <-h.replies:
					if !c.stop && string(m.Data) != "busy" || c.stop && string(m.Data) != "busy" && !m.NobodyListens() {
						t.Errorf("got answer %q", m.Data)
					}
				case <-time.After(time.Second):
					t.Error("the owner is not told")
				}
				if len(w.errands) != 0 {
					t.Error("the task was taken")
				}
			})
		})
	}
}

// An errand outlives the worker that took it: its outcome goes without a decision.
func TestDeciderDrainsAfterAnErrand(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		w, first, r := h.both(nil, func(context.Context, *decider.Task) ([]schemas.Decision, error) {
			t.Error("the decider was called")
			return nil, nil
		})
		h.sendAhead(aheadTask(first), first.Sticky)
		_, decide := w.take(t)
		r.stop()
		if err := r.wait(t); err != nil {
			t.Fatal(err)
		}
		if got := decide(success()); got != nil {
			t.Fatalf("got %+v of a worker that has ended", got)
		}
	})
}

// The decision is made in the context of the decider worker, not in that of the activity worker that happens to ask for it.
func TestContextOfADecisionAhead(t *testing.T) {
	type key struct{}
	inBubble(t, func(t *testing.T, h *house) {
		conn := h.dial()
		worker := decider.New(conn, nil)
		var got atomic.Value
		worker.Register("order", decider.Func(func(ctx context.Context, _ *decider.Task) ([]schemas.Decision, error) {
			got.Store(ctx.Value(key{}) == "the decider's")
			return nil, nil
		}))
		ctx, stop := context.WithCancel(context.WithValue(t.Context(), key{}, "the decider's"))
		done := make(chan error, 1)
		go func() { done <- worker.Run(ctx) }()
		h.announcement("order", 1)
		w := &hands{errands: make(chan nearby.Errand, 1)}
		defer nearby.On(conn).Register(nearby.List{Namespace: string(ns), Name: "main"}, w)()
		first := h.ask(window(long(3, 3), 0))
		h.sendAhead(aheadTask(first), first.Sticky)
		_, decide := w.take(t)
		if decide(success()) == nil {
			t.Fatal("no decision")
		}
		if got.Load() != true {
			t.Error("the decider has another context than its worker")
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// All slots are taken by other decisions: the outcome does not wait for one.
func TestNoSlotForADecisionAhead(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		let := make(chan struct{})
		w, first, _ := h.both(&decider.Options{Concurrency: 1}, func(_ context.Context, task *decider.Task) ([]schemas.Decision, error) {
			if task.StartedID() == 6 {
				<-let
			}
			return nil, nil
		})
		h.send(ns.Decide("order"), encoded(t, window(long(6, 6), 0)), "one")
		synctest.Wait()
		h.sendAhead(aheadTask(first), first.Sticky)
		_, decide := w.take(t)
		began := time.Now()
		if got := decide(success()); got != nil || time.Since(began) != 0 {
			t.Errorf("got %+v after %v, want nothing at once", got, time.Since(began))
		}
		close(let)
		h.receive().wantDecisions(t)
		synctest.Wait() // the slot is free after the answer
		h.sendAhead(aheadTask(first), first.Sticky)
		if _, decide = w.take(t); decide(success()) == nil {
			t.Error("no decision, though a slot is free")
		}
	})
}

// A worker that keeps no runs names no lists, and neither does one that drains.
func TestListsAreNamedByWhoKeepsRuns(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		_, first, _ := h.both(&decider.Options{StickyCache: -1}, nil)
		if first.Sticky != "" || len(first.Lists) != 0 {
			t.Errorf("got sticky %q and lists %v, want none", first.Sticky, first.Lists)
		}
	})
	inBubble(t, func(t *testing.T, h *house) {
		_, _, r := h.both(nil, func(context.Context, *decider.Task) ([]schemas.Decision, error) {
			time.Sleep(time.Second)
			return nil, nil
		})
		h.send(ns.Decide("order"), encoded(t, window(long(6, 6), 0)), "one")
		synctest.Wait()
		r.stop()
		if got := h.receive(); got.Sticky != "" || len(got.Lists) != 0 {
			t.Errorf("got sticky %q and lists %v of a worker that drains, want none", got.Sticky, got.Lists)
		}
	})
}

// The results that a worker assumes count for its cache, as if they had come with a task.
func TestAssumedResultsCount(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		result := bytes.Repeat([]byte("1"), 40_000)
		history := append(assumed(time.Hour), long(13, 13)[9:]...)
		s := h.serveHistory(history, 100)
		w, first, _ := h.both(&decider.Options{StickyBytes: 20_000}, func(ctx context.Context, task *decider.Task) ([]schemas.Decision, error) {
			ids(t, ctx, task)
			return nil, nil
		})
		h.sendAhead(aheadTask(first), first.Sticky)
		_, decide := w.take(t)
		r := success()
		r.Result = result
		second := &reply{body: decide(r).Reply}
		task := window(history, 9)
		task.Base = second.base(10)
		h.askSticky(task, first.Sticky)
		if n := s.count(); n != 1 {
			t.Errorf("%d pages were read, want one: the cache must not hold 40 kB where 20 are allowed", n)
		}
	})
}
