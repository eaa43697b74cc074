package e2e

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/contract"
	"github.com/droverhq/drover/decider/workflow"
	"github.com/droverhq/drover/schemas"
)

var (
	pay    = contract.Activity[string, string]("pay")
	kin    = contract.Workflow[string, string]("kin")
	papers = contract.Signal[string]("papers")
)

// killable is a workflow with a turn for each kind of thing that code waits for, 0 to turns-1. At the beginning of each of
// them it calls at.
func killable(n int) (*contract.WorkflowOf[string, string], func(at func(turn int)) func(workflow.Context, string) (string, error)) {
	of := contract.Workflow[string, string](fmt.Sprint("killable-", n), papers)
	return of, func(at func(int)) func(workflow.Context, string) (string, error) {
		return func(ctx workflow.Context, in string) (string, error) {
			at(0)
			paid, err := workflow.Call(ctx, pay, in)
			if err != nil {
				return "", err
			}
			at(1)
			if err := workflow.Sleep(ctx, 20*time.Millisecond); err != nil {
				return "", err
			}
			at(2)
			signed, err := workflow.Signals(ctx, papers).Receive(ctx)
			if err != nil {
				return "", err
			}
			at(3)
			child, err := workflow.Call(ctx, kin, signed)
			if err != nil {
				return "", err
			}
			at(4)
			step, err := workflow.Do(ctx, "step", func(context.Context) (string, error) { return "done", nil })
			if err != nil {
				return "", err
			}
			at(5)
			both, err := workflow.Map(ctx, []string{"x", "y"}, 0, func(ctx workflow.Context, s string) (string, error) {
				return workflow.Call(ctx, pay, s)
			})
			at(6)
			return fmt.Sprint(paid, " ", child, " ", step, " ", both), err
		}
	}
}

const turns = 7

// codeRole is a worker of workflow code that kills itself at a turn.
func codeRole(ctx context.Context) error {
	c, err := connectRole(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	n, err := strconv.Atoi(os.Getenv(envName))
	if err != nil {
		return err
	}
	w := c.Worker(nil)
	of, code := killable(n)
	workflow.Implement(w, of, code(func(turn int) {
		if turn == n {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}), nil)
	return w.Run(ctx)
}

// A worker of workflow code is killed with -9 between all turns of a run. Another one goes on with it: nothing is asked for twice.
func TestCodeGoesOnWhereverItsWorkerIsKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.embedded("--profile", "dev")
	others := w.client.Worker(nil)
	activity.Implement(others, pay, func(_ context.Context, s string) (string, error) { return "paid " + s, nil })
	workflow.Implement(others, kin, func(_ workflow.Context, s string) (string, error) { return "kin " + s, nil }, nil)
	defer w.background(others.Run)()
	var victims []*process
	for n := range turns {
		victims = append(victims, w.role("code", fmt.Sprint(n)))
	}
	var all []*drover.Run
	for n := range turns {
		of, _ := killable(n)
		run := w.start(of.Name(), of.Name(), "in", startOptions{DecisionTimeout: 2 * time.Second})
		ctx, cancel := w.bounded()
		if err := drover.Signal(ctx, run, papers, "signed"); err != nil {
			t.Fatal(err)
		}
		cancel()
		all = append(all, run)
	}
	heirs := w.client.Worker(nil)
	for n, victim := range victims {
		select {
		case <-victim.Ended:
		case <-time.After(patience):
			t.Fatalf("turn %d does not come: %s", n, victim.Tail())
		}
		of, code := killable(n)
		workflow.Implement(heirs, of, code(func(int) {}), nil)
	}
	defer w.background(heirs.Run)()
	for _, run := range all {
		w.completes(run, `"paid in kin signed done [paid x paid y]"`)
		asked := map[string]int{}
		for _, e := range w.events(run) {
			switch a := e.Attributes.(type) {
			case *schemas.ActivityScheduled:
				asked[a.ActivityID]++
			case *schemas.TimerScheduled:
				asked[a.TimerID]++
			case *schemas.ChildScheduled:
				asked[a.WorkflowID]++
			case *schemas.Marker:
				asked[a.MarkerName]++
			}
		}
		for what, times := range asked {
			if times != 1 {
				t.Errorf("%s: %s is asked for %d times", run.ID, what, times)
			}
		}
		if len(asked) != 6 {
			t.Errorf("%s: asked for %v, want three activities, a timer, a child and a step", run.ID, asked)
		}
	}
	w.verify()
}
