package drovertest_test

import (
	"context"
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/drovertest"
	"github.com/droverhq/drover/schemas"
)

// Who waits for a lock gets it when the lease of its holder runs out. No run has an alarm for that.
func TestLeapToTheEndOfALease(t *testing.T) {
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		w := e.Client.Deciders(nil)
		w.Register("cook", decider.Func(func(ctx context.Context, task *decider.Task) ([]schemas.Decision, error) {
			run, err := task.View(ctx)
			if err != nil {
				return nil, err
			}
			switch has := run.Lock("oven", "").Status; {
			case has == 0:
				return []schemas.Decision{decider.AcquireLock("oven", decider.Lease(day))}, nil
			case has == decider.LockHeld && string(run.Input()) == `"quick"`:
				return []schemas.Decision{decider.Complete(nil)}, nil
			}
			return nil, nil
		}))
		e.Go(w)
		cook := func(how string) *drover.Run {
			run, err := e.Client.Start(t.Context(), "cook", how, &drover.StartOptions{ID: how})
			if err != nil {
				t.Fatal(err)
			}
			return run
		}
		cook("slow")
		e.Await("slow", schemas.EventLockAcquired)
		since := time.Now()
		e.Sleep(time.Hour)
		e.Result(cook("quick"), nil)
		wantAfter(t, since, day-time.Minute, time.Minute+2*time.Second)
	})
}
