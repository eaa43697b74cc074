package workflow_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/contract"
	"github.com/droverhq/drover/decider/workflow"
	"github.com/droverhq/drover/drovertest"
)

var update = flag.Bool("update", false, "write the golden histories anew")

// goldenRun is a function that has a history in testdata/golden. It must not change: a release that
// does not agree with the history would not agree with the runs of its users either. What is new
// gets a function of its own.
type goldenRun struct {
	fn    func(workflow.Context, string) (string, error)
	while func(t *testing.T, e *drovertest.Env, run *drover.Run)
	open  bool // the history ends while the run waits
}

// saw writes into the history what the code has seen, and where.
func saw(ctx workflow.Context, format string, args ...any) {
	workflow.Once(ctx, fmt.Sprintf(format, args...), func() struct{} { return struct{}{} })
}

var golden = map[string]goldenRun{
	"calls": {fn: func(ctx workflow.Context, in string) (string, error) {
		for range 2 {
			if _, err := workflow.Call(ctx, echo, in); err != nil {
				return "", err
			}
		}
		if _, err := workflow.Call(ctx, book, "flaky"); err != nil {
			return "", err
		}
		if _, err := workflow.Call(ctx, book, "sold-out"); err != nil {
			saw(ctx, "fault %v", errors.Is(err, soldOut))
		}
		_, err := workflow.Call(ctx, slow, time.Hour, contract.StartToClose(time.Second), contract.NoRetry())
		saw(ctx, "timeout %v", err != nil)
		return "", soldOut.With(7)
	}},
	"coroutines": {fn: func(ctx workflow.Context, _ string) (string, error) {
		order := ""
		timers := func(name string, all ...int) *workflow.Future[string] {
			return workflow.Go(ctx, func(ctx workflow.Context) (string, error) {
				return workflow.Go(ctx, func(ctx workflow.Context) (string, error) {
					for _, n := range all {
						if err := workflow.Sleep(ctx, time.Duration(n)*time.Second); err != nil {
							return "", err
						}
						order += name
						saw(ctx, "order %s", order)
					}
					return name, nil
				}).Get(ctx)
			})
		}
		a, b := timers("a", 10, 50), timers("b", 20, 10)
		n, err := workflow.First(ctx, a, b)
		saw(ctx, "first %d", n)
		if err != nil {
			return "", err
		}
		all, err := workflow.Map(ctx, []int{3, 1, 2}, 2, func(ctx workflow.Context, n int) (string, error) {
			return fmt.Sprint(n), workflow.Sleep(ctx, time.Duration(n)*time.Minute)
		})
		if err != nil {
			return "", err
		}
		err = workflow.WaitFor(ctx, func() bool { return len(order) == 4 })
		saw(ctx, "%v %s", all, order)
		return order, err
	}},
	"selects": {fn: func(ctx workflow.Context, _ string) (string, error) {
		notes := workflow.Signals(ctx, note)
		cases := []workflow.Case{
			workflow.Receive(notes, func(s string, err error) { saw(ctx, "received %s %v", s, err != nil) }),
			workflow.On(workflow.Start(ctx, slow, 90*time.Second), func(s string, err error) { saw(ctx, "slow %s %v", s, err != nil) }),
			workflow.On(workflow.Timer(ctx, time.Minute), func(struct{}, error) { saw(ctx, "a minute") }),
		}
		for range 4 {
			if err := workflow.Select(ctx, cases...); err != nil {
				return "", err
			}
		}
		err := workflow.Select(ctx, append(cases, workflow.Default(func() { saw(ctx, "nothing") }))...)
		return "", err
	}, while: func(t *testing.T, e *drovertest.Env, run *drover.Run) {
		for _, s := range []string{"one", "two"} {
			if err := run.Signal(t.Context(), "note", s); err != nil {
				t.Fatal(err)
			}
			e.Sleep(70 * time.Second)
		}
	}},
	"scopes": {fn: func(ctx workflow.Context, _ string) (_ string, err error) {
		saga := workflow.NewSaga(ctx)
		defer saga.UndoOn(&err)
		for _, what := range []string{"hotel", "flight"} {
			if _, err := workflow.Call(ctx, book, what); err != nil {
				return "", err
			}
			saga.Add(func(ctx workflow.Context) error {
				_, err := workflow.Call(ctx, undo, what)
				return err
			})
		}
		inner, cancel := workflow.WithTimeout(ctx, time.Minute)
		defer cancel()
		both := workflow.Go(inner, func(ctx workflow.Context) (string, error) {
			_, err := workflow.First(ctx, workflow.Timer(ctx, time.Hour), workflow.Start(ctx, slow, time.Hour))
			return "", err
		})
		_, err = both.Get(ctx)
		saw(ctx, "scope %v", err != nil)
		f := workflow.Timer(ctx, time.Hour)
		if err := workflow.Sleep(ctx, time.Second); err != nil {
			return "", err
		}
		f.Cancel()
		_, err = workflow.Call(ctx, slow, time.Hour)
		saw(ctx, "canceled %v", errors.Is(err, workflow.ErrCanceled))
		return "", err
	}, while: func(t *testing.T, e *drovertest.Env, run *drover.Run) {
		e.Sleep(2 * time.Minute)
		if err := run.Cancel(t.Context(), "enough"); err != nil {
			t.Fatal(err)
		}
	}},
	"changes": {fn: func(ctx workflow.Context, in string) (string, error) {
		if in == "again" {
			return in, nil
		}
		workflow.SetAttributes(ctx, map[string]string{"state": "begun"})
		if workflow.Changed(ctx, "greet") {
			if _, err := workflow.Call(ctx, echo, in); err != nil {
				return "", err
			}
		}
		for range 2 {
			if workflow.ChangedFrom(ctx, "faster") {
				if err := workflow.Sleep(ctx, time.Minute); err != nil {
					return "", err
				}
			}
		}
		r := workflow.Rand(ctx)
		saw(ctx, "random %v", r.IntN(1000) == workflow.Once(ctx, "random", func() int { return r.IntN(1000) }))
		workflow.SetAttributes(ctx, map[string]string{"state": "done"})
		return workflow.ContinueAsNew(ctx, goldenType("changes"), "again")
	}},
	"others": {fn: func(ctx workflow.Context, _ string) (string, error) {
		f, err := workflow.Begin(ctx, listen, "heard ")
		if err != nil {
			return "", err
		}
		for _, s := range []string{"a", "end"} {
			if err := workflow.Send(ctx, ctx.Info().WorkflowID+"/listen#1", note, s); err != nil {
				return "", err
			}
		}
		s, err := f.Get(ctx)
		saw(ctx, "%s %v", s, err != nil)
		err = workflow.Send(ctx, "nobody", note, "x")
		saw(ctx, "refused %v", err != nil)
		s, err = workflow.Call(ctx, child, "me")
		saw(ctx, "%s %v", s, err != nil)
		return s, err
	}},
	"steps": {fn: func(ctx workflow.Context, _ string) (string, error) {
		add := func(ctx workflow.Context, n int, opts ...workflow.StepOption) (int, error) {
			return workflow.Do(ctx, "add", func(context.Context) (int, error) { return n + 1, nil }, opts...)
		}
		n, err := add(ctx, 1)
		if err == nil {
			n, err = add(ctx, n, workflow.Quick())
		}
		if err == nil {
			n, err = add(ctx, n, workflow.Quick())
		}
		if err != nil {
			return "", err
		}
		saw(ctx, "%d", n)
		if _, err := workflow.Call(ctx, echo, "x"); err != nil {
			return "", err
		}
		_, err = workflow.Do(ctx, "fails", func(context.Context) (int, error) { return 0, soldOut.With(3) })
		saw(ctx, "fault %v", errors.Is(err, soldOut))
		all, err := workflow.Map(ctx, []int{1, 2}, 0, func(ctx workflow.Context, n int) (int, error) { return add(ctx, n) })
		return fmt.Sprint(all), err
	}},
	"rooms": {fn: func(ctx workflow.Context, _ string) (string, error) {
		values := workflow.NewChannel[int](1)
		sender := workflow.Go(ctx, func(ctx workflow.Context) (struct{}, error) {
			defer values.Close()
			for n := range 3 {
				if err := values.Send(ctx, n); err != nil {
					return struct{}{}, err
				}
				saw(ctx, "sent %d", n)
			}
			return struct{}{}, nil
		})
		for n := 0; ; n++ {
			held, err := workflow.Lock(ctx, fmt.Sprint("room ", n%2))
			if err != nil {
				return "", err
			}
			v, err := values.Receive(ctx)
			saw(ctx, "received %d %v", v, errors.Is(err, workflow.ErrClosed))
			held.Release()
			if err != nil {
				return "", workflow.All(ctx, sender)
			}
			if err := workflow.Sleep(ctx, time.Second); err != nil {
				return "", err
			}
		}
	}},
	"open": {open: true, fn: func(ctx workflow.Context, in string) (string, error) {
		if _, err := workflow.Call(ctx, echo, in); err != nil {
			return "", err
		}
		_, err := workflow.Signals(ctx, note).Receive(ctx)
		return "", err
	}, while: func(_ *testing.T, e *drovertest.Env, _ *drover.Run) { e.Sleep(time.Minute) }},
}

