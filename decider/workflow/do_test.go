package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/contract"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/decider/workflow"
	"github.com/droverhq/drover/drovertest"
	"github.com/droverhq/drover/schemas"
)

// journal is what steps have done, by the keys that they were given.
type journal struct {
	mu   sync.Mutex
	keys map[string]int
}

func (j *journal) note(ctx context.Context) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.keys == nil {
		j.keys = map[string]int{}
	}
	j.keys[workflow.StepInfo(ctx).Key]++
}

func (j *journal) calls() (n int, keys int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, times := range j.keys {
		n += times
	}
	return n, len(j.keys)
}

// What steps return, with runs that are kept and with runs that are rebuilt for each decision.
func TestSteps(t *testing.T) {
	big := strings.Repeat("x", 300<<10)
	forever := func(c context.Context) (int, error) {
		<-c.Done()
		return 0, context.Cause(c)
	}
	howTheyEnd(t, []ending{
		{"one after the other", func(ctx workflow.Context, _ string) (string, error) {
			var all []string
			for n := range 3 {
				s, err := workflow.Do(ctx, "say", func(c context.Context) (string, error) {
					return fmt.Sprint(n, " ", workflow.StepInfo(c).Name), nil
				})
				if err != nil {
					return "", err
				}
				all = append(all, s)
			}
			return fmt.Sprint(all), nil
		}, nil, `completed "[0 say#1 1 say#2 2 say#3]"`},
		{"between calls", func(ctx workflow.Context, _ string) (string, error) {
			a, err := workflow.Call(ctx, echo, "a")
			if err != nil {
				return "", err
			}
			b, err := workflow.Do(ctx, "b", func(context.Context) (string, error) { return a + "b", nil })
			if err != nil {
				return "", err
			}
			return workflow.Call(ctx, echo, b)
		}, nil, `completed "a!b!"`},
		{"in coroutines", func(ctx workflow.Context, _ string) (string, error) {
			all, err := workflow.Map(ctx, []int{1, 2, 3, 4}, 2, func(ctx workflow.Context, n int) (int, error) {
				for range 2 {
					double, err := workflow.Do(ctx, "double", func(context.Context) (int, error) {
						time.Sleep(time.Duration(n) * 100 * time.Millisecond)
						return 2 * n, nil
					})
					if err != nil {
						return 0, err
					}
					n = double
				}
				return n, nil
			})
			return fmt.Sprint(all), err
		}, nil, `completed "[4 8 12 16]"`},
		{"nothing", func(ctx workflow.Context, _ string) (string, error) {
			p, err := workflow.Do(ctx, "nil", func(context.Context) (*int, error) { return nil, nil })
			return fmt.Sprint(p == nil), err
		}, nil, `completed "true"`},
		{"a large value", func(ctx workflow.Context, _ string) (string, error) {
			s, err := workflow.Do(ctx, "big", func(context.Context) (string, error) { return big, nil })
			if err != nil {
				return "", err
			}
			err = workflow.Sleep(ctx, time.Hour)
			return fmt.Sprint(s == big), err
		}, nil, `completed "true"`},
		{"an error", func(ctx workflow.Context, _ string) (string, error) {
			_, err := workflow.Do(ctx, "bad", func(context.Context) (string, error) { return "", errWorse })
			call, _ := errors.AsType[*workflow.CallError](err)
			return fmt.Sprint(err, " ", call.ID, " ", call.Reason), nil
		}, nil, `completed "bad#1 failed: worse bad#1 worse"`},
		{"a fault", func(ctx workflow.Context, _ string) (string, error) {
			_, err := workflow.Do(ctx, "buy", func(context.Context) (string, error) { return "", soldOut.With(3) },
				workflow.StepRetry(schemas.RetryPolicy{}))
			left, ok := soldOut.Details(err)
			return fmt.Sprint(errors.Is(err, soldOut), left, ok), nil
		}, nil, `completed "true 3 true"`},
		{"tried again", func(ctx workflow.Context, _ string) (string, error) {
			began := workflow.Now(ctx)
			n, err := workflow.Do(ctx, "flaky", func(c context.Context) (int, error) {
				if n := workflow.StepInfo(c).Attempt; n > 3 {
					return n, nil
				}
				return 0, errWorse
			}, workflow.StepRetry(schemas.RetryPolicy{InitialInterval: schemas.Seconds(10)}))
			took := workflow.Now(ctx).Sub(began).Round(5 * time.Second)
			return fmt.Sprint(n, " ", took), err
		}, nil, `completed "4 1m10s"`},
		{"tried in vain", func(ctx workflow.Context, _ string) (string, error) {
			_, err := workflow.Do(ctx, "flaky", func(c context.Context) (int, error) {
				return 0, fmt.Errorf("attempt %d", workflow.StepInfo(c).Attempt)
			}, workflow.StepRetry(schemas.RetryPolicy{MaximumAttempts: 3}), workflow.Quick())
			return fmt.Sprint(err), nil
		}, nil, `completed "flaky#1 failed: attempt 3"`},
		{"quick", func(ctx workflow.Context, _ string) (string, error) {
			sum := 0
			for n := range 20 {
				v, err := workflow.Do(ctx, "n", func(context.Context) (int, error) { return n, nil }, workflow.Quick())
				if err != nil {
					return "", err
				}
				sum += v
			}
			s, err := workflow.Call(ctx, echo, fmt.Sprint(sum))
			return s, err
		}, nil, `completed "190!"`},
		{"longer than a second", func(ctx workflow.Context, _ string) (string, error) {
			_, err := workflow.Do(ctx, "slow", func(c context.Context) (int, error) {
				select {
				case <-time.After(6 * time.Second):
					workflow.Log(ctx).Debug("beside the coroutines") // the race detector looks
					return 1, nil
				case <-c.Done():
					return 0, context.Cause(c)
				}
			})
			return fmt.Sprint(err == nil), nil
		}, nil, `completed "true"`},
		{"canceled", func(ctx workflow.Context, _ string) (string, error) {
			_, err := workflow.Do(ctx, "long", forever)
			_, late := workflow.Do(ctx, "late", func(context.Context) (int, error) { return 1, nil })
			clean, _ := workflow.Do(workflow.WithoutCancel(ctx), "clean", func(context.Context) (int, error) {
				return 1, nil
			})
			return fmt.Sprint(errors.Is(err, workflow.ErrCanceled), errors.Is(late, workflow.ErrCanceled), clean), nil
		}, func(t *testing.T, e *drovertest.Env, run *drover.Run) {
			e.Sleep(5 * time.Second)
			if err := run.Cancel(t.Context(), "enough"); err != nil {
				t.Fatal(err)
			}
		}, `completed "true true 1"`},
		{"the time of a scope", func(ctx workflow.Context, _ string) (string, error) {
			inner, cancel := workflow.WithTimeout(ctx, 10*time.Second)
			defer cancel()
			_, err := workflow.Do(inner, "bounded", forever)
			return fmt.Sprint(errors.Is(err, workflow.ErrTimeout)), nil
		}, nil, `completed "true"`},
		{"longer than a minute", func(ctx workflow.Context, _ string) (string, error) {
			_, err := workflow.Do(ctx, "long", forever)
			return fmt.Sprint(err), nil
		}, nil, `completed "long#1 failed: it has taken longer than 1m0s, the time of a step: use an activity"`},
	})
}

