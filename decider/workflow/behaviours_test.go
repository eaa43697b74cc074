package workflow_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/contract"
	"github.com/droverhq/drover/decider/workflow"
	"github.com/droverhq/drover/drovertest"
	"github.com/droverhq/drover/schemas"
)

// scheduled are the ids of the activities of a run, in the order of its history.
func scheduled(t *testing.T, run *drover.Run) (ids []string) {
	t.Helper()
	for event, err := range run.History(t.Context(), drover.HistoryOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		if a, ok := event.Attributes.(*schemas.ActivityScheduled); ok {
			ids = append(ids, a.ActivityID)
		}
	}
	return ids
}

func cancelOnce(typ schemas.EventType) func(*testing.T, *drovertest.Env, *drover.Run) {
	return func(t *testing.T, e *drovertest.Env, run *drover.Run) {
		e.Await(run.ID, typ)
		if err := run.Cancel(t.Context(), "enough"); err != nil {
			t.Fatal(err)
		}
	}
}

// canceled says whether errors tell of a cancellation.
func canceled(errs ...error) string {
	var all []string
	for _, err := range errs {
		all = append(all, fmt.Sprint(errors.Is(err, workflow.ErrCanceled)))
	}
	return strings.Join(all, " ")
}

// What users of other engines have complained of: see answers_test.go.
func TestComplaints(t *testing.T) {
	var ranOn, recovered atomic.Bool
	howTheyEnd(t, []ending{
		{"sdk-go#1049: nothing runs after the function has returned", func(ctx workflow.Context, _ string) (string, error) {
			workflow.Go(ctx, func(ctx workflow.Context) (string, error) {
				err := workflow.Sleep(ctx, 10*time.Second)
				ranOn.Store(err == nil)
				return workflow.Call(ctx, echo, "x")
			})
			return "done", workflow.Sleep(ctx, time.Second)
		}, func(t *testing.T, e *drovertest.Env, run *drover.Run) {
			e.Wait(run)
			e.Sleep(20 * time.Second)
			if ids := scheduled(t, run); ranOn.Load() || len(ids) > 0 {
				t.Errorf("a coroutine has run on: %v", ids)
			}
		}, `completed "done"`},
		{"sdk-go#1624: a signal beside a default", func(ctx workflow.Context, _ string) (text string, err error) {
			notes := workflow.Signals(ctx, note)
			for err == nil && !strings.HasSuffix(text, "end") {
				err = workflow.Select(ctx,
					workflow.Receive(notes, func(s string, e error) { text, err = text+s, e }),
					workflow.Default(func() { err = workflow.Sleep(ctx, time.Second) }))
			}
			return text, err
		}, func(t *testing.T, e *drovertest.Env, run *drover.Run) {
			for _, s := range []string{"a", "b", "c", "end"} {
				if err := run.Signal(t.Context(), "note", s); err != nil {
					t.Fatal(err)
				}
				e.Sleep(1500 * time.Millisecond)
			}
		}, `completed "abcend"`},
		{"sdk-go#743, #1099, #1209, #1235, cadence#1048, restate#142: deferred functions of a run that leaves the memory", func(
			ctx workflow.Context, _ string,
		) (string, error) {
			defer func() {
				if r := recover(); r != nil {
					recovered.Store(true)
				}
				_, _ = workflow.Call(ctx, echo, "deferred")
			}()
			for range 3 {
				if err := workflow.Sleep(ctx, time.Second); err != nil {
					return "", err
				}
			}
			return "done", nil
		}, func(t *testing.T, e *drovertest.Env, run *drover.Run) {
			e.Wait(run)
			if ids := scheduled(t, run); recovered.Load() || !slices.Equal(ids, []string{"echo#1"}) {
				t.Errorf("recovered %v, called %v", recovered.Load(), ids)
			}
		}, `completed "done"`},
		{"sdk-go#716: a run that is terminated while it is kept", func(ctx workflow.Context, _ string) (string, error) {
			return "", workflow.Sleep(ctx, time.Hour)
		}, func(t *testing.T, e *drovertest.Env, run *drover.Run) {
			e.Await(run.ID, schemas.EventTimerScheduled)
			if err := run.Terminate(t.Context(), &drover.TerminateOptions{Reason: "enough"}); err != nil {
				t.Fatal(err)
			}
		}, "terminated enough"},
		{"cadence#427: the context of another coroutine", func(ctx workflow.Context, _ string) (string, error) {
			f := workflow.Go(ctx, func(workflow.Context) (string, error) {
				if err := workflow.Sleep(ctx, time.Second); err != nil {
					return "", err
				}
				return workflow.Call(ctx, echo, "x")
			})
			return f.Get(ctx)
		}, nil, `completed "x!"`},
		{"dbos#89, #90, #109, #412: names of steps that run at once", func(ctx workflow.Context, _ string) (string, error) {
			_, err := workflow.Map(ctx, []int{2, 1}, 0, func(ctx workflow.Context, n int) (string, error) {
				for range n {
					if _, err := workflow.Call(ctx, echo, "x"); err != nil {
						return "", err
					}
				}
				return "", nil
			})
			return "", err
		}, func(t *testing.T, e *drovertest.Env, run *drover.Run) {
			e.Wait(run)
			if ids := scheduled(t, run); !slices.Equal(ids, []string{"1/echo#1", "2/echo#1", "1/echo#2"}) {
				t.Errorf("called %v", ids)
			}
		}, `completed ""`},
	})
}

