package workflow_test

// The code of docs/guides/sagas-and-cancellation.md that is in no example.

import (
	"context"
	"errors"
	"strings"
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
	Offer       = contract.Activity[string, string]("offer")
	Reserve     = contract.Activity[string, struct{}]("reserve")
	Free        = contract.Activity[string, struct{}]("free")
	Alarm       = contract.Activity[string, struct{}]("alarm")
	TooLate     = contract.Fault[struct{}]("too-late")
	Quote       = contract.Workflow[string, string]("quote")
	Stage       = contract.Workflow[string, string]("stage")
	ErrNoActors = errors.New("no actors")
)

// quote gets an offer, or the list price if there is none within a minute.
func quote(ctx workflow.Context, what string) (string, error) {
	inner, cancel := workflow.WithTimeout(ctx, time.Minute)
	defer cancel() // takes the timer back
	offer, err := workflow.Call(inner, Offer, what)
	if errors.Is(err, workflow.ErrTimeout) {
		return "list price", nil
	}
	return offer, err
}

// stage reserves what a play needs. Somebody is called if it cannot be freed again.
func stage(ctx workflow.Context, play string) (_ string, err error) {
	saga := workflow.NewSaga(ctx)
	defer func() {
		if err == nil {
			return
		}
		if failed := saga.Undo(); failed != nil {
			_, alarm := workflow.Call(workflow.WithoutCancel(ctx), Alarm, failed.Error())
			err = errors.Join(err, alarm)
		}
	}()
	for _, what := range []string{"hall", "lights"} {
		saga.Add(func(ctx workflow.Context) error {
			_, err := workflow.Call(ctx, Free, what)
			return err
		})
		if _, err := workflow.Call(ctx, Reserve, what); err != nil {
			return "", err
		}
	}
	return "", ErrNoActors
}

func TestGuide(t *testing.T) {
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		w := e.Client.Worker(nil)
		workflow.Implement(w, Quote, quote, nil)
		workflow.Implement(w, Stage, stage, nil)
		activity.Implement(w, Offer, func(ctx context.Context, what string) (string, error) {
			if what == "quick" {
				return "cheap", nil
			}
			<-ctx.Done()
			return "", context.Cause(ctx)
		})
		activity.Implement(w, Reserve, func(context.Context, string) (r struct{}, err error) { return r, nil })
		freed, alarms := "", ""
		activity.Implement(w, Free, func(_ context.Context, what string) (r struct{}, err error) {
			if what == "lights" {
				return r, TooLate
			}
			freed += what
			return r, nil
		})
		activity.Implement(w, Alarm, func(_ context.Context, text string) (r struct{}, err error) {
			alarms += text
			return r, nil
		})
		e.Go(w)
		for what, want := range map[string]string{"quick": "cheap", "slow": "list price"} {
			run, err := drover.Start(t.Context(), e.Client, Quote, what, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := run.Result(t.Context()); got != want || err != nil {
				t.Errorf("%s: got %q, %v; want %q", what, got, err, want)
			}
		}
		run, err := drover.Start(t.Context(), e.Client, Stage, "Hamlet", nil)
		if err != nil {
			t.Fatal(err)
		}
		o := e.Wait(run.Run)
		if o.Status != schemas.StatusFailed || !strings.Contains(string(o.Details), "no actors") {
			t.Errorf("the play is %s: %s", o.Status, o.Details)
		}
		if freed != "hall" || !strings.Contains(alarms, "too-late") {
			t.Errorf("freed %q, and the alarm says %q", freed, alarms)
		}
	})
}

// What fails in undoing does not change how a run ends, and stands in its details. A run that goes on
// in a new one undoes nothing.
func TestSagaThatCannotUndo(t *testing.T) {
	fails := func(ctx workflow.Context) *workflow.Saga {
		saga := workflow.NewSaga(ctx)
		saga.Add(func(workflow.Context) error { return soldOut.With(1) })
		return saga
	}
	says := func(t *testing.T, e *drovertest.Env, run *drover.Run) {
		if o := e.Wait(run); !strings.Contains(string(o.Details), "undo: sold-out") {
			t.Errorf("the details of the run are %s", o.Details)
		}
	}
	howTheyEnd(t, []ending{
		{"after an error", func(ctx workflow.Context, _ string) (_ string, err error) {
			defer fails(ctx).UndoOn(&err)
			return "", errWorse
		}, says, "failed failed"},
		{"after a cancellation", func(ctx workflow.Context, _ string) (_ string, err error) {
			defer fails(ctx).UndoOn(&err)
			return "", workflow.Sleep(ctx, time.Hour)
		}, func(t *testing.T, e *drovertest.Env, run *drover.Run) {
			if err := run.Cancel(t.Context(), "enough"); err != nil {
				t.Fatal(err)
			}
			says(t, e, run)
		}, "canceled canceled"},
		{"no end", func(ctx workflow.Context, in string) (_ string, err error) {
			saga := workflow.NewSaga(ctx)
			defer saga.UndoOn(&err)
			saga.Add(func(workflow.Context) error {
				t.Error("a run that goes on is undone")
				return nil
			})
			if in == "in" {
				return workflow.ContinueAsNew(ctx, any1, "again")
			}
			return in, nil
		}, nil, `completed "again"`},
	})
}