// A worker that is killed between steps, or while one runs, costs at most the step that runs: the
// key is the same, and no step is left out.
func TestStepsAndCrashes(t *testing.T) {
	for _, kept := range []int{0, -1} {
		var did journal
		drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
			worker := func() (stop func()) {
				w := e.Client.Deciders(nil)
				workflow.Implement(w, any1, func(ctx workflow.Context, _ string) (string, error) {
					sum := 0
					for range 4 {
						n, err := workflow.Do(ctx, "add", func(c context.Context) (int, error) {
							did.note(c)
							select {
							case <-time.After(2 * time.Second):
								return 1, nil
							case <-c.Done():
								return 0, context.Cause(c)
							}
						})
						if err != nil {
							return "", err
						}
						sum += n
						if err := workflow.Sleep(ctx, time.Minute); err != nil {
							return "", err
						}
					}
					return fmt.Sprint(sum), nil
				}, &workflow.Options{Kept: kept})
				return e.Go(w)
			}
			stop := worker()
			run, err := e.Client.Start(t.Context(), "any", "in", nil)
			if err != nil {
				t.Fatal(err)
			}
			e.Await(run.ID, schemas.EventMarker)
			stop()
			stop = worker()
			e.Sleep(62 * time.Second) // into the second step
			stop()
			worker()
			e.Sleep(time.Minute)
			e.Crash(time.Second)
			var got string
			if e.Result(run, &got); got != "4" {
				t.Errorf("%d kept: got %q", kept, got)
			}
		})
		if n, keys := did.calls(); keys != 4 || n < 4 || n > 12 {
			t.Errorf("%d kept: %d calls with %d keys, want 4 keys and a few calls more at most", kept, n, keys)
		}
	}
}

