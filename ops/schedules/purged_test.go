package schedules_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/drovertest"
	"github.com/droverhq/drover/ops/schedules"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// A chain is open although its first run is purged and another master has come: the next slot is skipped, and the slot is done
// when the chain ends (S2-10).
func TestTheFirstRunOfAChainIsPurged(t *testing.T) {
	drovertest.Run(t, &drovertest.Options{Partitions: 1}, func(t *testing.T, e *drovertest.Env) {
		w := e.Client.Deciders(nil)
		w.Register("chain", decider.Func(func(_ context.Context, task *decider.Task) ([]schemas.Decision, error) {
			for _, ev := range task.Events() {
				switch a := ev.Attributes.(type) {
				case *schemas.WorkflowStarted:
					if a.ContinuedExecutionRun == "" {
						return []schemas.Decision{schemas.Decide(&schemas.ContinueAsNew{})}, nil
					}
				case *schemas.Signal:
					return []schemas.Decision{schemas.Decide(&schemas.CompleteWorkflow{})}, nil
				}
			}
			return nil, nil
		}))
		e.Go(w)
		master := func() (end func()) {
			s, err := schedules.New(schedules.Options{Conn: natsconn.Of(e.Client), Namespace: ns, Node: "n1"})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			var running sync.WaitGroup
			running.Go(func() { _ = s.Run(ctx) })
			<-s.Settled()
			return func() { cancel(); running.Wait() }
		}
		state := func() *ops.ScheduleState {
			return ask(t, e, "scheduleShow", &ops.ScheduleRequest{ID: "s"}).State
		}
		end := master()
		ask(t, e, "scheduleCreate", &ops.ScheduleCreateRequest{Schedule: ops.Schedule{
			ID: "s", Times: &ops.ScheduleTimes{Every: []ops.ScheduleInterval{{Every: schemas.Seconds(3600)}}},
			Action: ops.ScheduleAction{Start: &schemas.StartRequest{Type: "chain"}},
		}})
		time.Sleep(time.Hour)
		slots := state().Running
		if len(slots) != 1 {
			t.Fatalf("got %+v, want one slot whose run is open", slots)
		}
		first := slots[0]
		end()
		if err := natsconn.Of(e.Client).PurgeSubject(t.Context(), ns.StreamHistory(0), ns.History(0, first.WorkflowID, first.Run)); err != nil {
			t.Fatal(err)
		}
		defer master()()
		time.Sleep(time.Hour)
		if s := state(); len(s.Running) != 1 || s.Counts.Started != 1 || s.Counts.Skipped != 1 {
			t.Fatalf("got %+v, want the slot before open still, and this one skipped", s)
		}
		if err := e.Client.Run(first.WorkflowID, "").Signal(t.Context(), "end", nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if s := state(); len(s.Running) != 0 || s.Counts.Done != 1 {
			t.Errorf("got %+v, want the slot done", s)
		}
	})
}
