// Command helloworld is a workflow in code: it greets somebody, by an activity that may fail.
// Run it beside "drover dev", and start it with
//
//	drover start helloworld --input '"World"' --wait
package main

import (
	"context"
	"log"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/contract"
	"github.com/droverhq/drover/decider/workflow"
)

var (
	Greet = contract.Activity[string, string]("greet")
	Hello = contract.Workflow[string, string]("helloworld")
)

// hello is the workflow: it must do the same each time, so all that it does goes by activities.
func hello(ctx workflow.Context, name string) (string, error) {
	return workflow.Call(ctx, Greet, name)
}

// greet is the activity: it may do anything, and is tried again when it fails.
func greet(_ context.Context, name string) (string, error) { return "Hello, " + name + "!", nil }

func main() {
	ctx := context.Background()
	client, err := drover.Connect(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	w := client.Worker(nil)
	workflow.Implement(w, Hello, hello, nil)
	activity.Implement(w, Greet, greet)
	if err := w.Run(ctx); err != nil {
		log.Fatal(err)
	}
}
