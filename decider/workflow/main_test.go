package workflow_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/contract"
	"github.com/droverhq/drover/decider/workflow"
	"github.com/droverhq/drover/drovertest"
)

var (
	echo     = contract.Activity[string, string]("echo")
	slow     = contract.Activity[time.Duration, string]("slow")
	book     = contract.Activity[string, string]("book")
	undo     = contract.Activity[string, string]("undo", contract.NoRetry())
	note     = contract.Signal[string]("note")
	soldOut  = contract.Fault[int]("sold-out")
	child    = contract.Workflow[string, string]("child")
	any1     = contract.Workflow[string, string]("any", note)
	errWorse = errors.New("worse")
)

// play runs a function as the workflow "any" until its end, beside workers of the activities above.
// while may do something while it runs.
func play(
	t *testing.T, fn func(workflow.Context, string) (string, error),
	while func(t *testing.T, e *drovertest.Env, run *drover.Run),
) (o *drover.Outcome) {
	t.Helper()
	return playWith(t, nil, fn, while)
}

// playWith is play with options.
func playWith(
	t *testing.T, opts *workflow.Options, fn func(workflow.Context, string) (string, error),
	while func(t *testing.T, e *drovertest.Env, run *drover.Run),
) (o *drover.Outcome) {
	t.Helper()
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		w := e.Client.Worker(nil)
		workflow.Implement(w, any1, fn, opts)
		implementAll(w, opts)
		e.Go(w)
		run, err := e.Client.Start(t.Context(), "any", "in", nil)
		if err != nil {
			t.Fatal(err)
		}
		if while != nil {
			while(t, e, run)
		}
		o = e.Wait(run)
	})
	return o
}

// implementAll implements the activities above and the child.
func implementAll(w *drover.Worker, opts *workflow.Options) {
	workflow.Implement(w, child, func(ctx workflow.Context, s string) (string, error) {
		if s == "wait" {
			err := workflow.Sleep(ctx, time.Hour)
			return "", err
		}
		return "child of " + s, nil
	}, opts)
	activity.Implement(w, echo, func(_ context.Context, s string) (string, error) { return s + "!", nil })
	activity.Implement(w, slow, func(ctx context.Context, d time.Duration) (string, error) {
		select {
		case <-time.After(d):
			return "done", nil
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	})
	tries := 0
	activity.Implement(w, book, func(_ context.Context, s string) (string, error) {
		switch s {
		case "sold-out":
			return "", soldOut.With(3)
		case "flaky":
			if tries++; tries < 3 {
				return "", errWorse
			}
		}
		return s, nil
	})
	activity.Implement(w, undo, func(_ context.Context, s string) (string, error) {
		if s == "fails" {
			return "", errWorse
		}
		return "undone " + s, nil
	})
}
