package drovertest_test

import (
	"bytes"
	"context"
	"strconv"
	"testing"
	"time"

	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/drovertest"
	"github.com/droverhq/drover/schemas"
)

// Activities that time out in one moment stand in one record. What their heartbeats have said may be more than one holds.
func TestTimeoutsWithMuchDetail(t *testing.T) {
	log, hook := logtest.NewNullLogger()
	drovertest.Run(t, &drovertest.Options{Logger: log}, func(t *testing.T, e *drovertest.Env) {
		const n, size = 8, 200 << 10
		w := e.Client.Deciders(nil)
		w.Register("fan", decider.Func(func(ctx context.Context, task *decider.Task) (all []schemas.Decision, err error) {
			run, err := task.View(ctx)
			switch counts := run.Counts(); {
			case err != nil:
			case counts.Scheduled == 0:
				for i := range n {
					all = append(all, decider.Schedule(strconv.Itoa(i), "hang", nil, decider.List("main"), decider.ScheduleToClose(time.Minute)))
				}
			case counts.Closed == n:
				all = append(all, decider.Complete(nil))
			}
			return all, err
		}))
		a := e.Client.Activities(&activity.Options{Lists: []string{"main"}})
		activity.Register(a, "hang", func(ctx context.Context, _ struct{}) (string, error) {
			if err := activity.Heartbeat(ctx, bytes.Repeat([]byte("x"), size)); err != nil {
				t.Error(err)
			}
			<-ctx.Done()
			return "", ctx.Err()
		})
		e.Go(w, a)
		run, err := e.Client.Start(t.Context(), "fan", nil, &drover.StartOptions{ID: "f"})
		if err != nil {
			t.Fatal(err)
		}
		e.Wait(run)
		told := 0 // as many as fit
		for _, event := range e.History("f") {
			if out, ok := event.Attributes.(*schemas.ActivityTimedOut); ok && len(out.Details) == size {
				told++
			}
		}
		if told == 0 {
			t.Error("no timeout tells what the last heartbeat said")
		}
		for _, entry := range hook.AllEntries() {
			if entry.Message == "partition starts anew" {
				t.Errorf("the partition has started anew: %v", entry.Data["error"])
			}
		}
	})
}
