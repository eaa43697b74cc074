package workflow_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/contract"
	"github.com/droverhq/drover/decider/workflow"
	"github.com/droverhq/drover/drovertest"
	"github.com/droverhq/drover/schemas"
)

// What a function returns is how its run ends, whether the run is kept in memory or not.
// sdk-go#403, cadence#402.
func TestHowRunsEnd(t *testing.T) {
	cancel := func(t *testing.T, e *drovertest.Env, run *drover.Run) {
		e.Await(run.ID, schemas.EventActivityStarted)
		if err := run.Cancel(t.Context(), "enough"); err != nil {
			t.Fatal(err)
		}
	}
	howTheyEnd(t, []ending{
		{"result", func(_ workflow.Context, in string) (string, error) { return in + "put", nil }, nil, `completed "input"`},
		{"error", func(workflow.Context, string) (string, error) { return "", errWorse }, nil, "failed failed"},
		{"fault", func(workflow.Context, string) (string, error) {
			return "", fmt.Errorf("no: %w", soldOut.With(3))
		}, nil, "failed sold-out"},
		{"activity tried again", func(ctx workflow.Context, _ string) (string, error) {
			return workflow.Call(ctx, book, "flaky")
		}, nil, `completed "flaky"`},
		{"fault of an activity", func(ctx workflow.Context, _ string) (string, error) {
			_, err := workflow.Call(ctx, book, "sold-out")
			left, ok := soldOut.Details(err)
			return fmt.Sprint(errors.Is(err, soldOut), left, ok), nil
		}, nil, `completed "true 3 true"`},
		{"timeout of an activity", func(ctx workflow.Context, _ string) (string, error) {
			_, err := workflow.Call(ctx, slow, time.Hour, contract.StartToClose(time.Second), contract.NoRetry())
			call, _ := errors.AsType[*workflow.CallError](err)
			return fmt.Sprint(call.Outcome == workflow.TimedOut, " ", call.Reason, " ", call.ID), nil
		}, nil, `completed "true START_TO_CLOSE slow#1"`},
		{"cancel", func(ctx workflow.Context, _ string) (string, error) {
			return workflow.Call(ctx, slow, time.Hour)
		}, cancel, "canceled canceled"},
		{"cancel and clean up", func(ctx workflow.Context, _ string) (s string, err error) {
			defer func() {
				if ctx.Err() != nil {
					s, err = workflow.Call(workflow.WithoutCancel(ctx), echo, "clean")
				}
			}()
			return workflow.Call(ctx, slow, time.Hour)
		}, cancel, `completed "clean!"`},
		{"a call once canceled", func(ctx workflow.Context, _ string) (string, error) {
			_, _ = workflow.Call(ctx, slow, time.Hour)
			_, err := workflow.Call(ctx, echo, "late")
			return fmt.Sprint(errors.Is(err, workflow.ErrCanceled)), nil
		}, cancel, `completed "true"`},
		{"time of a scope", func(ctx workflow.Context, _ string) (string, error) {
			inner, cancel := workflow.WithTimeout(ctx, time.Minute)
			defer cancel()
			began := workflow.Now(ctx)
			_, err := workflow.Call(inner, slow, time.Hour)
			return fmt.Sprint(errors.Is(err, workflow.ErrTimeout), ctx.Err() == nil, workflow.Now(ctx).Sub(began) < 2*time.Minute), nil
		}, nil, `completed "true true true"`},
		{"child", func(ctx workflow.Context, _ string) (string, error) {
			return workflow.Call(ctx, child, "me")
		}, nil, `completed "child of me"`},
		{"children beside each other", func(ctx workflow.Context, _ string) (string, error) {
			all, err := workflow.Map(ctx, []string{"a", "b"}, 0, func(ctx workflow.Context, s string) (string, error) {
				return workflow.Call(ctx, child, s)
			})
			return fmt.Sprint(all), err
		}, nil, `completed "[child of a child of b]"`},
		{"canceled child", func(ctx workflow.Context, _ string) (string, error) {
			f := workflow.Start(ctx, child, "wait")
			if err := workflow.Sleep(ctx, time.Minute); err != nil {
				return "", err
			}
			f.Cancel()
			_, err := f.Get(ctx)
			return fmt.Sprint(errors.Is(err, workflow.ErrCanceled)), nil
		}, nil, `completed "true"`},
		{"a timer that is taken back", func(ctx workflow.Context, _ string) (string, error) {
			f := workflow.Timer(ctx, time.Hour)
			if _, err := workflow.Call(ctx, echo, "x"); err != nil {
				return "", err
			}
			f.Cancel()
			_, err := f.Get(ctx)
			return fmt.Sprint(err), nil
		}, nil, `completed "canceled"`},
		{"the first of two", func(ctx workflow.Context, _ string) (string, error) {
			n, err := workflow.First(ctx, workflow.Start(ctx, slow, time.Hour), workflow.Start(ctx, echo, "x"))
			return fmt.Sprint(n), err
		}, nil, `completed "1"`},
		{"several as they come", func(ctx workflow.Context, _ string) (string, error) {
			var cases []workflow.Case
			var came []string
			for _, d := range []time.Duration{3, 1, 2} {
				cases = append(cases, workflow.On(workflow.Timer(ctx, d*time.Second), func(struct{}, error) {
					came = append(came, fmt.Sprint(int(d)))
				}))
			}
			for range cases {
				if err := workflow.Select(ctx, cases...); err != nil {
					return "", err
				}
			}
			err := workflow.Select(ctx, append(cases, workflow.Default(func() { came = append(came, "none") }))...)
			return fmt.Sprint(came), err
		}, nil, `completed "[1 2 3 none]"`},
		{"a case in two coroutines", func(ctx workflow.Context, _ string) (string, error) {
			var came []string
			first := workflow.On(workflow.Timer(ctx, time.Second), func(struct{}, error) { came = append(came, "first") })
			second := workflow.On(workflow.Timer(ctx, 2*time.Second), func(struct{}, error) { came = append(came, "second") })
			wait := func(ctx workflow.Context) (struct{}, error) {
				return struct{}{}, workflow.Select(ctx, first, second)
			}
			err := workflow.All(ctx, workflow.Go(ctx, wait), workflow.Go(ctx, wait))
			return fmt.Sprint(came), err
		}, nil, `completed "[first second]"`},
		{"a condition", func(ctx workflow.Context, _ string) (string, error) {
			done := 0
			for range 3 {
				workflow.Go(ctx, func(ctx workflow.Context) (string, error) {
					s, err := workflow.Call(ctx, echo, "x")
					done++
					return s, err
				})
			}
			err := workflow.WaitFor(ctx, func() bool { return done == 2 })
			return fmt.Sprint(done), err
		}, nil, `completed "2"`},
		{"a side effect", func(ctx workflow.Context, _ string) (string, error) {
			at := workflow.Once(ctx, "id", time.Now)
			err := workflow.Sleep(ctx, 3*time.Minute)
			again := workflow.Now(ctx).Sub(at)
			return fmt.Sprint(again.Round(time.Minute)), err
		}, nil, `completed "3m0s"`},
		{"random numbers", func(ctx workflow.Context, _ string) (string, error) {
			a, b := workflow.Rand(ctx).IntN(1000), workflow.Rand(ctx).IntN(1000)
			recorded := workflow.Once(ctx, "was", func() []int { return []int{a, b} })
			if err := workflow.Sleep(ctx, time.Second); err != nil {
				return "", err
			}
			return fmt.Sprint(slices.Equal(recorded, []int{a, b})), nil
		}, nil, `completed "true"`},
		{"a UUID", func(ctx workflow.Context, _ string) (string, error) {
			a, b := workflow.UUID(ctx), workflow.UUID(ctx)
			recorded := workflow.Once(ctx, "was", func() string { return a })
			if err := workflow.Sleep(ctx, time.Hour); err != nil {
				return "", err
			}
			form := regexp.MustCompile("^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$")
			return fmt.Sprint(a == recorded, a != b, form.MatchString(a)), nil
		}, nil, `completed "true true true"`},
		{"continued as new", func(ctx workflow.Context, in string) (string, error) {
			if in == "in" {
				return workflow.ContinueAsNew(ctx, any1, "again")
			}
			return in, nil
		}, nil, `completed "again"`},
	})
}

