package alwayson_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/ops/alwayson"
	"github.com/droverhq/drover/ops/retention"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// janitor purges what has closed, as soon as it may.
func (h *house) janitor() {
	h.t.Helper()
	j, err := retention.New(retention.Options{Conn: natsconn.Of(h.Client), Namespace: ns, Partitions: 1, Delay: -1})
	if err != nil {
		h.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(h.t.Context())
	var running sync.WaitGroup
	h.t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	running.Go(func() {
		if err := j.Run(ctx); err != nil {
			h.t.Error(err)
		}
	})
}

// gone waits until a run is purged.
func (h *house) gone(run string) {
	h.t.Helper()
	for end := time.Now().Add(time.Hour); ; time.Sleep(10 * time.Second) {
		left := false
		for _, x := range h.runs("w") {
			left = left || x.Run == run
		}
		if !left {
			return
		}
		if time.Now().After(end) {
			why, err := h.Client.Run("w", run).Retention(h.t.Context())
			h.t.Fatalf("run %s is not purged: %+v, %v", run, why, err)
		}
	}
}

// S2-3: a master that stood still before a start does not begin a run that another master began, and that was purged since.
func TestLateStartOfAPurgedRun(t *testing.T) {
	live(t, func(h *house) {
		h.janitor()
		var slow atomic.Bool
		woke := make(chan struct{})
		o := h.o
		o.Before = func(what string) error {
			if what == "start w" && slow.CompareAndSwap(false, true) {
				time.Sleep(20 * time.Minute)
				close(woke)
			}
			return nil
		}
		h.master(o)
		a := job("")
		a.Start.Input = schemas.Payload("vanish")
		h.add(a)
		h.until("it stands still", slow.Load)
		h.master(h.o)
		first := h.another("w")
		ends[schemas.StatusTerminated](h, first)
		h.another("w", first)
		h.do("alwaysStop", ops.AlwaysRequest{ID: "w"})
		h.until("it is down", func() bool { return h.open("w") == "" })
		h.gone(first)
		<-woke
		time.Sleep(5 * time.Minute)
		for _, x := range h.runs("w") {
			if x.Run == first || !x.Status.Closed() {
				t.Errorf("got %+v, want the first run to stay purged, and nothing open", x)
			}
		}
	})
}

// A run that ended, and was purged, while there was no master is followed by another, also with on-failure: how it ended nobody knows.
func TestPurgedWhileNobodyLooked(t *testing.T) {
	live(t, func(h *house) {
		h.janitor()
		m, err := alwayson.New(h.o)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(h.t.Context())
		defer cancel()
		ended := make(chan error, 1)
		go func() { ended <- m.Run(ctx) }()
		a := job(ops.RestartOnFailure)
		a.Start.Input = schemas.Payload("brief")
		h.add(a)
		first := h.another("w")
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		h.until("it has ended", func() bool { return h.open("w") == "" })
		if _, err := h.Client.Start(h.t.Context(), "job", nil, nil); err != nil { // the last record of a partition stays
			t.Fatal(err)
		}
		h.gone(first)
		h.master(h.o)
		h.another("w", first)
		if r := h.show("w"); r.Starts != 2 || r.Failures != 0 {
			t.Errorf("got %+v, want the second start", r)
		}
	})
}
