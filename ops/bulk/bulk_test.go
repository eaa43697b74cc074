package bulk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/drovertest"
	"github.com/droverhq/drover/internal/sample"
	"github.com/droverhq/drover/ops/bulk"
	"github.com/droverhq/drover/ops/query"
	"github.com/droverhq/drover/ops/retention"
	"github.com/droverhq/drover/ops/service"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

const (
	ns    = subject.Namespace("default")
	stays = "type = 'stay'"
)

// house is a whole Drover in virtual time, in which nodes live as the test says.
type house struct {
	*drovertest.Env
	t *testing.T
}

// stay waits for the signal go, and ends when it is asked to.
func stay(_ context.Context, task *decider.Task) ([]schemas.Decision, error) {
	for _, e := range task.Events() {
		switch a := e.Attributes.(type) {
		case *schemas.WorkflowCancelRequested:
			return []schemas.Decision{schemas.Decide(&schemas.CancelWorkflow{})}, nil
		case *schemas.Signal:
			if a.SignalName == "go" {
				return []schemas.Decision{schemas.Decide(&schemas.CompleteWorkflow{Result: a.Input})}, nil
			}
		}
	}
	return nil, nil
}

func fail(_ context.Context, _ *decider.Task) ([]schemas.Decision, error) {
	return []schemas.Decision{schemas.Decide(&schemas.FailWorkflow{Reason: "always"})}, nil
}

func live(t *testing.T, fn func(h *house)) {
	t.Helper()
	sample.OneOfEight(t)
	drovertest.Run(t, &drovertest.Options{Partitions: 1}, func(t *testing.T, e *drovertest.Env) {
		w := e.Client.Deciders(nil)
		w.Register("stay", decider.Func(stay))
		w.Register("fail", decider.Func(fail))
		w.Register("other", decider.Func(stay))
		e.Go(w)
		fn(&house{Env: e, t: t})
	})
}

// find asks the engine instead of an index.
func (h *house) find(ctx context.Context, text, filter string) iter.Seq2[ops.FoundRun, error] {
	return func(yield func(ops.FoundRun, error) bool) {
		q, err := query.Parse(text, time.Now())
		if err != nil {
			h.t.Errorf("%s: %v", text, err)
		}
		if strings.Contains(text, "wrong") {
			yield(ops.FoundRun{}, schemas.Errorf(schemas.CodeInvalid, "there is no field wrong"))
			return
		}
		for e, err := range h.Client.List(ctx, drover.ListOptions{TopLevel: strings.Contains(filter, "parent")}) {
			row := &query.Row{WorkflowID: e.WorkflowID, Run: e.Run, Type: e.Type, Status: e.Status, Started: e.StartedAt}
			if (err != nil || q.Matches(row)) && !yield(ops.FoundRun{ExecutionInfo: e}, err) {
				return
			}
		}
	}
}

// node lives until stop is called. before may cut what it does, as a crash would.
func (h *house) node(name string, before func(what string) error) (stop func()) {
	h.t.Helper()
	b, err := bulk.New(bulk.Options{Conn: natsconn.Of(h.Client), Namespace: ns, Node: name, RequireTypes: true, Find: h.find, Before: before})
	if err != nil {
		h.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(h.t.Context())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	time.Sleep(time.Second) // it listens by then
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			h.t.Error(err)
		}
	})
	h.t.Cleanup(stop)
	return stop
}

// janitor has the verb delete answered.
func (h *house) janitor() {
	h.t.Helper()
	j, err := retention.New(retention.Options{Conn: natsconn.Of(h.Client), Namespace: ns, Partitions: 1})
	if err != nil {
		h.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(h.t.Context())
	done := make(chan error, 1)
	go func() { done <- j.Run(ctx) }()
	h.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			h.t.Error(err)
		}
	})
}

