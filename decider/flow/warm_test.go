package flow

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/decider/internal/warm"
	"github.com/droverhq/drover/drovertest"
	"github.com/droverhq/drover/internal/sample"
	"github.com/droverhq/drover/schemas"
)

const naps = "steps:\n- let n = 0\n- {id: nap, step: 'let n = ${n} + 1'}\n- sleep 1m\n- {step: goto nap, condition: {target: '${n}', less-than: 20}}\n- return ${n}\n"

// A run is the same whether its state stays in memory or is read from the context.
func TestWarmRuns(t *testing.T) {
	sample.OneOfEight(t)
	for name, warm := range map[string]int{"warm": 0, "cold": -1} {
		t.Run(name, func(t *testing.T) {
			drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
				definition, err := Parse("naps", []byte(naps), nil)
				if err != nil {
					t.Fatal(err)
				}
				d := New(one{definition}, &Options{Warm: warm})
				w := e.Client.Deciders(nil)
				w.Register("naps", d)
				e.Go(w)
				run, err := e.Client.Start(t.Context(), "naps", nil, &drover.StartOptions{ID: "n"})
				if err != nil {
					t.Fatal(err)
				}
				begin := time.Now()
				e.Sleep(10*time.Minute + time.Second)
				if n := d.warm.Len(); (n == 1) != (warm == 0) {
					t.Errorf("%d runs are in memory between two decisions", n)
				}
				var got int
				e.Result(run, &got)
				if took := time.Since(begin).Round(time.Minute); got != 20 || took != 20*time.Minute {
					t.Errorf("got %d after %v, want 20 after 20m", got, took)
				}
				if n := d.warm.Len(); n != 0 {
					t.Errorf("%d runs are kept after their end", n)
				}
			})
		})
	}
}

func TestWarmRunsAreBounded(t *testing.T) {
	w := warm.New[warmRun](3, nil)
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		task, err := decider.NewTask(schemas.DecisionTask{WorkflowID: id, Run: "r", StartedID: 1, Events: []schemas.Event{{ID: 1, Attributes: &schemas.DeciderStarted{}}}})
		if err != nil {
			t.Fatal(err)
		}
		w.Keep(task, warmRun{})
		if _, ok := w.Take(task); ok {
			t.Errorf("%s: a task that proves nothing has found a run", id)
		}
		w.Keep(task, warmRun{})
	}
	if n := w.Len(); n != 3 {
		t.Errorf("%d runs are kept, want 3", n)
	}
}

// A worker that has stopped leaves no runs behind, and the next one keeps its own.
func TestWarmRunsGoWithTheirWorker(t *testing.T) {
	d := New(one{}, nil)
	task, err := decider.NewTask(schemas.DecisionTask{WorkflowID: "w", Run: "r", StartedID: 1, Events: []schemas.Event{{ID: 1, Attributes: &schemas.DeciderStarted{}}}})
	if err != nil {
		t.Fatal(err)
	}
	var stopper decider.Stopper = d
	stopper.Stop()
	for range 2 {
		d.warm.Keep(task, warmRun{})
		if n := d.warm.Len(); n != 1 {
			t.Errorf("%d runs are kept, want 1", n)
		}
		stopper.Stop()
		if n := d.warm.Len(); n != 0 {
			t.Errorf("%d runs are kept after the stop", n)
		}
	}
}

// nap serves a flow whose histories are soon full.
func nap(t *testing.T, e *drovertest.Env) {
	t.Helper()
	definition, err := Parse("naps", []byte(naps), nil)
	if err != nil {
		t.Fatal(err)
	}
	d := New(one{definition}, nil)
	d.full = func(t *decider.Task) bool { return t.StartedID() > 25 }
	w := e.Client.Deciders(nil)
	w.Register("naps", d)
	e.Go(w)
}

