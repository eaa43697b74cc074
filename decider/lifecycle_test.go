package decider_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/schemas"
)

// due sets when the broker stops waiting.
func due(task *schemas.DecisionTask, d time.Duration) *schemas.DecisionTask {
	task.Deadline = schemas.At(time.Now().Add(d))
	return task
}

// observed returns options whose observations come on a channel.
func observed(o decider.Options) (*decider.Options, chan decider.Observation) {
	seen := make(chan decider.Observation, 1000)
	o.Observer = func(o decider.Observation) { seen <- o }
	return &o, seen
}

func wantOutcomes(t *testing.T, seen chan decider.Observation, want ...decider.Outcome) {
	t.Helper()
	for i, w := range want {
		select {
		case got := <-seen:
			if got.Outcome != w {
				t.Fatalf("outcome %d is %v (%v), want %v", i, got.Outcome, got.Err, w)
			}
		case <-time.After(time.Minute):
			t.Fatalf("no outcome %d within a minute, want %v", i, w)
		}
	}
}

func TestDecideThatTakesTooLong(t *testing.T) {
	obeys := func(ctx context.Context, cause *atomic.Value) error {
		<-ctx.Done()
		cause.Store(context.Cause(ctx))
		return ctx.Err()
	}
	ignores := func(ctx context.Context, cause *atomic.Value) error {
		time.Sleep(time.Minute)
		cause.Store(context.Cause(ctx))
		return nil
	}
	for name, c := range map[string]struct {
		timeout, deadline time.Duration
		wait              func(context.Context, *atomic.Value) error
		cause             error
		outcome           decider.Outcome
		reply             time.Duration // 0: none
	}{
		"timeout, obeyed":            {2 * time.Second, 10 * time.Second, obeys, decider.ErrTimeout, decider.OutcomeTimedOut, 2 * time.Second},
		"timeout, ignored":           {2 * time.Second, 10 * time.Second, ignores, decider.ErrTimeout, decider.OutcomeTimedOut, 2 * time.Second},
		"timeout without deadline":   {2 * time.Second, 0, obeys, decider.ErrTimeout, decider.OutcomeTimedOut, 2 * time.Second},
		"deadline, obeyed":           {0, 10 * time.Second, obeys, decider.ErrDeadline, decider.OutcomeLate, 0},
		"deadline, ignored":          {0, 10 * time.Second, ignores, decider.ErrDeadline, decider.OutcomeLate, 0},
		"deadline before timeout":    {20 * time.Second, 10 * time.Second, obeys, decider.ErrDeadline, decider.OutcomeLate, 0},
		"deadline passed on arrival": {0, -time.Hour, nil, decider.ErrDeadline, decider.OutcomeLate, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, h *house) {
				var cause atomic.Value
				o, seen := observed(decider.Options{Timeout: c.timeout, Concurrency: 1})
				h.run(o, "order", func(ctx context.Context, task *decider.Task) ([]schemas.Decision, error) {
					if task.Attempt() == 2 {
						return nil, nil
					}
					return nil, c.wait(ctx, &cause)
				})
				began := time.Now()
				task := first()
				if c.deadline != 0 {
					due(task, c.deadline)
				}
				if c.deadline < 0 {
					task.Events[2].Time = 0 // nothing but the deadline tells the time
				}
				if c.reply > 0 {
					r := h.ask(task)
					if took := time.Since(began).Truncate(time.Millisecond); took != c.reply {
						t.Fatalf("the reply came after %v, want %v", took, c.reply)
					}
					if r.Error == nil || r.Error.Cause != schemas.CauseDeciderError || !strings.Contains(r.Error.Reason, "longer than Options.Timeout (2s)") {
						t.Fatalf("got %s", r.body)
					}
				} else {
					h.send(ns.Decide("order"), encoded(t, task), "one")
					h.silence(time.Hour)
				}
				wantOutcomes(t, seen, c.outcome)
				// The slot is free again once Decide has returned, and there is no second reply.
				next := first()
				next.Attempt = 2
				h.ask(next).wantDecisions(t)
				if got, _ := cause.Load().(error); c.wait != nil && !errors.Is(got, c.cause) {
					t.Fatalf("the context ended with cause %v, want %v", got, c.cause)
				}
			})
		})
	}
}

