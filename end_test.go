package drover_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/internal/virtual"
	"github.com/droverhq/drover/schemas"
)

// P-5: cancel and terminate carry the run id that was resolved before their first publish, and one request id for all tries. A
// run that the caller did not name may be followed by another of its chain meanwhile: that one is meant too.
func TestCancelAndTerminateNameTheRun(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		c, s := newService(t, drover.Options{Name: "op:1"})
		on(s, "describe", func(_ int, req schemas.ExecutionRequest) any {
			if req.WorkflowID == "nobody" {
				return schemas.DescribeResponse{Error: &schemas.Error{Code: schemas.CodeNotFound, Message: "there is none"}}
			}
			return schemas.DescribeResponse{Execution: schemas.ExecutionInfo{Run: "r7"}}
		})
		var got []schemas.ExecutionRequest
		for _, verb := range []string{"cancel", "terminate"} {
			on(s, verb, func(n int, req schemas.ExecutionRequest) any {
				got = append(got, req)
				if n == 1 {
					return nil // the answer is lost
				}
				return schemas.AckResponse{Run: req.Run}
			})
		}
		if err := c.Run("a", "").Cancel(t.Context(), "no longer wanted"); err != nil {
			t.Fatal(err)
		}
		if err := c.Run("a", "r6").Terminate(t.Context(), &drover.TerminateOptions{Reason: "stuck", Details: map[string]int{"n": 1}, ChildPolicy: schemas.ChildAbandon}); err != nil {
			t.Fatal(err)
		}
		if len(got) != 4 || got[0].RequestID == "" || got[0].RequestID == got[2].RequestID {
			t.Fatalf("got %+v", got)
		}
		cancel := schemas.ExecutionRequest{V: 1, WorkflowID: "a", Run: "r7", Chain: true, Reason: "no longer wanted", Identity: "op:1", RequestID: got[0].RequestID}
		end := schemas.ExecutionRequest{
			V: 1, WorkflowID: "a", Run: "r6", Reason: "stuck", Identity: "op:1", RequestID: got[2].RequestID,
			Details: schemas.Payload(`{"n":1}`), ChildPolicy: schemas.ChildAbandon,
		}
		if diff := cmp.Diff([]schemas.ExecutionRequest{cancel, cancel, end, end}, got); diff != "" {
			t.Fatal(diff)
		}
		if err := c.Run("a", "r6").Terminate(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if last := got[len(got)-1]; last.Reason != "" || last.Details != nil || last.ChildPolicy != "" {
			t.Fatalf("got %+v", last)
		}
		wantError(t, c.Run("a", "r6").Terminate(t.Context(), &drover.TerminateOptions{Details: func() {}}), drover.ErrInvalid)
		wantError(t, c.Run("", "").Cancel(t.Context(), ""), drover.ErrInvalid)
		err := c.Run("nobody", "").Cancel(t.Context(), "")
		wantError(t, err, drover.ErrNotFound)
		if e, ok := errors.AsType[*drover.Error](err); !ok || e.Op != "cancel" {
			t.Fatalf("got %v, want it to be told of what was asked", err)
		}
	})
}

