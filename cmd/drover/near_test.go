package main

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/post"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/schemas"
)

// A server hears of many alarms that are due in a moment before they are, so that it can make ready.
func TestServerHearsOfABurst(t *testing.T) {
	const sleepers = 300
	var heard atomic.Int64 // when, in Unix nanoseconds
	o := memoryServer()
	o.Partitions, o.Burst = 1, func() { heard.CompareAndSwap(0, time.Now().UnixNano()) }
	s := serving(t, o)
	c, err := drover.Connect(t.Context(), &drover.Options{URL: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	due := time.Now().Add(6 * time.Second)
	var awake atomic.Int64
	w := c.Deciders(nil)
	w.Register("nap", decider.Func(func(_ context.Context, task *decider.Task) ([]schemas.Decision, error) {
		if !slices.ContainsFunc(task.Events(), func(e schemas.Event) bool { return e.Type() == schemas.EventTimerExpired }) {
			return []schemas.Decision{decider.Timer("nap", time.Until(due))}, nil
		}
		if awake.Add(1) == 1 && heard.Load() == 0 {
			t.Error("the first sleeper is awake, and the server has heard of nothing")
		}
		return []schemas.Decision{decider.Complete("awake")}, nil
	}))
	working(t, c, w.Run)
	runs := make([]*drover.Run, sleepers)
	errs := make([]error, sleepers)
	var starts sync.WaitGroup
	for i := range runs {
		starts.Go(func() { runs[i], errs[i] = c.Start(t.Context(), "nap", nil, nil) })
	}
	starts.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if time.Until(due) < time.Second {
		t.Fatal("the sleepers were begun too late for this test")
	}
	for _, r := range runs {
		if err := r.Result(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	if early := due.Sub(time.Unix(0, heard.Load())); early < 0 || early > time.Second {
		t.Errorf("the server heard of it %v before the first was due, want some 300 ms", early)
	}
}

// In a server with all roles rings of timers take no way through NATS.
func TestRingsStayInTheProcess(t *testing.T) {
	s := serving(t, memoryServer())
	c, err := drover.Connect(t.Context(), &drover.Options{URL: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	var rings, messages atomic.Int64
	for _, on := range []struct {
		subject string
		n       *atomic.Int64
	}{{"drover.default.ring.*", &rings}, {"drover.default.>", &messages}} {
		if _, err := c.Conn().Subscribe(on.subject, "", func(post.Msg) { on.n.Add(1) }); err != nil {
			t.Fatal(err)
		}
	}
	w := c.Deciders(nil)
	w.Register("nap", decider.Func(func(_ context.Context, task *decider.Task) ([]schemas.Decision, error) {
		for _, e := range task.Events() {
			if e.Type() == schemas.EventTimerExpired {
				return []schemas.Decision{decider.Complete("awake")}, nil
			}
		}
		return []schemas.Decision{decider.Timer("nap", 50*time.Millisecond)}, nil
	}))
	working(t, c, w.Run)
	for range 10 {
		r, err := c.Start(t.Context(), "nap", nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		var got string
		if err := r.Result(t.Context(), &got); err != nil || got != "awake" {
			t.Fatalf("got %q, %v", got, err)
		}
	}
	if rings.Load() > 0 || messages.Load() == 0 {
		t.Errorf("got %d rings among %d messages, want none among some", rings.Load(), messages.Load())
	}
}