func goldenType(name string) *contract.WorkflowOf[string, string] {
	return contract.Workflow[string, string]("golden "+name, note)
}

func implementGolden(w *drover.Worker) {
	for name, g := range golden {
		workflow.Implement(w, goldenType(name), g.fn, nil)
	}
	implementAll(w, nil)
}

// The histories of earlier releases agree with the code of this one. What they freeze: the names of
// what code asks for, the order in which it sees events, and what an end is.
func TestGolden(t *testing.T) {
	if *update {
		drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
			w := e.Client.Worker(nil)
			implementGolden(w)
			e.Go(w)
			for name, g := range golden {
				run, err := e.Client.Start(t.Context(), "golden "+name, "in", &drover.StartOptions{ID: "golden " + name})
				if err != nil {
					t.Fatal(err)
				}
				if g.while != nil {
					g.while(t, e, run)
				}
				if !g.open {
					e.Wait(run)
				}
				writeGolden(t, name, e.Client.Run(run.ID, run.RunID))
			}
		})
	}
	for name := range golden {
		if _, err := os.Stat(goldenFile(name)); err != nil {
			t.Error(err)
		}
	}
	drovertest.Replay(t, goldenFile("*"), implementGolden)
}

func goldenFile(name string) string { return filepath.Join("testdata", "golden", name+".jsonl") }

var identities = regexp.MustCompile(`"identity":"[^"]*"`)

func writeGolden(t *testing.T, name string, run *drover.Run) {
	t.Helper()
	var all []byte
	for e, err := range run.History(t.Context(), drover.HistoryOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		line, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		all = append(append(all, identities.ReplaceAll(line, []byte(`"identity":"worker"`))...), '\n')
	}
	if err := os.WriteFile(goldenFile(name), all, 0o600); err != nil {
		t.Fatal(err)
	}
}