// A run that fills its history goes on in others under the same id, each with what the one before has left.
func TestContinuesOnTheBroker(t *testing.T) {
	sample.OneOfEight(t)
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		nap(t, e)
		run, err := e.Client.Start(t.Context(), "naps", nil, &drover.StartOptions{ID: "n"})
		if err != nil {
			t.Fatal(err)
		}
		var got int
		e.Result(run, &got)
		if got != 20 {
			t.Errorf("got %d, want 20", got)
		}
		h := e.History("n")
		if a, ok := h[0].Attributes.(*schemas.WorkflowStarted); !ok || a.ContinuedExecutionRun == "" || len(h) > 40 {
			t.Errorf("the last run has %d events and has not continued another", len(h))
		}
	})
}

// So does one whose type is deprecated meanwhile: what runs goes on.
func TestContinuesWithADeprecatedType(t *testing.T) {
	sample.OneOfEight(t)
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		nap(t, e)
		if _, err := e.Client.RegisterType(t.Context(), schemas.WorkflowKind, "naps", nil); err != nil {
			t.Fatal(err)
		}
		run, err := e.Client.Start(t.Context(), "naps", nil, &drover.StartOptions{ID: "n"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Client.DeprecateType(t.Context(), schemas.WorkflowKind, "naps", ""); err != nil {
			t.Fatal(err)
		}
		var got int
		e.Result(run, &got)
		h := e.History("n")
		if a, ok := h[0].Attributes.(*schemas.WorkflowStarted); !ok || a.ContinuedExecutionRun == "" || len(h) > 40 || got != 20 {
			t.Errorf("got %d, want 20, and the last run has %d events and should have continued another", got, len(h))
		}
	})
}

// Two decisions may have had the same DeciderStarted and other events before it, and the one that was not committed may have ended
// last. Only the other one's run goes on.
func TestWarmRunOfTheOtherDecision(t *testing.T) { // P-11
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		conn, ns := natsconn.Of(e.Client), subject.Namespace("default")
		w := warm.New[warmRun](3, nil)
		var late *decider.Task
		var found []bool
		worker := e.Client.Deciders(nil)
		worker.Register("played", decider.Func(func(_ context.Context, task *decider.Task) ([]schemas.Decision, error) {
			_, ok := w.Take(task)
			found = append(found, ok)
			w.Keep(task, warmRun{})
			if late != nil {
				w.Keep(late, warmRun{})
			}
			if late = nil; task.Token() == "early" {
				late = task
			}
			return nil, nil
		}))
		e.Go(worker)
		time.Sleep(time.Second) // until it listens
		var base *schemas.DecisionBase
		sticky := ""
		ask := func(previous, started int64, token string) (next *schemas.DecisionBase) {
			task := &schemas.DecisionTask{V: schemas.Version, WorkflowID: "w", Run: "r", Type: "played", Token: token, PreviousStartedID: previous, StartedID: started, Base: base}
			for id := previous + 1; id <= started; id++ {
				task.Events = append(task.Events, schemas.Event{ID: id, Attributes: &schemas.DeciderStarted{}})
			}
			body, err := schemas.Marshal(task)
			if err != nil {
				t.Fatal(err)
			}
			to := ns.Decide("played")
			if sticky != "" {
				to = ns.DecideSticky("played", sticky)
			}
			m, err := conn.Request(t.Context(), to, nil, body)
			if err != nil {
				t.Fatal(err)
			}
			var reply schemas.DecisionReply
			if err := schemas.Unmarshal(m.Data, &reply); err != nil || reply.Error != nil {
				t.Fatal(err, reply.Error)
			}
			sticky = reply.Sticky
			sum := sha256.Sum256(m.Data)
			return &schemas.DecisionBase{CompletedID: started + 1, Digest: hex.EncodeToString(sum[:8])}
		}
		base = ask(0, 3, "first")
		ask(3, 9, "early") // never committed; it ends after the next
		base = ask(3, 9, "asked again")
		base = ask(9, 12, "after it")
		ask(12, 15, "the last")
		if diff := cmp.Diff([]bool{false, true, false, false, true}, found); diff != "" {
			t.Errorf("runs that were found in memory (-want +got):\n%s", diff)
		}
	})
}