func TestSignalWithStart(t *testing.T) {
	c, s := newService(t, drover.Options{Name: "shop:1"})
	var got schemas.StartRequest
	started := true
	on(s, "start", func(_ int, req schemas.StartRequest) any {
		got = req
		return schemas.StartResponse{WorkflowID: req.WorkflowID, Run: "r1", Started: started}
	})
	run, err := c.SignalWithStart(t.Context(), "cart", 1, "add", "apple", &drover.StartOptions{ID: "a", ReusePolicy: schemas.ReuseAllowFailed})
	if err != nil || run.ID != "a" || run.RunID != "r1" || !run.Started() {
		t.Fatalf("got %+v, %v", run, err)
	}
	want := schemas.StartRequest{
		V: 1, WorkflowID: "a", Run: got.Run, RequestID: got.Run, Type: "cart", Input: schemas.Payload("1"), Identity: "shop:1",
		IDReusePolicy: schemas.ReuseAllowFailed, IDConflictPolicy: schemas.ConflictUseExisting,
		Signal: &schemas.StartSignal{Name: "add", Input: schemas.Payload(`"apple"`), RequestID: got.Run},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
	started = false
	run, err = c.SignalWithStart(t.Context(), "cart", nil, "add", nil, &drover.StartOptions{ID: "a", ConflictPolicy: schemas.ConflictTerminateExisting})
	if err != nil || run.Started() || got.IDConflictPolicy != schemas.ConflictTerminateExisting {
		t.Fatalf("got %+v, %v", run, err)
	}
	run, err = c.Start(t.Context(), "cart", nil, &drover.StartOptions{ID: "a", ConflictPolicy: schemas.ConflictUseExisting})
	if err != nil || run.Started() || got.Signal != nil || got.IDConflictPolicy != schemas.ConflictUseExisting {
		t.Fatalf("got %+v, %v", run, err)
	}
	for name, call := range map[string]func() error{
		"no id": func() error { _, err := c.SignalWithStart(t.Context(), "cart", nil, "add", nil, nil); return err },
		"bad name": func() error {
			_, err := c.SignalWithStart(t.Context(), "cart", nil, "a\n", nil, &drover.StartOptions{ID: "a"})
			return err
		},
		"bad type": func() error {
			_, err := c.SignalWithStart(t.Context(), "", nil, "add", nil, &drover.StartOptions{ID: "a"})
			return err
		},
		"bad payload": func() error {
			_, err := c.SignalWithStart(t.Context(), "t", nil, "add", func() {}, &drover.StartOptions{ID: "a"})
			return err
		},
	} {
		if e := wantError(t, call(), drover.ErrInvalid); e.Op != "start" {
			t.Fatalf("%s: got %+v", name, e)
		}
	}
}

func TestCountAndTaskLists(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		c, s := newService(t, drover.Options{})
		on(s, "count", func(_ int, req schemas.CountRequest) any {
			if req.Tag != "red" || req.Parent != "p" || req.ClosedAfter != 5 || req.ClosedBefore != 9 || req.Status != schemas.StatusClosed {
				t.Errorf("got %+v", req)
			}
			time.Sleep(req.Wait.Std()) // as long as it may take
			return schemas.CountResponse{Count: 1 << 40, Truncated: true}
		})
		at := func(n int64) time.Time { return schemas.Timestamp(n).Time() }
		n, truncated, err := c.Count(t.Context(), drover.ListOptions{
			Tag: "red", Parent: "p", Status: schemas.StatusClosed, ClosedAfter: at(5), ClosedBefore: at(9),
		})
		if err != nil || n != 1<<40 || !truncated || len(s.requests("count")) != 1 {
			t.Fatalf("got %d, %v, %v by %d requests", n, truncated, err, len(s.requests("count")))
		}
		want := []schemas.TaskListInfo{{List: "a", Pending: 3}, {List: "b", Working: 1, Workers: 2, OldestAt: 7}}
		on(s, "lists", func(int, schemas.TaskListsRequest) any { return schemas.TaskListsResponse{Lists: want} })
		got, err := c.TaskLists(t.Context())
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Fatal(diff, err)
		}
	})
}

// The server does not answer a user without permission. No call waits for that.
func TestRefusedSubject(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		srv, _ := embeddedtest.Start(t, false, embeddedtest.User{Name: "viewer", Publish: []string{"drover.default.api.describe"}, Subscribe: []string{"_INBOX.>"}})
		conn := embeddedtest.As(t, srv, "viewer")
		c, err := drover.Connect(t.Context(), &drover.Options{Conn: conn.NATS()})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		for verb, call := range map[string]func() error{
			"start":  func() error { _, err := c.Start(t.Context(), "t", nil, nil); return err },
			"signal": func() error { return c.Run("a", "").Signal(t.Context(), "s", nil) },
			"cancel": func() error { return c.Run("a", "r").Cancel(t.Context(), "") },
			"result": func() error { return c.Run("a", "").Result(t.Context(), nil) },
			"history": func() (err error) {
				for _, err = range c.Run("a", "").History(t.Context(), drover.HistoryOptions{Follow: true}) {
				}
				return err
			},
			"list": func() (err error) {
				for _, err = range c.List(t.Context(), drover.ListOptions{}) {
				}
				return err
			},
			"lists": func() error { _, err := c.TaskLists(t.Context()); return err },
		} {
			e := wantError(t, call(), drover.ErrPermission)
			if want := `allow the NATS user to publish to "drover.default.api.` + verb + `", or connect as another user`; e.Hint != want || e.Op != verb {
				t.Fatalf("%s: got hint %q, want %q", e.Op, e.Hint, want)
			}
		}
		if took := time.Since(began); took > 0 {
			t.Fatalf("it took %v, want it at once", took)
		}
		_, err = c.Run("a", "").Describe(bounded(t, time.Second))
		wantError(t, err, drover.ErrUnavailable) // it may ask, and nobody is there
	})
}
