package decider_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/schemas"
)

func TestDrainLetsDecidesFinish(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		begun := make(chan struct{}, 10)
		r := h.run(&decider.Options{Concurrency: 1}, "order", func(ctx context.Context, _ *decider.Task) ([]schemas.Decision, error) {
			begun <- struct{}{}
			time.Sleep(5 * time.Second)
			return nil, ctx.Err()
		})
		for range 3 { // one runs, two wait
			h.send(ns.Decide("order"), encoded(t, first()), "one")
		}
		<-begun
		synctest.Wait()
		r.stop()
		time.Sleep(time.Second)
		if _, err := h.broker.Request(t.Context(), ns.Decide("order"), nil, encoded(t, first())); err == nil {
			t.Fatal("a draining worker took a task")
		}
		for range 3 {
			reply := h.receive()
			reply.wantDecisions(t)
			if reply.Sticky != "" {
				t.Fatal("a draining worker asked for the run's next task")
			}
		}
		if err := r.wait(t); err != nil {
			t.Fatalf("Run returned %v", err)
		}
	})
}

// Owners find out by the worker's own subject whether it is there. It must be until the last answer is sent.
func TestDrainingWorkerIsAliveUntilItsLastAnswer(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		alive := func(typ, name string) bool {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := h.broker.Request(ctx, ns.DecideAlive(typ, name), nil, nil)
			return !errors.Is(err, natsconn.ErrNoResponders) // nobody answers, but somebody may listen
		}
		r := h.run(&decider.Options{Concurrency: 1}, "order", func(ctx context.Context, d *decider.Task) ([]schemas.Decision, error) {
			if d.Attempt() > 1 {
				time.Sleep(5 * time.Second)
			}
			return nil, ctx.Err()
		})
		reply := h.ask(first())
		if !reply.Alive || reply.Sticky == "" || !alive("order", reply.Sticky) || alive("order", "another") || alive("other", reply.Sticky) {
			t.Fatalf("reply %+v; is it alive: %t", reply.DecisionReply, alive("order", reply.Sticky))
		}
		slow := first()
		slow.Attempt = 2
		h.send(ns.Decide("order"), encoded(t, slow), "one")
		synctest.Wait()
		r.stop()
		synctest.Wait()
		if _, err := h.broker.Request(t.Context(), ns.DecideSticky("order", reply.Sticky), nil, encoded(t, first())); !errors.Is(err, natsconn.ErrNoResponders) {
			t.Errorf("got %v, want that it takes no tasks", err)
		}
		if !alive("order", reply.Sticky) {
			t.Error("it is thought to be gone while it decides")
		}
		if last := h.receive(); last.Alive || last.Sticky != "" {
			t.Errorf("it says that it is there for longer: %+v", last.DecisionReply)
		}
		if err := r.wait(t); err != nil {
			t.Fatalf("Run returned %v", err)
		}
		synctest.Wait() // the server has heard of it
		if alive("order", reply.Sticky) {
			t.Error("it is thought to be there when it has stopped")
		}
		if got := h.farewells(); len(got) != 1 || got[0] != "order "+reply.Sticky {
			t.Errorf("it was said that %q have left, want it", got)
		}
	})
}

func TestDrainTimeoutCancelsWithACause(t *testing.T) {
	for name, c := range map[string]struct {
		drain  time.Duration
		within time.Duration
		ignore bool
	}{
		"obeyed":  {drain: 5 * time.Second, within: 5 * time.Second},
		"ignored": {drain: 5 * time.Second, within: 6 * time.Second, ignore: true},
		"at once": {drain: -1, within: 0},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, h *house) {
				var cause atomic.Value
				begun := make(chan struct{}, 10)
				o, seen := observed(decider.Options{Concurrency: 1, DrainTimeout: c.drain})
				r := h.run(o, "order", func(ctx context.Context, _ *decider.Task) ([]schemas.Decision, error) {
					begun <- struct{}{}
					<-ctx.Done()
					cause.Store(context.Cause(ctx))
					if c.ignore {
						time.Sleep(time.Hour)
					}
					return nil, ctx.Err()
				})
				for range 3 {
					h.send(ns.Decide("order"), encoded(t, first()), "one")
				}
				<-begun
				synctest.Wait()
				stopped := time.Now()
				r.stop()
				for range 3 {
					if reply := h.receive(); reply.Error == nil || reply.Error.Reason != decider.ErrStopped.Error() {
						t.Fatalf("got %s, want an error that says that the worker stopped", reply.body)
					}
				}
				err := r.wait(t)
				if took := time.Since(stopped).Truncate(time.Second); took != c.within || !errors.Is(err, decider.ErrDrainTimeout) {
					t.Fatalf("Run returned %v after %v, want ErrDrainTimeout after %v", err, took, c.within)
				}
				if !strings.Contains(err.Error(), "1 were running and 2 waiting") || strings.Contains(err.Error(), "ignore") != c.ignore {
					t.Fatalf("got %v", err)
				}
				wantOutcomes(t, seen, decider.OutcomeStopped, decider.OutcomeStopped, decider.OutcomeStopped)
				if got, _ := cause.Load().(error); !errors.Is(got, decider.ErrStopped) {
					t.Fatalf("the context ended with cause %v, want ErrStopped", got)
				}
				time.Sleep(2 * time.Hour) // the bubble ends with all its goroutines
			})
		})
	}
}

func TestIdleWorkerStopsWithoutError(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		for _, drain := range []time.Duration{-1, time.Nanosecond, time.Hour} {
			for range 5 {
				r := h.run(&decider.Options{DrainTimeout: drain}, "order", nothing)
				h.ask(first()).wantDecisions(t)
				synctest.Wait()
				r.stop()
				if err := r.wait(t); err != nil {
					t.Fatalf("drain %v: %v", drain, err)
				}
			}
		}
	})
}