// settle lets a run without retention go, after one that is the last in the history, in the inbox and among the signals, and so the
// witness of all three.
func (h *house) settle() {
	h.t.Helper()
	time.Sleep(2 * time.Minute)
	r, err := h.Client.Start(h.t.Context(), "other", nil, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	if err := r.Signal(h.t.Context(), "note", nil); err != nil {
		h.t.Fatal(err)
	}
	h.Await(r.ID, schemas.EventSignal)
	if err := r.Cancel(h.t.Context(), ""); err != nil {
		h.t.Fatal(err)
	}
	h.Wait(r)
	time.Sleep(5 * time.Minute)
}

func (h *house) begin(q ops.BulkRequest) *drover.Run {
	h.t.Helper()
	q.Job = "bulk-" + ulid.Make().String()
	a, err := h.ask(&q)
	if err != nil {
		h.t.Fatal(err)
	}
	return h.Client.Run(a.Job, a.Run)
}

func (h *house) ask(q *ops.BulkRequest) (*ops.BulkResponse, error) {
	a := &ops.BulkResponse{}
	if err := service.Ask(h.t.Context(), natsconn.Of(h.Client), ns, "bulk", 2*time.Second, q, a); err != nil {
		h.t.Fatal(err)
	}
	if a.Error != nil {
		return nil, a.Error
	}
	return a, nil
}

// ends waits for the end of a job.
func (h *house) ends(r *drover.Run, want schemas.Status) (s ops.BulkState) {
	h.t.Helper()
	o := h.Wait(r)
	body := o.Result
	if o.Status != schemas.StatusCompleted {
		body = o.Details
	}
	if err := json.Unmarshal(body, &s); err != nil || o.Status != want {
		h.t.Fatalf("the job is %s, %v: %s", o.Status, err, body)
	}
	return s
}

func (h *house) starts(n int) (all []*drover.Run) {
	h.t.Helper()
	for i := range n {
		r, err := h.Client.Start(h.t.Context(), "stay", nil, &drover.StartOptions{ID: fmt.Sprintf("s%03d", i)})
		if err != nil {
			h.t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

// events counts the events of a type in the history of a run.
func (h *house) events(r *drover.Run, typ schemas.EventType) (n int) {
	h.t.Helper()
	for e, err := range r.History(h.t.Context(), drover.HistoryOptions{}) {
		if err != nil {
			h.t.Fatal(err)
		}
		if e.Type() == typ {
			n++
		}
	}
	return n
}

// Every run that was there is acted on exactly once, although the worker loses its outcomes, its node goes, and the server crashes;
// what starts later is not.
func TestEachOnce(t *testing.T) {
	live(t, func(h *house) {
		all := h.starts(40)
		var frozen, cut, acts, heard atomic.Int32
		late := make(chan struct{})
		before := func(what string) error {
			switch {
			case what == "answer freeze" && frozen.Add(1) == 1:
				close(late)
				return errors.New("nobody hears it")
			case strings.HasPrefix(what, "answer ") && cut.Add(1) <= 2:
				return errors.New("nobody hears it")
			case strings.HasPrefix(what, "act "):
				acts.Add(1)
			case strings.HasPrefix(what, "hear ") && strings.HasSuffix(what, "5") && heard.Add(1)%2 == 1:
				return errors.New("nobody hears it")
			}
			return nil
		}
		stop := h.node("a", before)
		job := h.begin(ops.BulkRequest{Action: ops.BulkPause, Query: stays, Reason: "wait", Rate: 10})
		<-late
		later, err := h.Client.Start(h.t.Context(), "stay", nil, &drover.StartOptions{ID: "later"})
		if err != nil {
			h.t.Fatal(err)
		}
		time.Sleep(1500 * time.Millisecond)
		stop()
		h.node("b", before)
		time.Sleep(2 * time.Second)
		h.Crash(time.Second)
		s := h.ends(job, schemas.StatusCompleted)
		if s.Runs != 40 || s.Done != 40 || s.Left != 0 || s.Refused != 0 {
			h.t.Errorf("got %+v, want 40 done", s)
		}
		for _, r := range all {
			if n := h.events(r, schemas.EventWorkflowPaused); n != 1 {
				h.t.Errorf("%s: %d pauses, want one", r.ID, n)
			}
		}
		if n := h.events(later, schemas.EventWorkflowPaused); n != 0 {
			h.t.Errorf("the late one was paused")
		}
		if acts.Load() <= 40 {
			h.t.Errorf("%d acts: nothing was repeated", acts.Load())
		}
		time.Sleep(time.Minute)
		if keys, err := natsconn.Of(h.Client).KVKeys(h.t.Context(), ns.BucketSchedules()); err != nil || len(keys) > 0 {
			h.t.Errorf("got %q, %v, want that the record is gone", keys, err)
		}
	})
}

// Each action does what the command of its name does.
func TestActions(t *testing.T) {
	live(t, func(h *house) {
		h.node("a", nil)
		h.janitor()
		all := h.starts(4)
		act := func(q ops.BulkRequest, want ops.BulkState) {
			h.t.Helper()
			q.Query = stays
			s := h.ends(h.begin(q), schemas.StatusCompleted)
			if s.Done != want.Done || s.Nothing != want.Nothing || s.Refused != want.Refused || s.Left != 0 {
				h.t.Errorf("%s: got %+v, want %+v", q.Action, s, want)
			}
		}
		status := func(i int) schemas.Status {
			h.t.Helper()
			d, err := all[i].Describe(h.t.Context())
			if err != nil {
				h.t.Fatal(err)
			}
			return d.Execution.Status
		}
		act(ops.BulkRequest{Action: ops.BulkPause}, ops.BulkState{Done: 4})
		if got := status(0); got != schemas.StatusPaused {
			h.t.Errorf("got %s, want it paused", got)
		}
		act(ops.BulkRequest{Action: ops.BulkDelete}, ops.BulkState{Refused: 4})
		act(ops.BulkRequest{Action: ops.BulkResume}, ops.BulkState{Done: 4})
		act(ops.BulkRequest{Action: ops.BulkSignal, Name: "note", Input: schemas.Payload(`1`)}, ops.BulkState{Done: 4})
		for _, r := range all {
			h.Await(r.ID, schemas.EventSignal)
		}
		act(ops.BulkRequest{Action: ops.BulkReplay}, ops.BulkState{Refused: 4})
		if err := all[0].Terminate(h.t.Context(), nil); err != nil {
			h.t.Fatal(err)
		}
		act(ops.BulkRequest{Action: ops.BulkSignal, Name: "note"}, ops.BulkState{Done: 3, Nothing: 1})
		act(ops.BulkRequest{Action: ops.BulkCancel}, ops.BulkState{Done: 3, Nothing: 1})
		for i := range all[1:] {
			if o := h.Wait(all[i+1]); o.Status != schemas.StatusCanceled {
				h.t.Errorf("got %+v, want it canceled", o)
			}
		}
		act(ops.BulkRequest{Action: ops.BulkTerminate}, ops.BulkState{Nothing: 4})
		act(ops.BulkRequest{Action: ops.BulkDelete}, ops.BulkState{Refused: 4}) // too early
		h.settle()
		act(ops.BulkRequest{Action: ops.BulkDelete}, ops.BulkState{Done: 4})
		act(ops.BulkRequest{Action: ops.BulkDelete}, ops.BulkState{})
	})
}

// A run that the masters of this house do not delete, and replays that fail at once: the latest run of each id is replayed.
func TestReplays(t *testing.T) {
	live(t, func(h *house) {
		h.node("a", nil)
		for _, id := range []string{"a", "b"} {
			r, err := h.Client.Start(h.t.Context(), "fail", nil, &drover.StartOptions{ID: id})
			if err != nil {
				h.t.Fatal(err)
			}
			h.Wait(r)
		}
		replay := func(done, nothing int) {
			h.t.Helper()
			s := h.ends(h.begin(ops.BulkRequest{Action: ops.BulkReplay, Query: "type = 'fail'", From: "start"}), schemas.StatusCompleted)
			if s.Done != done || s.Nothing != nothing || s.Refused != 0 {
				h.t.Errorf("got %+v, want %d replayed and %d with nothing to do", s, done, nothing)
			}
			for _, id := range []string{"a", "b"} {
				h.Wait(h.Client.Run(id, ""))
			}
		}
		replay(2, 0)
		replay(2, 2)
	})
}

// A rate holds, a signal changes it, and a job that is canceled says how far it came.
func TestRateAndCancel(t *testing.T) {
	live(t, func(h *house) {
		h.node("a", nil)
		h.starts(60)
		began := time.Now()
		job := h.begin(ops.BulkRequest{Action: ops.BulkPause, Query: stays, Rate: 1})
		time.Sleep(22 * time.Second)
		s := h.state(job)
		if s.Done < 15 || s.Done > 22 || s.Left != 60-s.Done || s.Rate != 1 {
			h.t.Errorf("after 22 s: got %+v, want about 20 done", s)
		}
		if err := job.Signal(h.t.Context(), ops.SignalRate, 1000); err != nil {
			h.t.Fatal(err)
		}
		if s := h.ends(job, schemas.StatusCompleted); s.Done != 60 || s.Rate != 1000 {
			h.t.Errorf("got %+v, want all done", s)
		}
		if took := time.Since(began); took > 40*time.Second {
			h.t.Errorf("it took %s: the rate was not changed", took)
		}
		job = h.begin(ops.BulkRequest{Action: ops.BulkResume, Query: stays, Rate: 1})
		time.Sleep(12 * time.Second)
		if err := job.Cancel(h.t.Context(), "enough"); err != nil {
			h.t.Fatal(err)
		}
		if s := h.ends(job, schemas.StatusCanceled); s.Done < 5 || s.Done > 20 || s.Left != 60-s.Done {
			h.t.Errorf("got %+v, want about 15 done and the rest left", s)
		}
	})
}

func (h *house) state(job *drover.Run) (s ops.BulkState) {
	h.t.Helper()
	d, err := job.Describe(h.t.Context())
	if err == nil {
		err = json.Unmarshal(d.LatestContext, &s)
	}
	if err != nil {
		h.t.Fatal(err)
	}
	return s
}

// A job is begun by the verb only: a run of the type does nothing by itself. A repeat finds the job, another request of its name is
// refused, and so is what is wrong.
func TestBegin(t *testing.T) {
	live(t, func(h *house) {
		h.node("a", nil)
		h.starts(2)
		q := ops.BulkRequest{Job: "bulk-" + ulid.Make().String(), Action: ops.BulkPause, Query: stays}
		one, err := h.ask(&q)
		if err != nil {
			h.t.Fatal(err)
		}
		two, err := h.ask(&q)
		if err != nil || two.Run != one.Run {
			h.t.Errorf("got %+v, %v, want the run %s", two, err, one.Run)
		}
		forged, err := h.Client.Start(h.t.Context(), ops.TypeBulk, &q, nil)
		if err != nil {
			h.t.Fatal(err)
		}
		if o := h.Wait(forged); o.Status != schemas.StatusFailed || !strings.Contains(o.Reason, "no bulk job") {
			h.t.Errorf("got %+v, want that it fails", o)
		}
		other := q
		other.Action = ops.BulkTerminate
		if _, err := h.ask(&other); !errors.Is(err, &schemas.Error{Code: schemas.CodeAlreadyExists}) {
			h.t.Errorf("got %v, want that the name is taken", err)
		}
		h.ends(h.Client.Run(one.Job, one.Run), schemas.StatusCompleted)
		time.Sleep(time.Minute) // the record is gone
		if _, err := h.ask(&other); err == nil {
			h.t.Error("the id of a job that has ended was used again")
		}
		for field, change := range map[string]func(*ops.BulkRequest){
			"job": func(q *ops.BulkRequest) { q.Job = "bulk-x" }, "action": func(q *ops.BulkRequest) { q.Action = "burn" },
			"query": func(q *ops.BulkRequest) { q.Query = "typ = 'stay'" }, "rate": func(q *ops.BulkRequest) { q.Rate = -1 },
			"name": func(q *ops.BulkRequest) { q.Action, q.Name = ops.BulkSignal, "" }, "from": func(q *ops.BulkRequest) { q.From = "x" },
			"input":  func(q *ops.BulkRequest) { q.Action, q.Name, q.Input = ops.BulkSignal, "n", schemas.Payload("{") },
			"reason": func(q *ops.BulkRequest) { q.Reason = strings.Repeat("x", 2000) },
		} {
			bad := q
			change(&bad)
			_, err := h.ask(&bad)
			if e, ok := errors.AsType[*schemas.Error](err); !ok || e.Code != schemas.CodeInvalid || e.Field != field {
				h.t.Errorf("%s: got %v", field, err)
			}
		}
	})
}

// A job whose acts are answered by nobody is canceled as any other, and says how far it came.
func TestCancelUnanswered(t *testing.T) {
	live(t, func(h *house) {
		h.node("a", nil)
		h.starts(3)
		job := h.begin(ops.BulkRequest{Action: ops.BulkDelete, Query: stays}) // there is no master
		time.Sleep(2 * time.Minute)
		if err := job.Cancel(h.t.Context(), "enough"); err != nil {
			h.t.Fatal(err)
		}
		if s := h.ends(job, schemas.StatusCanceled); s.Left != 3 || s.Runs != 3 {
			h.t.Errorf("got %+v, want all left", s)
		}
	})
}

// Nothing to act on is no error, and a query that is wrong ends the job with what is wrong.
func TestNothingFound(t *testing.T) {
	live(t, func(h *house) {
		h.node("a", nil)
		if s := h.ends(h.begin(ops.BulkRequest{Action: ops.BulkPause, Query: stays}), schemas.StatusCompleted); s.Runs != 0 || !s.Found {
			h.t.Errorf("got %+v", s)
		}
		o := h.Wait(h.begin(ops.BulkRequest{Action: ops.BulkPause, Query: "type = 'wrong'"}))
		if o.Status != schemas.StatusFailed || !strings.Contains(o.Reason, "no field wrong") {
			h.t.Errorf("got %+v, want that the job fails", o)
		}
	})
}
