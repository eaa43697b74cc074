// Command pickfirst waits at two bus stops at once. The first bus counts; then nobody waits at the
// other stop any more: its activity is canceled. Run it beside "drover dev":
//
//	go run ./examples/workflows/pickfirst
//
// and in another terminal start it, and look at what became of the other activity:
//
//	drover start go-by-bus --id home --wait \
//	  --input '[{"line": "7", "seconds": 30}, {"line": "12", "seconds": 5}]'
//	drover history home
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

// Bus comes after some seconds.
type Bus struct {
	Line    string `json:"line"`
	Seconds int    `json:"seconds"`
}

var (
	WaitForBus = contract.Activity[Bus, string]("wait-for-bus")
	GoByBus    = contract.Workflow[[2]Bus, string]("go-by-bus")
)

// goByBus is the workflow. It returns the line of the bus that came first.
func goByBus(ctx workflow.Context, buses [2]Bus) (string, error) {
	stops := [2]*workflow.Future[string]{
		workflow.Start(ctx, WaitForBus, buses[0]),
		workflow.Start(ctx, WaitForBus, buses[1]),
	}
	first, err := workflow.First(ctx, stops[0], stops[1])
	if err != nil {
		return "", err
	}
	other := stops[1-first]
	other.Cancel()
	if _, err := other.Get(ctx); err != nil { // it has ended
		workflow.Log(ctx).Infof("the other bus: %v", err)
	}
	return stops[first].Get(ctx)
}

// waitForBus is the activity. Its context is done when it is canceled.
func waitForBus(ctx context.Context, b Bus) (string, error) {
	select {
	case <-time.After(time.Duration(b.Seconds) * time.Second):
		return b.Line, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

func implement(w *drover.Worker) {
	workflow.Implement(w, GoByBus, goByBus, nil)
	activity.Implement(w, WaitForBus, waitForBus)
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
