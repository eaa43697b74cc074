package workflow_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/contract"
	"github.com/droverhq/drover/decider/workflow"
	"github.com/droverhq/drover/drovertest"
	"github.com/droverhq/drover/schemas"
)

// idOf is the workflow id of a child that a test chooses.
func idOf(ctx workflow.Context) contract.Option {
	return contract.WorkflowID(ctx.Info().WorkflowID + "-other")
}

// refusal says why something was refused; empty if it was not.
func refusal(err error) string {
	if call, ok := errors.AsType[*workflow.CallError](err); ok && call.Outcome == workflow.Refused {
		return call.ID + " " + call.Reason
	}
	return ""
}

// A run is told what became of its messages to other workflows, and of the children that it begins.
func TestOtherWorkflows(t *testing.T) {
	howTheyEnd(t, []ending{
		{"signals that arrive", func(ctx workflow.Context, _ string) (string, error) {
			f, err := workflow.Begin(ctx, listen, "", idOf(ctx))
			if err != nil {
				return "", err
			}
			for _, s := range []string{"a", "b", "end"} {
				if err := workflow.Send(ctx, ctx.Info().WorkflowID+"-other", note, s); err != nil {
					return "", err
				}
			}
			return f.Get(ctx)
		}, nil, `completed "ab"`},
		{"several signals at once", func(ctx workflow.Context, _ string) (string, error) {
			f, err := workflow.Begin(ctx, listen, "", idOf(ctx))
			if err != nil {
				return "", err
			}
			_, err = workflow.Map(ctx, []string{"a", "a", "a"}, 0, func(ctx workflow.Context, s string) (int, error) {
				return 0, workflow.Send(ctx, ctx.Info().WorkflowID+"-other", note, s)
			})
			if err == nil {
				err = workflow.Send(ctx, ctx.Info().WorkflowID+"-other", note, "end")
			}
			if err != nil {
				return "", err
			}
			return f.Get(ctx)
		}, nil, `completed "aaa"`},
		{"a signal to nobody", func(ctx workflow.Context, _ string) (string, error) {
			return refusal(workflow.Send(ctx, "nobody", note, "x")), nil
		}, nil, `completed "send#1 UNKNOWN_EXTERNAL_WORKFLOW_EXECUTION"`},
		{"a signal to what is no id", func(ctx workflow.Context, _ string) (string, error) {
			return refusal(workflow.Send(ctx, "", note, "x")), nil
		}, nil, `completed "send#1 INVALID_ATTRIBUTES"`},
		{"a signal in a canceled scope", func(ctx workflow.Context, _ string) (string, error) {
			inner, cancel := workflow.WithCancel(ctx)
			f := workflow.Go(ctx, func(workflow.Context) (string, error) {
				return "", workflow.Send(inner, "nobody", note, "x")
			})
			workflow.Go(ctx, func(workflow.Context) (string, error) { cancel(); return "", nil })
			_, err := f.Get(ctx)
			late := workflow.Send(inner, "nobody", note, "x")
			return fmt.Sprint(errors.Is(err, workflow.ErrCanceled), errors.Is(late, workflow.ErrCanceled)), nil
		}, nil, `completed "true true"`},
		{"another one is canceled", func(ctx workflow.Context, _ string) (string, error) {
			f, err := workflow.Begin(ctx, listen, "", idOf(ctx))
			if err != nil {
				return "", err
			}
			if err := workflow.RequestCancel(ctx, ctx.Info().WorkflowID+"-other"); err != nil {
				return "", err
			}
			_, err = f.Get(ctx)
			return fmt.Sprint(errors.Is(err, workflow.ErrCanceled)), nil
		}, nil, `completed "true"`},
		{"nobody is canceled", func(ctx workflow.Context, _ string) (string, error) {
			return refusal(workflow.RequestCancel(ctx, "nobody")), nil
		}, nil, `completed "cancel#1 UNKNOWN_EXTERNAL_WORKFLOW_EXECUTION"`},
		{"a child that runs already", func(ctx workflow.Context, _ string) (string, error) {
			if _, err := workflow.Begin(ctx, listen, "", idOf(ctx)); err != nil {
				return "", err
			}
			_, again := workflow.Begin(ctx, listen, "", idOf(ctx))
			_, call := workflow.Call(ctx, listen, "", idOf(ctx))
			return refusal(again) + " " + refusal(call), nil
		}, nil, `completed "listen#2 WORKFLOW_ALREADY_RUNNING listen#3 WORKFLOW_ALREADY_RUNNING"`},
		{"two children of one id at once", func(ctx workflow.Context, _ string) (string, error) {
			both := []*workflow.Future[string]{
				workflow.Start(ctx, child, "a", idOf(ctx)), workflow.Start(ctx, child, "b", idOf(ctx)),
			}
			refused := 0
			for _, f := range both {
				if _, err := f.Get(ctx); refusal(err) != "" {
					refused++
				}
			}
			return fmt.Sprint(refused < 2), nil
		}, nil, `completed "true"`},
		{"time of a child", func(ctx workflow.Context, _ string) (string, error) {
			_, err := workflow.Call(ctx, child, "wait", contract.ExecutionStartToClose(time.Minute))
			call, _ := errors.AsType[*workflow.CallError](err)
			return fmt.Sprint(call.Outcome == workflow.TimedOut), nil
		}, nil, `completed "true"`},
		{"an abandoned activity", func(ctx workflow.Context, _ string) (string, error) {
			inner, cancel := workflow.WithCancel(ctx)
			f := workflow.Start(inner, slow, time.Hour, contract.Abandon())
			if err := workflow.Sleep(ctx, time.Minute); err != nil {
				return "", err
			}
			cancel()
			_, err := f.Get(ctx)
			return fmt.Sprint(f.Ready(), errors.Is(err, workflow.ErrCanceled)), nil
		}, nil, `completed "true true"`},
	})
}