// What was done is undone when what follows fails, the newest first, even after a cancellation.
func TestSaga(t *testing.T) {
	o := play(t, func(ctx workflow.Context, _ string) (_ string, err error) {
		saga := workflow.NewSaga(ctx)
		defer saga.UndoOn(&err)
		for _, what := range []string{"hotel", "fails", "flight"} {
			if _, err := workflow.Call(ctx, book, what); err != nil {
				return "", err
			}
			saga.Add(func(ctx workflow.Context) error {
				_, err := workflow.Call(ctx, undo, what)
				return err
			})
		}
		_, err = workflow.Call(ctx, book, "sold-out")
		return "", err
	}, func(t *testing.T, e *drovertest.Env, run *drover.Run) {
		e.Wait(run)
		var undone []string
		for event, err := range run.History(t.Context(), drover.HistoryOptions{}) {
			if err != nil {
				t.Fatal(err)
			}
			if a, ok := event.Attributes.(*schemas.ActivityScheduled); ok && a.ActivityType == "undo" {
				undone = append(undone, string(a.Input))
			}
		}
		if want := []string{`"flight"`, `"fails"`, `"hotel"`}; !slices.Equal(undone, want) {
			t.Errorf("undone %s, want %s", undone, want)
		}
	})
	if o.Status != schemas.StatusFailed || o.Reason != soldOut.Reason() {
		t.Errorf("got %s %s, want that the run fails with the fault", o.Status, o.Reason)
	}
}

