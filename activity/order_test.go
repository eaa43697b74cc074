package activity_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/schemas"
	"github.com/sirupsen/logrus"
)

// order asks the rig's workers to drain and returns the answer.
func (r *rig) order(c schemas.Control) *schemas.ControlAnswer {
	r.t.Helper()
	c.V, c.Kind = schemas.Version, schemas.ControlDrain
	body, err := json.Marshal(c)
	if err != nil {
		r.t.Fatal(err)
	}
	m, err := r.conn.Request(r.t.Context(), ns.Control("worker-1"), nil, body)
	if err != nil {
		r.t.Fatal(err)
	}
	a := &schemas.ControlAnswer{}
	if err := schemas.Unmarshal(m.Data, a); err != nil {
		r.t.Fatal(err)
	}
	return a
}

// A worker that is told to drain takes no more, ends what runs, reports it and leaves.
func TestS2_01WorkerToldToDrain(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		w := r.worker()
		activity.Register(w, "work", ignoreIn(func(ctx context.Context) (string, error) {
			time.Sleep(20 * time.Second)
			return "done", ctx.Err()
		}))
		ended := make(chan error, 1)
		go func() { ended <- w.Run(t.Context()) }()
		r.dispatch()
		r.next(schemas.ReportStarted)
		answered := make(chan struct{})
		r.logger.AddHook(hook(func(e *logrus.Entry) {
			if e.Message != "the worker was told to drain" {
				return
			}
			select {
			case <-answered:
			case <-time.After(time.Second):
				t.Error("the drain begins before it is answered: the connection may be gone by then")
			}
		}))
		for i := range 2 {
			if i == 1 {
				close(answered)
			}
			if a := r.order(schemas.Control{Reason: "maintenance"}); a.Error != nil || a.Node != "worker-1" || a.Status != schemas.NodeDraining {
				t.Fatalf("got %+v, want that worker-1 drains", a)
			}
		}
		time.Sleep(time.Second)
		r.dispatch(func(t *schemas.ActivityTask) { t.Token = "RUN.7.1" })
		r.next(schemas.ReportSuccess)
		if err := <-ended; err != nil {
			t.Fatalf("got %v, want a clean end", err)
		}
		r.remain("PCI", 1) // the one that came later
		told := 0
		for _, e := range r.log.AllEntries() {
			if e.Message == "the worker was told to drain" {
				told++
			}
		}
		if told != 1 {
			t.Fatalf("the log says %d times that it was told, want once", told)
		}
	})
}

// The order's limit holds instead of the worker's own; what has not ended by then is handed back.
func TestS2_01WorkerToldToDrainWithin(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		w := r.worker()
		activity.Register(w, "work", ignoreIn(func(ctx context.Context) (string, error) {
			<-ctx.Done()
			return "", context.Cause(ctx)
		}))
		ended := make(chan error, 1)
		go func() { ended <- w.Run(t.Context()) }()
		r.dispatch()
		r.next(schemas.ReportStarted)
		if a := r.order(schemas.Control{Timeout: -1}); a.Error == nil || a.Error.Field != "timeout" {
			t.Fatalf("got %+v, want a refusal that names the timeout", a)
		}
		began := time.Now()
		r.order(schemas.Control{Timeout: schemas.Seconds(3)})
		if err := <-ended; !errors.Is(err, activity.ErrDrainTimeout) {
			t.Fatalf("got %v, want ErrDrainTimeout", err)
		}
		if took := time.Since(began).Round(time.Second); took != 3*time.Second {
			t.Fatalf("it took %v, want 3 s", took)
		}
		r.remain("PCI", 1)
	})
}

// A worker that drains anyway answers who tells it to, and hears what else it is told.
func TestWorkerThatDrainsIsToldTo(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		w := r.worker()
		activity.Register(w, "work", ignoreIn(func(ctx context.Context) (string, error) {
			<-ctx.Done()
			return "", context.Cause(ctx)
		}))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		r.dispatch()
		r.next(schemas.ReportStarted)
		cancel()
		time.Sleep(time.Second)
		for range 2 {
			if a := r.order(schemas.Control{}); a.Error != nil || a.Status != schemas.NodeDraining {
				t.Fatalf("got %+v, want that it drains", a)
			}
		}
		r.tell(schemas.Control{V: schemas.Version, Kind: schemas.ControlCancel, Token: "RUN.5.1"})
		r.next(schemas.ReportCanceled)
		if err := <-ended; err != nil {
			t.Fatalf("got %v, want a clean end", err)
		}
	})
}
