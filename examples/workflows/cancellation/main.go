// Command cancellation is a campfire. It burns down, or somebody cancels it: then it is put out
// before the run ends as canceled. Run it beside "drover dev":
//
//	go run ./examples/workflows/cancellation
//
// and in another terminal light a fire, cancel it, and look at how it has ended:
//
//	drover start campfire --id fire --input 300
//	drover cancel fire
//	drover history fire
package main

import (
	"context"
	"errors"
	"log"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/contract"
	"github.com/droverhq/drover/decider/workflow"
)

var (
	Burn     = contract.Activity[int, string]("burn") // takes the seconds that it has wood for
	PutOut   = contract.Activity[struct{}, struct{}]("put-out")
	Campfire = contract.Workflow[int, string]("campfire")
)

// campfire is the workflow. Once it is canceled, every call in ctx returns ErrCanceled at once. So
// what is to be done all the same is called without that.
func campfire(ctx workflow.Context, seconds int) (string, error) {
	left, err := workflow.Call(ctx, Burn, seconds)
	if errors.Is(err, workflow.ErrCanceled) {
		_, failed := workflow.Call(workflow.WithoutCancel(ctx), PutOut, struct{}{})
		return "", errors.Join(err, failed)
	}
	return left, err
}

// burn is an activity. Its context is done when it is canceled.
func burn(ctx context.Context, seconds int) (string, error) {
	select {
	case <-time.After(time.Duration(seconds) * time.Second):
		return "ashes", nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// putOut is an activity.
func putOut(context.Context, struct{}) (struct{}, error) {
	log.Print("the fire is out")
	return struct{}{}, nil
}

func implement(w *drover.Worker) {
	workflow.Implement(w, Campfire, campfire, nil)
	activity.Implement(w, Burn, burn)
	activity.Implement(w, PutOut, putOut)
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
