package main

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/schemas"
)

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
		if _, err := c.Conn().Subscribe(on.subject, "", func(natsconn.Msg) { on.n.Add(1) }); err != nil {
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
