// Command ownworker is the program of docs/start/your-own-worker.md: a decider worker and an activity worker in one process, as
// somebody would write it in a module of their own.
package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/decider"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	client, err := drover.Connect(ctx, nil) // $NATS_URL, or a server on this machine
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	deciders := client.Deciders(nil)
	deciders.Register("welcome", decider.Func(welcome))
	activities := client.Activities(&activity.Options{Lists: []string{"mail"}})
	activity.Register(activities, "mail", mail)

	// Both run until the program is told to stop, and finish what they have begun.
	var wg sync.WaitGroup
	for _, worker := range []func(context.Context) error{deciders.Run, activities.Run} {
		wg.Go(func() {
			defer stop() // neither is of use without the other
			if err := worker(ctx); err != nil {
				log.Print(err)
			}
		})
	}
	wg.Wait()
}