// No signal is lost, whenever it comes: before the code asks for it, while it waits, or while its
// last decision is being made.
// docs#3177.
func TestSignals(t *testing.T) {
	o := play(t, func(ctx workflow.Context, _ string) (string, error) {
		if err := workflow.Sleep(ctx, time.Minute); err != nil {
			return "", err
		}
		notes := workflow.Signals(ctx, note)
		text := fmt.Sprint(notes.Len(), " ")
		for {
			s, err := notes.Receive(ctx)
			if err != nil || s == "end" {
				return text, err
			}
			text += s
		}
	}, func(t *testing.T, e *drovertest.Env, run *drover.Run) {
		for n, s := range []string{"a", "b", "c", "d", "end"} {
			if n == 3 {
				e.Sleep(2 * time.Minute)
			}
			if err := run.Signal(t.Context(), "note", s); err != nil {
				t.Fatal(err)
			}
		}
	})
	if got := string(o.Result); got != `"3 abcd"` {
		t.Errorf("got %s", got)
	}
}

// A run that continues as new takes with it what its channels have, and what came too late for its
// last decision.
// sdk-go#301, #533, #1048, docs#781.
func TestSignalsGoOnToTheNextRun(t *testing.T) {
	o := play(t, func(ctx workflow.Context, in string) (string, error) {
		notes := workflow.Signals(ctx, note)
		s, err := notes.Receive(ctx)
		if err != nil || s == "end" {
			return in, err
		}
		return workflow.ContinueAsNew(ctx, any1, in+s)
	}, func(t *testing.T, e *drovertest.Env, run *drover.Run) {
		for _, s := range []string{"a", "b", "c", "d", "end"} {
			if err := run.Signal(t.Context(), "note", s); err != nil {
				t.Fatal(err)
			}
		}
	})
	if got := string(o.Result); got != `"inabcd"` {
		t.Errorf("got %s %s", o.Status, got)
	}
}

// A panic fails the decision and never the run: code that is mended goes on.
func TestPanicIsMended(t *testing.T) {
	broken := true
	o := play(t, func(ctx workflow.Context, _ string) (string, error) {
		s, err := workflow.Call(ctx, echo, "x")
		if broken {
			broken = false
			panic("a bug")
		}
		return s, err
	}, nil)
	if got := string(o.Result); got != `"x!"` {
		t.Errorf("got %s %s", o.Status, got)
	}
}
