package decider_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/drovertest"
	"github.com/droverhq/drover/schemas"
)

// echo completes with its input once it may, and fails until then.
func echo(ready *atomic.Bool) decider.Func {
	return func(ctx context.Context, t *decider.Task) ([]schemas.Decision, error) {
		for e, err := range t.History(ctx) {
			if err != nil {
				return nil, err
			}
			if a, ok := e.Attributes.(*schemas.WorkflowStarted); ok {
				t.SetContext(schemas.Payload(`"seen"`))
				if !ready.Load() {
					return []schemas.Decision{decider.Fail("not yet", "")}, nil
				}
				input, err := t.Payload(ctx, a.Input)
				return []schemas.Decision{schemas.Decide(&schemas.CompleteWorkflow{Result: input})}, err
			}
		}
		return nil, errors.New("no start")
	}
}

// A run of a decider that keeps no replay points is replayed from the start only: the same input, however large, and the same options.
func TestReplayOfAPlainDecider(t *testing.T) {
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		var ready atomic.Bool
		w := e.Client.Deciders(nil)
		w.Register("echo", echo(&ready))
		stop := e.Go(w)
		for id, input := range map[string]string{"small": "hello", "large": strings.Repeat("large ", schemas.PayloadThreshold/4)} {
			ready.Store(false)
			old, err := e.Client.Start(t.Context(), "echo", input, &drover.StartOptions{
				ID: id, TypeVersion: "3", Timeout: 24 * time.Hour, Tags: []string{"red"}, Attributes: map[string]string{"a": "b"},
			})
			if err != nil {
				t.Fatal(err)
			}
			if out := e.Wait(old); out.Status != schemas.StatusFailed {
				t.Fatalf("%s: %s", id, out.Status)
			}
			for _, from := range []string{"", "last", "end", "3"} {
				_, err := old.Replay(t.Context(), &drover.ReplayOptions{From: from, DryRun: from == "last", Force: from == "end"})
				if !errors.Is(err, drover.ErrConflict) || !strings.Contains(err.Error(), "replayed from start only") || !strings.Contains(err.Error(), "--from start") {
					t.Errorf("%s, from %q: got %v, want a refusal that says from start only", id, from, err)
				}
			}
			ready.Store(true)
			a, err := old.Replay(t.Context(), &drover.ReplayOptions{From: "start", Reason: "ready"})
			if err != nil {
				t.Fatal(err)
			}
			var got string
			e.Result(a.Run, &got)
			if got != input || a.Plan == nil || a.Plan.From != "start" {
				t.Errorf("%s: got %d bytes, plan %+v, want the input", id, len(got), a.Plan)
			}
			before, after := startOf(t, old), startOf(t, a.Run)
			if string(before.Input) == string(after.Input) && id == "large" {
				t.Errorf("both runs name one object: %s", after.Input)
			}
			want := *before
			want.Run, want.RequestID, want.Input = after.Run, after.RequestID, after.Input
			want.Replays = &schemas.ReplayOf{Run: old.RunID, From: "start", Reason: "ready", Identity: after.Identity}
			want.StartMode = schemas.ModeReplay
			if diff := cmp.Diff(&want, after); diff != "" {
				t.Errorf("%s: the start of the new run (-want +got):\n%s", id, diff)
			}
		}
		stop()
		run := e.Client.Run("small", "")
		first, err := run.Replay(t.Context(), &drover.ReplayOptions{From: "start"})
		if !errors.Is(err, drover.ErrConflict) || !strings.Contains(err.Error(), "no decider for type \"echo\" is listening") {
			t.Errorf("without a decider: got %v, %v", first, err)
		}
		forced, err := run.Replay(t.Context(), &drover.ReplayOptions{From: "start", Force: true})
		if err != nil {
			t.Fatal(err)
		}
		e.Go(w)
		e.Wait(forced.Run)
	})
}

func startOf(t *testing.T, run *drover.Run) *schemas.WorkflowStarted {
	t.Helper()
	d, err := run.Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return &d.Started
}

// replayer answers questions as it is told.
type replayer struct {
	decider.Func
	answer func(*decider.Task, schemas.ReplayQuestion) (*schemas.ReplayAnswer, error)
}

func (r *replayer) Replay(_ context.Context, t *decider.Task, q schemas.ReplayQuestion) (*schemas.ReplayAnswer, error) {
	return r.answer(t, q)
}

// What a Replayer is asked, and what becomes of its answers; a panic or an error reaches whoever asked.
func TestReplayer(t *testing.T) {
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		var ready atomic.Bool
		r := &replayer{Func: echo(&ready)}
		w := e.Client.Deciders(nil)
		w.Register("echo", r)
		e.Go(w)
		old, err := e.Client.Start(t.Context(), "echo", "old", &drover.StartOptions{ID: "a"})
		if err != nil {
			t.Fatal(err)
		}
		e.Wait(old)
		ready.Store(true)
		for _, tc := range []struct {
			name, want string
			answer     func(*decider.Task, schemas.ReplayQuestion) (*schemas.ReplayAnswer, error)
		}{
			{"an error", "out of paper", func(*decider.Task, schemas.ReplayQuestion) (*schemas.ReplayAnswer, error) {
				return nil, errors.New("out of paper")
			}},
			{"a panic", "out of ink", func(*decider.Task, schemas.ReplayQuestion) (*schemas.ReplayAnswer, error) { panic("out of ink") }},
			{"an end of its goroutine", "Goexit", func(*decider.Task, schemas.ReplayQuestion) (*schemas.ReplayAnswer, error) {
				runtime.Goexit()
				return nil, nil
			}},
			{"nothing", "gave no answer", func(*decider.Task, schemas.ReplayQuestion) (*schemas.ReplayAnswer, error) { return nil, nil }},
			{"a refusal", "not on Sundays", func(*decider.Task, schemas.ReplayQuestion) (*schemas.ReplayAnswer, error) {
				return &schemas.ReplayAnswer{Refused: "not on Sundays", Hint: "wait a day"}, nil
			}},
		} {
			r.answer = tc.answer
			if _, err := old.Replay(t.Context(), nil); !errors.Is(err, drover.ErrConflict) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: got %v, want %q", tc.name, err, tc.want)
			}
		}
		r.answer = func(task *decider.Task, q schemas.ReplayQuestion) (*schemas.ReplayAnswer, error) {
			if string(task.Context()) != `"seen"` || task.Execution() != (schemas.Execution{WorkflowID: "a", Run: old.RunID}) || len(task.Events()) != 0 {
				t.Errorf("the task has the context %s, run %v and %d events", task.Context(), task.Execution(), len(task.Events()))
			}
			if q != (schemas.ReplayQuestion{From: "Chapter 3", Force: true}) {
				t.Errorf("the question is %+v", q)
			}
			return &schemas.ReplayAnswer{Input: schemas.Payload(`"new"`)}, nil
		}
		a, err := old.Replay(t.Context(), &drover.ReplayOptions{From: "Chapter 3", Force: true})
		if err != nil {
			t.Fatal(err)
		}
		var got string
		e.Result(a.Run, &got)
		if got != "new" {
			t.Errorf("got %q, want the input of the answer", got)
		}
	})
}
