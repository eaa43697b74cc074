// Command splitmerge-selector is a race. All runners start at once, each in an activity, and the
// workflow writes down their names in the order in which they arrive. Run it beside "drover dev":
//
//	go run ./examples/workflows/splitmerge-selector
//
// and in another terminal start the race; who needs 0 seconds has fallen:
//
//	drover start race --wait --input '[{"name": "snail", "seconds": 9},
//	  {"name": "hare", "seconds": 3}, {"name": "foal", "seconds": 0}]'
package main

import (
	"context"
	"log"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/contract"
	"github.com/droverhq/drover/decider/workflow"
)

// Runner takes part in a race.
type Runner struct {
	Name    string `json:"name"`
	Seconds int    `json:"seconds"` // that it needs; 0 if it falls
}

var (
	Run    = contract.Activity[Runner, string]("run")
	Fallen = contract.Fault[string]("fallen") // its details are the name
	Race   = contract.Workflow[[]Runner, []string]("race")
)

// race is the workflow. Each case is chosen once, when its runner has arrived.
func race(ctx workflow.Context, runners []Runner) ([]string, error) {
	var arrived []string
	var arrivals []workflow.Case
	for _, r := range runners {
		running := workflow.Start(ctx, Run, r)
		arrivals = append(arrivals, workflow.On(running, func(name string, err error) {
			if err == nil {
				arrived = append(arrived, name)
			}
		}))
	}
	for range runners {
		if err := workflow.Select(ctx, arrivals...); err != nil {
			return nil, err
		}
	}
	return arrived, nil
}

// run is the activity.
func run(ctx context.Context, r Runner) (string, error) {
	if r.Seconds == 0 {
		return "", Fallen.With(r.Name)
	}
	select {
	case <-time.After(time.Duration(r.Seconds) * time.Second):
		return r.Name, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

func implement(w *drover.Worker) {
	workflow.Implement(w, Race, race, nil)
	activity.Implement(w, Run, run)
}

func main() {
	ctx := context.Background()
	client, err := drover.Connect(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	w := client.Worker(nil)
	implement(w)
	if err := w.Run(ctx); err != nil {
		log.Fatal(err)
	}
}