// Runs that push each other out of the memory, or that are more than a worker decides at once, come to
// the end of their steps in time.
func TestStepsOfManyRuns(t *testing.T) {
	for _, tc := range []struct {
		name string
		n    int
		o    decider.Options
		kept int
	}{
		{"more than are kept", 3, decider.Options{}, 1},
		{"more than are decided at once", 20, decider.Options{Concurrency: 1}, 0},
	} {
		drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
			w := e.Client.Deciders(&tc.o)
			workflow.Implement(w, any1, func(ctx workflow.Context, _ string) (string, error) {
				return workflow.Do(ctx, "slow", func(c context.Context) (string, error) {
					select {
					case <-time.After(4 * time.Second):
						return "done", nil
					case <-c.Done():
						return "", context.Cause(c)
					}
				})
			}, &workflow.Options{Kept: tc.kept})
			e.Go(w)
			var runs []*drover.Run
			for range tc.n {
				run, err := e.Client.Start(t.Context(), "any", "in", nil)
				if err != nil {
					t.Fatal(err)
				}
				runs = append(runs, run)
			}
			began := time.Now()
			for _, run := range runs {
				if o := e.Wait(run); string(o.Result) != `"done"` {
					t.Errorf("%s: got %s %s %s", tc.name, o.Result, o.Reason, o.Details)
				}
			}
			if took := time.Since(began); took > 9*time.Second {
				t.Errorf("%s: steps of 4 seconds took %v", tc.name, took)
			}
		})
	}
}

// A beginner's mistake in a step fails the decision, and the run goes on once the code is mended.
func TestMistakesInSteps(t *testing.T) {
	type mistake struct {
		name string
		fn   func(ctx workflow.Context) error
		says []string
	}
	cases := []mistake{
		{"panic", func(ctx workflow.Context) error {
			_, err := workflow.Do(ctx, "pay", func(context.Context) (int, error) { panic("a bug") })
			return err
		}, []string{"step pay#1 panicked", "do_test.go", "a bug"}},
		{"a value without a JSON form", func(ctx workflow.Context) error {
			_, err := workflow.Do(ctx, "pay", func(context.Context) (float64, error) { return math.NaN(), nil })
			return err
		}, []string{`Do "pay"`, "float64", "NaN"}},
		{"a quick one without a JSON form", func(ctx workflow.Context) error {
			_, err := workflow.Do(ctx, "pay", func(context.Context) (any, error) { return t.Name, nil }, workflow.Quick())
			return err
		}, []string{`Do "pay"`, "JSON", "do_test.go"}},
		{"the workflow is used in a step", func(ctx workflow.Context) error {
			_, err := workflow.Do(ctx, "pay", func(context.Context) (string, error) {
				return workflow.Call(ctx, echo, "x")
			})
			return err
		}, []string{"step pay#1", "do_test.go", "cannot use the workflow"}},
	}
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		w := e.Client.Worker(nil)
		var mended atomic.Bool
		for _, tc := range cases {
			workflow.Implement(w, contract.Workflow[string, string](tc.name), func(ctx workflow.Context, _ string) (string, error) {
				if !mended.Load() {
					return "", tc.fn(ctx)
				}
				return "mended", nil
			}, nil)
		}
		e.Go(w)
		var runs []*drover.Run
		for _, tc := range cases {
			run, err := e.Client.Start(t.Context(), tc.name, "in", nil)
			if err != nil {
				t.Fatal(err)
			}
			runs = append(runs, run)
			failed, _ := e.Await(run.ID, schemas.EventDeciderFailed).Attributes.(*schemas.DeciderFailed)
			for _, part := range tc.says {
				if text := failed.Reason + failed.Details; !strings.Contains(text, part) {
					t.Errorf("%s: %q does not say %q", tc.name, text, part)
				}
			}
		}
		mended.Store(true)
		for n, run := range runs {
			if o := e.Wait(run); string(o.Result) != `"mended"` {
				t.Errorf("%s: once it is mended: %s %s %s", cases[n].name, o.Status, o.Reason, o.Details)
			}
		}
	})
}

// What a history has of steps: one record and one decision each, or one decision for all quick ones.
func TestHistoryOfSteps(t *testing.T) {
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		w := e.Client.Worker(nil)
		five := func(opts ...workflow.StepOption) func(workflow.Context, string) (string, error) {
			return func(ctx workflow.Context, _ string) (string, error) {
				for range 5 {
					if _, err := workflow.Do(ctx, "n", func(context.Context) (int, error) { return 1, nil }, opts...); err != nil {
						return "", err
					}
				}
				return "", nil
			}
		}
		workflow.Implement(w, any1, five(), nil)
		workflow.Implement(w, child, five(workflow.Quick()), nil)
		e.Go(w)
		for typ, want := range map[string]int{"any": 6, "child": 1} {
			run, err := e.Client.Start(t.Context(), typ, "in", nil)
			if err != nil {
				t.Fatal(err)
			}
			e.Wait(run)
			var names []string
			decisions := 0
			for _, event := range e.History(run.ID) {
				switch a := event.Attributes.(type) {
				case *schemas.Marker:
					names = append(names, a.MarkerName)
				case *schemas.DeciderCompleted:
					decisions++
				}
			}
			if want := []string{"n#1", "n#2", "n#3", "n#4", "n#5"}; !slices.Equal(names, want) {
				t.Errorf("markers %v", names)
			}
			if decisions != want {
				t.Errorf("%s: %d decisions, want %d", typ, decisions, want)
			}
		}
	})
}
