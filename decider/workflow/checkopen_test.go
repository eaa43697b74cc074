package workflow_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/decider/workflow"
	"github.com/droverhq/drover/drovertest"
	"github.com/droverhq/drover/schemas"
)

// A worker that checks open runs first does not serve a type whose code does not agree with them,
// serves its other types, and says what differs.
func TestCheckOpen(t *testing.T) {
	old := func(ctx workflow.Context, s string) (string, error) {
		if _, err := workflow.Call(ctx, echo, s); err != nil {
			return "", err
		}
		return s, workflow.Sleep(ctx, time.Hour)
	}
	booked := func(ctx workflow.Context, s string) (string, error) {
		if _, err := workflow.Call(ctx, book, s); err != nil {
			return "", err
		}
		return old(ctx, s)
	}
	guarded := func(ctx workflow.Context, s string) (string, error) {
		if workflow.Changed(ctx, "book") {
			return booked(ctx, s)
		}
		return old(ctx, s)
	}
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		activities := e.Client.Activities(&activity.Options{Lists: []string{"default"}})
		same := func(_ context.Context, s string) (string, error) { return s, nil }
		activity.Implement(activities, echo, same)
		activity.Implement(activities, book, same)
		serve := func(fn func(workflow.Context, string) (string, error), o *drover.WorkerOptions) *drover.Worker {
			w := e.Client.Worker(o)
			workflow.Implement(w, any1, fn, nil)
			return w
		}
		stop := e.Go(activities, serve(old, nil))
		run, err := e.Client.Start(t.Context(), "any", "in", nil)
		if err != nil {
			t.Fatal(err)
		}
		e.Await(run.ID, schemas.EventTimerScheduled)
		stop()

		check := &drover.WorkerOptions{CheckOpen: 5}
		err = serve(booked, check).Run(t.Context())
		if !errors.Is(err, decider.ErrNonDeterministic) {
			t.Fatalf("a worker with nothing else to do ends with %v", err)
		}
		for _, part := range []string{`workflow "any" is not served`, run.RunID, "book#1", "echo#1", "checkopen_test.go:"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("it does not say %q: %v", part, err)
			}
		}

		both := serve(booked, check)
		workflow.Implement(both, child, func(_ workflow.Context, s string) (string, error) { return "child of " + s, nil }, nil)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- both.Run(ctx) }()
		other, err := e.Client.Start(t.Context(), "child", "me", nil)
		if err != nil {
			t.Fatal(err)
		}
		e.Result(other, nil)
		cancel()
		if err := <-ended; !errors.Is(err, decider.ErrNonDeterministic) {
			t.Errorf("a worker that serves another type ends with %v", err)
		}
		for _, h := range e.History(run.ID) {
			if h.Type() == schemas.EventDeciderFailed {
				t.Errorf("the worker has answered for the type: %v", h.Attributes)
			}
		}

		stop = e.Go(serve(booked, &drover.WorkerOptions{CheckOpen: 5, ServeDiffering: true}))
		e.Await(run.ID, schemas.EventDeciderFailed)
		stop()
		e.Go(activities, serve(guarded, check))
		var got string
		if e.Result(run, &got); got != "in" {
			t.Errorf("got %q", got)
		}
	})
}
