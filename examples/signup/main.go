// This is a worker: it answers for the workflow and works on the activity. Start as many as you
// like, on any machine.
package main

import (
	"context"
	"log"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/decider/workflow"

	"github.com/droverhq/drover/examples/signup/contracts"
)

func implement(w *drover.Worker) {
	workflow.Implement(w, contracts.Signup, signup, nil)
	activity.Implement(w, contracts.SendMail, sendMail)
}

func main() {
	ctx := context.Background()
	client, err := drover.Connect(ctx, nil) // $NATS_URL, or a server on this machine
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	w := client.Worker(nil)
	implement(w)
	if err := w.Run(ctx); err != nil { // until SIGTERM or Ctrl-C
		log.Fatal(err)
	}
}
