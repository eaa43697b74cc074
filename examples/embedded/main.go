// Command embedded runs a whole Drover inside itself, starts a workflow, and prints its result.
package main

import (
	"context"
	"fmt"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/server"
)

func main() {
	ctx, stop := context.WithCancel(context.Background())
	// A NATS server in memory, on a free port, and all roles. With StoreDir it remembers.
	s := must(server.New(server.Options{Embedded: embedded.Options{Port: -1}}))
	ended := make(chan error)
	go func() { ended <- s.Run(ctx) }()
	client := must(drover.Connect(ctx, &drover.Options{URL: must(s.Ready(ctx)).URL}))
	rest := work(client) // a decider and an activity: greet.go

	run := must(client.Start(ctx, "greet", "ox", nil))
	fmt.Println(string(must(run.Wait(ctx)).Result))

	rest()
	stop() // a planned stop: Run returns when everything is handed over
	must(0, <-ended)
}