// sdk-go#1527, features#10: an activity that fails by a canceled context of its own was not
// canceled, and neither is its workflow.
func TestCancellationOfItsOwn(t *testing.T) {
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		w := e.Client.Worker(nil)
		activity.Implement(w, echo, func(context.Context, string) (string, error) { return "", context.Canceled })
		var seen error
		workflow.Implement(w, any1, func(ctx workflow.Context, _ string) (string, error) {
			s, err := workflow.Call(ctx, echo, "x", contract.NoRetry())
			seen = err
			return s, err
		}, nil)
		e.Go(w)
		run, err := e.Client.Start(t.Context(), "any", "in", nil)
		if err != nil {
			t.Fatal(err)
		}
		o := e.Wait(run)
		if call, ok := errors.AsType[*workflow.CallError](seen); !ok || call.Outcome != workflow.Failed ||
			canceled(seen) != "false" || o.Status != schemas.StatusFailed {
			t.Errorf("%v; the run is %s", seen, o.Status)
		}
	})
}

var (
	goesOn    = contract.Workflow[string, string]("case a child that continues")
	waitsLong = contract.Workflow[string, string]("case a child that waits")
)

// What sdk-go's integration tests play, by their names: see answers_test.go.
func TestBehaviours(t *testing.T) {
	var panicked atomic.Int32
	howTheyEnd(t, []ending{
		{"HBTimeout", func(ctx workflow.Context, _ string) (string, error) {
			_, err := workflow.Call(ctx, slow, time.Hour, contract.Heartbeat(time.Second), contract.NoRetry())
			call, _ := errors.AsType[*workflow.CallError](err)
			return call.Reason, nil
		}, nil, `completed "HEARTBEAT"`},
		{"a child that continues", func(ctx workflow.Context, in string) (string, error) {
			if len(in) < 5 {
				return workflow.ContinueAsNew(ctx, goesOn, in+"x")
			}
			return in, nil
		}, nil, `completed "inxxx"`},
		{"ContinueAsNewWithChildWF", func(ctx workflow.Context, _ string) (string, error) {
			return workflow.Call(ctx, goesOn, "abc")
		}, nil, `completed "abcxx"`},
		{"a child that waits", func(ctx workflow.Context, in string) (string, error) {
			if in == "in" {
				return in, nil
			}
			return workflow.Call(ctx, child, "wait")
		}, nil, `completed "in"`},
		{"CascadingCancellation", func(ctx workflow.Context, _ string) (string, error) {
			return workflow.Call(ctx, waitsLong, "x")
		}, cancelOnce(schemas.EventChildStarted), "canceled canceled"},
		{"CancelActivity", func(ctx workflow.Context, _ string) (string, error) {
			f := workflow.Start(ctx, slow, time.Hour)
			if err := workflow.Sleep(ctx, time.Minute); err != nil {
				return "", err
			}
			f.Cancel()
			_, err := f.Get(ctx)
			return canceled(err), nil
		}, nil, `completed "true"`},
		{"CancelActivityImmediately", func(ctx workflow.Context, _ string) (string, error) {
			f := workflow.Start(ctx, slow, time.Hour)
			f.Cancel()
			_, err := f.Get(ctx)
			s, next := workflow.Call(ctx, echo, "x")
			return canceled(err) + " " + s, next
		}, nil, `completed "true x!"`},
		{"CancelTimerAfterActivity, CancelTimerConcurrentWithOtherCommand", func(ctx workflow.Context, _ string) (string, error) {
			timer := workflow.Timer(ctx, time.Hour)
			if _, err := workflow.Call(ctx, echo, "x"); err != nil {
				return "", err
			}
			timer.Cancel()
			s, err := workflow.Call(ctx, echo, "y")
			_, ended := timer.Get(ctx)
			return canceled(ended) + " " + s, err
		}, nil, `completed "true y!"`},
		{"CancelTimerViaDeferAfterWFTFailure", func(ctx workflow.Context, _ string) (string, error) {
			inner, cancel := workflow.WithTimeout(ctx, time.Hour)
			defer cancel()
			s, err := workflow.Call(inner, echo, "x")
			if panicked.Add(1) == 1 {
				panic("a bug")
			}
			return s, err
		}, nil, `completed "x!"`},
		{"CancelMultipleCommandsOverMultipleTasks", func(ctx workflow.Context, _ string) (string, error) {
			timers := []*workflow.Future[struct{}]{workflow.Timer(ctx, time.Hour), workflow.Timer(ctx, 2*time.Hour)}
			long := workflow.Start(ctx, slow, time.Hour)
			for _, f := range timers {
				if err := workflow.Sleep(ctx, time.Second); err != nil {
					return "", err
				}
				f.Cancel()
			}
			if err := workflow.Sleep(ctx, time.Second); err != nil {
				return "", err
			}
			long.Cancel()
			_, e1 := timers[0].Get(ctx)
			_, e2 := timers[1].Get(ctx)
			_, e3 := long.Get(ctx)
			return canceled(e1, e2, e3), nil
		}, nil, `completed "true true true"`},
		{"CancelChildWorkflowUnusualTransitions", func(ctx workflow.Context, _ string) (string, error) {
			f := workflow.Start(ctx, child, "wait")
			f.Cancel() // it was not even asked for
			_, err := f.Get(ctx)
			return canceled(err), nil
		}, nil, `completed "true"`},
		{"CancelChildWorkflowAndParent", func(ctx workflow.Context, _ string) (string, error) {
			f := workflow.Start(ctx, waitsLong, "x")
			_ = workflow.Sleep(ctx, time.Hour) // it is canceled
			f.Cancel()
			return f.Get(ctx)
		}, cancelOnce(schemas.EventChildStarted), "canceled canceled"},
		{"CantStartChildAfterBeingCanceled", func(ctx workflow.Context, _ string) (string, error) {
			_ = workflow.Sleep(ctx, time.Hour)
			return workflow.Call(ctx, child, "x")
		}, cancelOnce(schemas.EventTimerScheduled), "canceled canceled"},
		{"ParallelSideEffects", func(ctx workflow.Context, _ string) (string, error) {
			all, err := workflow.Map(ctx, []int{1, 2, 3}, 0, func(ctx workflow.Context, n int) (int, error) {
				v := workflow.Once(ctx, "n", func() int { return 10 * n })
				return v, workflow.Sleep(ctx, time.Duration(n)*time.Second)
			})
			return fmt.Sprint(all), err
		}, nil, `completed "[10 20 30]"`},
		{"SelectOnClosedChannel", func(ctx workflow.Context, _ string) (string, error) {
			c := workflow.NewChannel[int](1)
			err := c.Send(ctx, 7)
			c.Close()
			var got []string
			for range 2 {
				err = errors.Join(err, workflow.Select(ctx, workflow.Receive(c, func(n int, err error) {
					got = append(got, fmt.Sprint(n, errors.Is(err, workflow.ErrClosed)))
				})))
			}
			return fmt.Sprint(got), err
		}, nil, `completed "[7 false 0 true]"`},
		{"AwaitCancellation", func(ctx workflow.Context, _ string) (string, error) {
			err := workflow.WaitFor(ctx, func() bool { return false })
			return canceled(err, workflow.WaitFor(ctx, func() bool { return false })), nil
		}, cancelOnce(schemas.EventDeciderCompleted), `completed "true true"`},
		{"ContextCancelRace", func(ctx workflow.Context, _ string) (string, error) {
			inner, cancel := workflow.WithCancel(ctx)
			workflow.Go(ctx, func(ctx workflow.Context) (string, error) {
				cancel()
				return workflow.Call(inner, echo, "late")
			})
			return canceled(workflow.Sleep(inner, time.Hour), inner.Err(), ctx.Err()), nil
		}, nil, `completed "true true false"`},
	})
}

// A call that nobody waits for never begins if the workflow returns at once, and the log says so.
func TestResultIsIgnored(t *testing.T) {
	var text bytes.Buffer
	log := logrus.New()
	log.SetOutput(&text)
	playWith(t, &workflow.Options{Logger: log}, func(ctx workflow.Context, _ string) (string, error) {
		err := workflow.Sleep(ctx, time.Second)
		workflow.Start(ctx, echo, "x")
		workflow.Start(ctx, child, "x")
		return "done", err
	}, func(t *testing.T, e *drovertest.Env, run *drover.Run) {
		e.Wait(run)
		if ids := scheduled(t, run); len(ids) > 0 {
			t.Errorf("called %v", ids)
		}
	})
	for _, part := range []string{"never begins: wait for its future", "call=\"echo#1\"", "call=\"child#1\""} {
		if s := text.String(); !strings.Contains(s, part) {
			t.Errorf("the log has no %s: %s", part, s)
		}
	}
}
