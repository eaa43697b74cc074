package workflow_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/contract"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/decider/workflow"
	"github.com/droverhq/drover/drovertest"
	"github.com/droverhq/drover/schemas"
)

// lockScope keeps the locks of runs apart.
func lockScope(ctx workflow.Context) workflow.LockOption {
	return decider.Scope(ctx.Info().WorkflowID)
}

// A run has a lock until it gives it back, and its coroutines one after the other.
func TestLocksOfARun(t *testing.T) {
	howTheyEnd(t, []ending{
		{"taken twice", func(ctx workflow.Context, _ string) (string, error) {
			var fences []uint64
			for range 2 {
				held, err := workflow.Lock(ctx, "l", lockScope(ctx))
				if err != nil {
					return "", err
				}
				fences = append(fences, held.Fence)
				held.Release()
				held.Release()
			}
			return fmt.Sprint(fences[0] < fences[1]), nil
		}, nil, `completed "true"`},
		{"taken by coroutines", func(ctx workflow.Context, _ string) (string, error) {
			inside, most := 0, 0
			_, err := workflow.Map(ctx, make([]int, 3), 0, func(ctx workflow.Context, _ int) (int, error) {
				held, err := workflow.Lock(ctx, "l", lockScope(ctx))
				if err != nil {
					return 0, err
				}
				defer held.Release()
				inside++
				most = max(most, inside)
				err = workflow.Sleep(ctx, time.Second)
				inside--
				return 0, err
			})
			return fmt.Sprint(most), err
		}, nil, `completed "1"`},
		{"refused", func(ctx workflow.Context, _ string) (string, error) {
			_, err := workflow.Lock(ctx, "l", lockScope(ctx), decider.Limit(schemas.MaxLockLimit+1))
			_, again := workflow.Lock(ctx, "l", lockScope(ctx))
			return fmt.Sprint(refusal(err), " ", again == nil), nil
		}, nil, `completed "l INVALID_ATTRIBUTES true"`},
		{"taken on to the next run", func(ctx workflow.Context, in string) (string, error) {
			held, err := workflow.Lock(ctx, "l", lockScope(ctx))
			if err != nil {
				return "", err
			}
			if in == "in" {
				return workflow.ContinueAsNew(ctx, any1, fmt.Sprint(held.Fence))
			}
			return fmt.Sprint(in == fmt.Sprint(held.Fence)), nil
		}, nil, `completed "true"`},
		{"given back before the next run", func(ctx workflow.Context, in string) (string, error) {
			held, err := workflow.Lock(ctx, "l", lockScope(ctx))
			if err != nil {
				return "", err
			}
			defer held.Release()
			if in == "in" {
				return workflow.ContinueAsNew(ctx, any1, fmt.Sprint(held.Fence))
			}
			return fmt.Sprint(in == fmt.Sprint(held.Fence)), nil
		}, nil, `completed "false"`},
	})
}

// One run has a lock at a time. Who is canceled leaves the line, and the end of a run gives back what
// it has.
func TestLocksOfRuns(t *testing.T) {
	for _, kept := range []int{0, -1} {
		drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
			w := e.Client.Worker(nil)
			guard := contract.Workflow[string, uint64]("guard", note)
			workflow.Implement(w, guard, func(ctx workflow.Context, _ string) (uint64, error) {
				held, err := workflow.Lock(ctx, "door")
				if err != nil {
					return 0, err
				}
				_, err = workflow.Signals(ctx, note).Receive(ctx)
				return held.Fence, err
			}, &workflow.Options{Kept: kept})
			e.Go(w)
			begin := func() *drover.TypedRun[uint64] {
				run, err := drover.Start(t.Context(), e.Client, guard, "", nil)
				if err != nil {
					t.Fatal(err)
				}
				return run
			}
			first := begin()
			e.Await(first.ID, schemas.EventLockAcquired)
			second := begin()
			e.Await(second.ID, schemas.EventLockRequested)
			third := begin()
			e.Await(third.ID, schemas.EventLockRequested)
			if err := second.Cancel(t.Context(), "enough"); err != nil {
				t.Fatal(err)
			}
			if o := e.Wait(second.Run); o.Status != schemas.StatusCanceled {
				t.Errorf("who waits for the lock is %s, want canceled", o.Status)
			}
			var fences []uint64
			for _, run := range []*drover.TypedRun[uint64]{first, third} {
				if err := drover.Signal(t.Context(), run, note, "go"); err != nil {
					t.Fatal(err)
				}
				fence, err := run.Result(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				fences = append(fences, fence)
			}
			if fences[0] >= fences[1] {
				t.Errorf("the fences are %v, want that they grow", fences)
			}
		})
	}
}