func encoded(t *testing.T, task *schemas.DecisionTask) []byte {
	t.Helper()
	body, err := schemas.MarshalJSON(task)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func TestConcurrencyIsLimitedAndTasksAreHeldBack(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		const limit, tasks = 3, 20
		var running, most atomic.Int32
		began := time.Now()
		o, seen := observed(decider.Options{Concurrency: limit})
		h.run(o, "order", func(context.Context, *decider.Task) ([]schemas.Decision, error) {
			n := running.Add(1)
			defer running.Add(-1)
			for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
			}
			time.Sleep(time.Second)
			return nil, nil
		})
		for range tasks {
			h.send(ns.Decide("order"), encoded(t, first()), "one")
		}
		for range tasks {
			h.receive().wantDecisions(t)
		}
		if got := most.Load(); got != limit {
			t.Fatalf("%d Decides ran at once, want %d", got, limit)
		}
		if took := time.Since(began).Truncate(time.Second); took != 7*time.Second {
			t.Fatalf("20 tasks of a second in 3 slots took %v, want 7s", took)
		}
		var waited time.Duration
		for range tasks {
			waited = max(waited, (<-seen).Waited)
		}
		if waited.Truncate(time.Second) != 6*time.Second {
			t.Fatalf("the last task waited %v, want 6s", waited)
		}
	})
}

func TestHeldBackTaskIsDroppedAfterItsDeadline(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		var calls atomic.Int32
		o, seen := observed(decider.Options{Concurrency: 1})
		h.run(o, "order", func(context.Context, *decider.Task) ([]schemas.Decision, error) {
			calls.Add(1)
			time.Sleep(8 * time.Second)
			return nil, nil
		})
		for range 3 {
			h.send(ns.Decide("order"), encoded(t, due(first(), 10*time.Second)), "one")
		}
		wantOutcomes(t, seen, decider.OutcomeDecided, decider.OutcomeLate, decider.OutcomeLate)
		if got := calls.Load(); got != 2 {
			t.Fatalf("Decide was called %d times; the third task was overdue before its turn", got)
		}
	})
}

func TestMoreTasksThanTheQueueHoldsBlockNobodyElse(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		const tasks = 1500 // the queue of one slot holds 1024
		release := make(chan struct{})
		conn := h.dial()
		w := decider.New(conn, &decider.Options{Concurrency: 1})
		w.Register("order", decider.Func(func(context.Context, *decider.Task) ([]schemas.Decision, error) {
			<-release
			return nil, nil
		}))
		h.runWorker(conn, w)
		body := encoded(t, first())
		for range tasks {
			h.send(ns.Decide("order"), body, "one")
		}
		synctest.Wait()
		if err := conn.Flush(t.Context()); err != nil {
			t.Fatalf("the connection stands still: %v", err)
		}
		close(release)
		for range tasks {
			h.receive().wantDecisions(t)
		}
	})
}

func TestAnnouncesOnceOnStart(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		h.run(nil, "order", nothing)
		time.Sleep(time.Hour)
		if got := h.announcements("order"); got != 1 {
			t.Fatalf("announced %d times, want once", got)
		}
	})
}

