package ops_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/ops"
	"github.com/droverhq/drover/schemas"
)

const ns = subject.Namespace("default")

// engine is a broker with a decider that schedules one activity of list main and ends with it.
type engine struct {
	t    *testing.T
	s    *embedded.Server
	conn *natsconn.Conn
}

// background runs something until the bubble ends.
func background(t *testing.T, run func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func newEngine(t *testing.T, s *embedded.Server, o ...decider.ActivityOption) *engine {
	t.Helper()
	e := &engine{t: t, s: s, conn: embeddedtest.Connect(t, s)}
	held, err := claims.Open(e.conn, bucket, claims.Options{Node: "engine"})
	if err != nil {
		t.Fatal(err)
	}
	b, err := broker.New(func(ctx context.Context, name string) (*natsconn.Conn, error) {
		return natsconn.Dial(ctx, natsconn.Options{InProcess: s.Conn(), Name: name})
	}, broker.Options{Partitions: 1, Claims: held, Node: "engine"})
	if err != nil {
		t.Fatal(err)
	}
	background(t, b.Run)
	deciders := decider.New(e.conn, nil)
	deciders.Register("order", decider.Func(func(ctx context.Context, task *decider.Task) ([]schemas.Decision, error) {
		view, err := task.View(ctx)
		if err != nil {
			return nil, err
		}
		switch state, _, reason := view.Activity("a"); {
		case state == 0:
			return []schemas.Decision{decider.Schedule("a", "work", nil, append(o, decider.List("main"))...)}, nil
		case state == decider.ActivitySucceeded:
			return []schemas.Decision{decider.Complete("done")}, nil
		case state.Closed():
			return []schemas.Decision{decider.Fail(reason, nil)}, nil
		}
		return nil, nil
	}))
	background(t, deciders.Run)
	time.Sleep(time.Second)
	e.request("start", `{"workflowId":"o","type":"order","run":"r1"}`, nil)
	return e
}

func (e *engine) request(verb, body string, answer any) {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.t.Context(), time.Minute)
	defer cancel()
	m, err := e.conn.Request(ctx, ns.API(verb), nil, []byte(body))
	if err != nil {
		e.t.Fatal(err)
	}
	if answer != nil {
		if err := json.Unmarshal(m.Data, answer); err != nil {
			e.t.Fatalf("%s: %v in %s", verb, err, m.Data)
		}
	}
}

// history gives the types of the events of a kind.
func (e *engine) history() []schemas.Event {
	e.t.Helper()
	var h schemas.HistoryResponse
	e.request("history", `{"workflowId":"o"}`, &h)
	return h.Events
}

func (e *engine) types() (names []string) {
	for _, event := range e.history() {
		names = append(names, string(event.Type()))
	}
	return names
}

// worker starts an activity worker. What it is killed with is the wire.
func (e *engine) worker(identity string, work func(context.Context) (string, error)) *cutwire.Wire {
	e.t.Helper()
	wire := cutwire.New(e.s.Conn())
	conn := embeddedtest.Through(e.t, wire)
	w := activity.New(conn, &activity.Options{Lists: []string{"main"}, Identity: identity, Concurrency: 1, DrainTimeout: time.Second})
	activity.Register(w, "work", func(ctx context.Context, _ any) (string, error) { return work(ctx) })
	background(e.t, func(ctx context.Context) error {
		if err := w.Run(ctx); err != nil && !closed(wire.Killed()) {
			return err
		}
		return nil
	})
	return wire
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (e *engine) reverter() *ops.Reverter {
	e.t.Helper()
	r, err := ops.NewReverter(ops.ReverterOptions{Conn: e.conn, Namespace: ns})
	if err != nil {
		e.t.Fatal(err)
	}
	return r
}

func sweep(t *testing.T, r *ops.Reverter) (reverted, failed int) {
	t.Helper()
	reverted, failed, err := r.Revert(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return reverted, failed
}

func forever(ctx context.Context) (string, error) {
	<-ctx.Done()
	return "", ctx.Err()
}

// The only worker dies while its activity runs. The health task reverts the attempt, or lets the activity fail, without any
// other worker there.
func TestS3_12InterruptedActivities(t *testing.T) {
	t.Run("S3-05 an activity that may be repeated goes back to its list", func(t *testing.T) {
		bubble(t, func(t *testing.T, s *embedded.Server) {
			e := newEngine(t, s)
			wire := e.worker("first", forever)
			time.Sleep(time.Minute)
			wire.Kill()
			r := e.reverter()
			reverted := 0
			for range 6 { // 30 s: the lease ends after 10
				n, failed := sweep(t, r)
				if reverted += n; failed != 0 {
					t.Fatalf("%d activities failed", failed)
				}
				time.Sleep(5 * time.Second)
			}
			if reverted != 1 || !slices.Contains(e.types(), "ActivityInterrupted") {
				t.Fatalf("%d attempts were reverted, and the history is %v", reverted, e.types())
			}
			e.worker("second", func(context.Context) (string, error) { return "done", nil })
			time.Sleep(time.Second)
			want := []string{
				"WorkflowStarted", "DeciderScheduled", "DeciderStarted", "DeciderCompleted", "ActivityScheduled", "ActivityStarted",
				"ActivityInterrupted", "ActivityStarted", "ActivitySuccess", "DeciderScheduled", "DeciderStarted", "DeciderCompleted", "WorkflowSuccess",
			}
			if got := e.types(); !slices.Equal(got, want) {
				t.Errorf("got %v\nwant %v", got, want)
			}
		})
	})
	t.Run("S3-05 one that must not run twice fails", func(t *testing.T) {
		bubble(t, func(t *testing.T, s *embedded.Server) {
			e := newEngine(t, s, decider.NotIdempotent())
			wire := e.worker("first", forever)
			time.Sleep(time.Minute)
			wire.Kill()
			r := e.reverter()
			failed := 0
			for range 6 {
				_, n := sweep(t, r)
				failed += n
				time.Sleep(5 * time.Second)
			}
			h := e.history()
			last, _ := h[len(h)-1].Attributes.(*schemas.WorkflowFailed)
			if failed != 1 || last == nil || last.Reason != schemas.ReasonInterrupted {
				t.Fatalf("%d activities failed, and the history is %v", failed, e.types())
			}
		})
	})
	t.Run("S3-10 what a worker has is left to it", func(t *testing.T) {
		bubble(t, func(t *testing.T, s *embedded.Server) {
			e := newEngine(t, s)
			var runs atomic.Int32
			e.worker("busy", func(ctx context.Context) (string, error) {
				runs.Add(1)
				time.Sleep(5 * time.Minute)
				return "done", nil
			})
			for i := range 3 { // and a backlog after it
				e.request("start", fmt.Sprintf(`{"workflowId":"o%d","type":"order"}`, i), nil)
			}
			r := e.reverter()
			for range 20 {
				if reverted, failed := sweep(t, r); reverted+failed != 0 {
					t.Fatalf("%d attempts were reverted and %d failed, want none: their worker lives", reverted, failed)
				}
				time.Sleep(5 * time.Second)
			}
			time.Sleep(19 * time.Minute)
			if got := e.types(); got[len(got)-1] != "WorkflowSuccess" || slices.Contains(got, "ActivityInterrupted") {
				t.Errorf("got %v, want one attempt", got)
			}
			if n := runs.Load(); n != 4 {
				t.Errorf("4 activities have run %d times", n)
			}
		})
	})
}