// A run that ends cancels the children that it leaves open, unless they are abandoned. One that was
// asked for in its last decision alone does not even begin.
func TestChildrenOfARunThatEnds(t *testing.T) {
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		w := e.Client.Worker(nil)
		implementAll(w, nil)
		workflow.Implement(w, any1, func(ctx workflow.Context, in string) (string, error) {
			opts := []contract.Option{contract.WorkflowID("child of " + ctx.Info().WorkflowID)}
			if strings.Contains(in, "abandoned") {
				opts = append(opts, contract.Abandon())
			}
			if strings.Contains(in, "late") {
				workflow.Start(ctx, listen, in, opts...)
				return "", nil
			}
			_, err := workflow.Begin(ctx, listen, in, opts...)
			return "", err
		}, nil)
		e.Go(w)
		for _, tc := range []struct {
			in   string
			want schemas.Status
		}{
			{"left open", schemas.StatusCanceled},
			{"abandoned", schemas.StatusCompleted},
			{"late, abandoned", schemas.StatusCompleted},
			{"late", ""},
		} {
			run, err := drover.Start(t.Context(), e.Client, any1, tc.in, nil)
			if err != nil {
				t.Fatal(err)
			}
			e.Wait(run.Run)
			if tc.want == "" {
				for event, err := range run.History(t.Context(), drover.HistoryOptions{}) {
					if err != nil || event.Type() == schemas.EventChildScheduled {
						t.Fatalf("a child was begun in the last decision: %v", err)
					}
				}
				continue
			}
			kid := e.Client.Run("child of "+run.ID, "")
			e.Sleep(time.Minute) // until it has begun, and would have been canceled
			if tc.want == schemas.StatusCompleted {
				if err := kid.Signal(t.Context(), "note", "end"); err != nil {
					t.Fatal(err)
				}
			}
			if o := e.Wait(kid); o.Status != tc.want {
				t.Errorf("%s: the child is %s, want %s", tc.in, o.Status, tc.want)
			}
		}
	})
}