func TestListensBeforeItAnnounces(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		for range 20 {
			conn := h.dial()
			answered := make(chan error, 1)
			h.onAnnouncement("order", func() {
				_, err := h.broker.Request(t.Context(), ns.Decide("order"), nil, encoded(t, first()))
				answered <- err
			})
			w := decider.New(conn, nil)
			w.Register("order", decider.Func(nothing))
			r := h.runWorker(conn, w)
			if err := <-answered; err != nil {
				t.Fatalf("a task that was sent on the announcement: %v", err)
			}
			r.stop()
			if err := r.wait(t); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestAnnouncesAgainAfterReconnect(t *testing.T) {
	inReconnectingBubble(t, func(t *testing.T, h *house) {
		r := h.run(nil, "order", nothing)
		for n := 2; n < 5; n++ {
			if err := r.conn.NATS().ForceReconnect(); err != nil {
				t.Fatal(err)
			}
			h.announcement("order", n)
			time.Sleep(time.Second) // until then the server may hand a task to the connection that is gone
			h.ask(first()).wantDecisions(t)
		}
		r.stop()
		if err := r.wait(t); err != nil {
			t.Fatal(err)
		}
		if err := r.conn.NATS().ForceReconnect(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if got := h.announcements("order"); got != 4 {
			t.Fatalf("%d announcements, want 4: a worker that has stopped announced itself", got)
		}
	})
}

func TestReplyWaitsForTheConnection(t *testing.T) {
	inReconnectingBubble(t, func(t *testing.T, h *house) {
		g := &gate{provider: h.server.Conn()}
		conn := h.dialThrough(g)
		begun, release := make(chan struct{}), make(chan struct{})
		o, seen := observed(decider.Options{})
		w := decider.New(conn, o)
		w.Register("order", decider.Func(func(context.Context, *decider.Task) ([]schemas.Decision, error) {
			begun <- struct{}{}
			<-release
			return nil, nil
		}))
		h.runWorker(conn, w)
		for _, c := range []struct {
			down time.Duration
			want decider.Outcome
		}{
			{5 * time.Second, decider.OutcomeDecided},
			{15 * time.Second, decider.OutcomeUnsent}, // the broker has stopped waiting
		} {
			h.send(ns.Decide("order"), encoded(t, due(first(), 10*time.Second)), "one")
			<-begun
			g.shut.Store(true)
			if err := conn.NATS().ForceReconnect(); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			release <- struct{}{}
			time.Sleep(c.down)
			g.shut.Store(false)
			wantOutcomes(t, seen, c.want)
			if c.want == decider.OutcomeDecided {
				h.receive().wantDecisions(t)
			} else {
				h.silence(time.Minute)
			}
			time.Sleep(time.Minute)
		}
	})
}

func TestRunTwice(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		conn := h.dial()
		w := decider.New(conn, nil)
		w.Register("order", decider.Func(nothing))
		r := h.runWorker(conn, w)
		if err := w.Run(t.Context()); !errors.Is(err, decider.ErrRunning) {
			t.Fatalf("a second Run returned %v, want ErrRunning", err)
		}
		if got := recovered(func() { w.Register("late", decider.Func(nothing)) }); got == nil {
			t.Fatal("Register during Run did not panic")
		}
		before := h.ask(first()).Sticky
		r.stop()
		if err := r.wait(t); err != nil {
			t.Fatal(err)
		}
		h.runWorker(conn, w)
		if after := h.ask(first()).Sticky; after == "" || after == before {
			t.Fatalf("sticky name is %q, before it was %q: want a new one", after, before)
		}
	})
}

func TestRunOnAClosedConnection(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		conn := h.dial()
		w := decider.New(conn, nil)
		w.Register("order", decider.Func(nothing))
		conn.Close()
		if err := w.Run(t.Context()); err == nil || errors.Is(err, decider.ErrRunning) {
			t.Fatalf("got %v, want what the connection says", err)
		}
		if err := w.Run(t.Context()); err == nil || errors.Is(err, decider.ErrRunning) {
			t.Fatalf("got %v at the second try", err)
		}
	})
}

// So it is when the connection is closed later: a worker that goes on would wait for nothing, and look healthy.
func TestConnectionIsClosedBeneathAWorker(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		r := h.run(nil, "order", nothing)
		r.conn.Close()
		if err := r.wait(t); !errors.Is(err, natsconn.ErrClosed) {
			t.Fatalf("got %v, want ErrClosed", err)
		}
	})
}

// A worker that has stopped gets no more tasks, and leaves the next one to others.
func TestStartStopStress(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		h.run(nil, "order", nothing) // one stays
		var wg sync.WaitGroup
		for range 4 {
			conn := h.dial()
			wg.Go(func() {
				w := decider.New(conn, &decider.Options{Concurrency: 2})
				w.Register("order", decider.Func(nothing))
				for i := range 10 {
					ctx, cancel := context.WithCancel(t.Context())
					done := make(chan error, 1)
					go func() { done <- w.Run(ctx) }()
					time.Sleep(time.Duration(i) * time.Millisecond)
					cancel()
					if err := <-done; err != nil {
						t.Errorf("Run: %v", err)
					}
				}
			})
		}
		wg.Wait()
		for range 20 {
			h.ask(first()).wantDecisions(t)
		}
	})
}
