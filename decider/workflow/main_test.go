package workflow_test

import (
	"context"
	"errors"
	"fmt"
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
	echo     = contract.Activity[string, string]("echo")
	slow     = contract.Activity[time.Duration, string]("slow")
	book     = contract.Activity[string, string]("book")
	undo     = contract.Activity[string, string]("undo", contract.NoRetry())
	note     = contract.Signal[string]("note")
	soldOut  = contract.Fault[int]("sold-out")
	child    = contract.Workflow[string, string]("child")
	listen   = contract.Workflow[string, string]("listen", note)
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

// ending is a function and how its run ends.
type ending struct {
	name  string
	fn    func(workflow.Context, string) (string, error)
	while func(t *testing.T, e *drovertest.Env, run *drover.Run)
	want  string // status, then result or reason
}

// howTheyEnd runs each function, beside workers of the activities above, with runs that are kept in
// memory and with none: these are rebuilt for each decision.
func howTheyEnd(t *testing.T, cases []ending) {
	t.Helper()
	for _, kept := range []int{0, -1} {
		drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
			w := e.Client.Worker(nil)
			implementAll(w, &workflow.Options{Kept: kept})
			for _, tc := range cases {
				workflow.Implement(w, contract.Workflow[string, string]("case "+tc.name, note), tc.fn, &workflow.Options{Kept: kept})
			}
			e.Go(w)
			for _, tc := range cases {
				run, err := e.Client.Start(t.Context(), "case "+tc.name, "in", nil)
				if err != nil {
					t.Fatal(err)
				}
				if tc.while != nil {
					tc.while(t, e, run)
				}
				o := e.Wait(run)
				text := o.Reason
				if o.Status == schemas.StatusCompleted {
					text = string(o.Result)
				}
				if got := fmt.Sprint(o.Status, " ", text); got != tc.want {
					t.Errorf("%s, with %d kept: got %s (%s), want %s", tc.name, kept, got, o.Details, tc.want)
				}
			}
		})
	}
}

// implementAll implements the activities above, the child, and listen: that puts its notes one after
// the other until one says end.
func implementAll(w *drover.Worker, opts *workflow.Options) {
	workflow.Implement(w, child, func(ctx workflow.Context, s string) (string, error) {
		if s == "wait" {
			err := workflow.Sleep(ctx, time.Hour)
			return "", err
		}
		return "child of " + s, nil
	}, opts)
	workflow.Implement(w, listen, func(ctx workflow.Context, text string) (string, error) {
		notes := workflow.Signals(ctx, note)
		for {
			s, err := notes.Receive(ctx)
			if err != nil || s == "end" {
				return text, err
			}
			text += s
		}
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
