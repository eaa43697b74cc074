package workflow_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/contract"
	"github.com/droverhq/drover/decider/workflow"
	"github.com/droverhq/drover/drovertest"
	"github.com/droverhq/drover/schemas"
)

var (
	nobody    = contract.Activity[string, string]("nobody")
	textEcho  = contract.Activity[string, int]("echo") // which returns text
	countEcho = contract.Activity[int, string]("echo") // which takes text
)

// What "drover why" says of a run whose programs do not fit to each other, and what ends the wait.
func TestWhyOfMistakes(t *testing.T) {
	var mended atomic.Bool
	var calls atomic.Int32
	for _, tc := range []struct {
		name string
		fn   func(workflow.Context) error
		says []string
		mend func(t *testing.T, e *drovertest.Env, run *drover.Run)
	}{
		{
			"an activity that nobody implements", func(ctx workflow.Context) error {
				_, err := workflow.Call(ctx, nobody, "x")
				return err
			},
			[]string{`no worker has taken activity "nobody#1" of type "nobody" from list "default"`, "may not know the type: see the log"},
			func(_ *testing.T, e *drovertest.Env, _ *drover.Run) {
				w := e.Client.Worker(nil)
				activity.Implement(w, nobody, func(context.Context, string) (string, error) { return "now", nil })
				e.Go(w)
			},
		},
		{
			"a result of another type", func(ctx workflow.Context) error {
				if !mended.Load() {
					_, err := workflow.Call(ctx, textEcho, "x")
					return err
				}
				_, err := workflow.Call(ctx, echo, "x")
				return err
			},
			[]string{"it is parked", "newcomer_test.go", "the result of echo#1", "string into Go value of type int", "then: drover resume"},
			func(t *testing.T, _ *drovertest.Env, run *drover.Run) {
				mended.Store(true)
				if err := run.Resume(t.Context(), "mended"); err != nil {
					t.Error(err)
				}
			},
		},
		{"an input of another type", func(ctx workflow.Context) error {
			_, err := workflow.Call(ctx, countEcho, 3, contract.Retry(schemas.RetryPolicy{MaximumInterval: schemas.Duration(time.Minute)}))
			return err
		}, []string{`activity "echo#1" failed with: bad-input:`, "number into Go value of type string"}, nil},
		{"other code each time", func(ctx workflow.Context) error {
			call := echo
			if calls.Add(1) > 1 {
				call = book
			}
			if _, err := workflow.Call(ctx, call, "x"); err != nil {
				return err
			}
			return workflow.Sleep(ctx, time.Hour)
		}, []string{"it is parked", "NON_DETERMINISTIC", "ScheduleActivity book#1", "ScheduleActivity echo#1", "If not:", "time.Now", "drover resume"}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			drovertest.Run(t, &drovertest.Options{Replays: -1, Seed: -1}, func(t *testing.T, e *drovertest.Env) {
				w := e.Client.Worker(nil)
				workflow.Implement(w, any1, func(ctx workflow.Context, _ string) (string, error) { return "", tc.fn(ctx) }, &workflow.Options{Kept: -1})
				implementAll(w, nil)
				e.Go(w)
				run, err := e.Client.Start(t.Context(), "any", "in", nil)
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(2 * time.Minute)
				why, err := run.Why(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for _, part := range tc.says {
					if !strings.Contains(why, part) {
						t.Errorf("%q does not say %q", why, part)
					}
				}
				if tc.mend == nil {
					if err := run.Terminate(t.Context(), nil); err != nil {
						t.Error(err)
					}
					return
				}
				tc.mend(t, e, run)
				if o := e.Wait(run); o.Status != schemas.StatusCompleted {
					t.Errorf("once it is mended: %s %s %s", o.Status, o.Reason, o.Details)
				}
			})
		})
	}
}

// A run that is started with something else than its workflow takes fails, and says so.
func TestStartOfAnotherType(t *testing.T) {
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		w := e.Client.Worker(nil)
		workflow.Implement(w, any1, func(workflow.Context, string) (string, error) { return "", nil }, nil)
		e.Go(w)
		run, err := e.Client.Start(t.Context(), "any", 7, nil)
		if err != nil {
			t.Fatal(err)
		}
		o := e.Wait(run)
		for _, part := range []string{`workflow \"any\"`, "input string", "number into Go value"} {
			if !strings.Contains(string(o.Details), part) || o.Status != schemas.StatusFailed {
				t.Errorf("%s %s does not say %q", o.Status, o.Details, part)
			}
		}
	})
}

// Two programs that name no list share one. Each gets its own activities.
func TestTwoProgramsOnOneList(t *testing.T) {
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		other := e.Client.Worker(nil)
		workflow.Implement(other, child, func(ctx workflow.Context, s string) (string, error) { return workflow.Call(ctx, nobody, s) }, nil)
		activity.Implement(other, nobody, func(_ context.Context, s string) (string, error) { return s + "?", nil })
		w := e.Client.Worker(nil)
		workflow.Implement(w, any1, func(ctx workflow.Context, s string) (string, error) { return workflow.Call(ctx, echo, s) }, nil)
		activity.Implement(w, echo, func(_ context.Context, s string) (string, error) { return s + "!", nil })
		e.Go(other, w)
		for range 5 {
			a, err := drover.Start(t.Context(), e.Client, any1, "x", nil)
			if err != nil {
				t.Fatal(err)
			}
			b, err := drover.Start(t.Context(), e.Client, child, "y", nil)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := a.Result(t.Context()); got != "x!" || err != nil {
				t.Errorf("got %q, %v", got, err)
			}
			if got, err := b.Result(t.Context()); got != "y?" || err != nil {
				t.Errorf("got %q, %v", got, err)
			}
		}
	})
}
