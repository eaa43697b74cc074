// Command worker is the smallest worker: TestAWorkerLinksNoServer lists what it links.
package main

import (
	"context"
	"log"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/schemas"
)

func main() {
	ctx := context.Background()
	c, err := drover.Connect(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	deciders := c.Deciders(nil)
	deciders.Register("greet", decider.Func(func(context.Context, *decider.Task) ([]schemas.Decision, error) {
		return []schemas.Decision{decider.Complete("hello")}, nil
	}))
	activities := c.Activities(&activity.Options{Lists: []string{"main"}})
	activity.Register(activities, "hello", func(_ context.Context, name string) (string, error) {
		return "hello " + name, nil
	})
	go activities.Run(ctx)
	log.Print(deciders.Run(ctx))
}
