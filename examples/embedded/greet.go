package main

import (
	"context"
	"log"
	"sync"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/schemas"
)

// greet decides over a greeting: one activity, whose result is that of the workflow.
func greet(ctx context.Context, t *decider.Task) ([]schemas.Decision, error) {
	run, err := t.View(ctx)
	if err != nil {
		return nil, err
	}
	switch status, result, reason := run.Activity("hello"); {
	case status == 0:
		return []schemas.Decision{decider.Schedule("hello", "hello", run.Input(), decider.List("words"))}, nil
	case status == decider.ActivitySucceeded:
		return []schemas.Decision{decider.Complete(result)}, nil
	case status.Closed():
		return []schemas.Decision{decider.Fail(reason, nil)}, nil
	}
	return nil, nil // it runs
}

// hello is the activity.
func hello(_ context.Context, name string) (string, error) { return "hello " + name, nil }

// work runs a decider worker and an activity worker until rest.
func work(client *drover.Client) (rest func()) {
	deciders := client.Deciders(nil)
	deciders.Register("greet", decider.Func(greet))
	activities := client.Activities(&activity.Options{Lists: []string{"words"}})
	activity.Register(activities, "hello", hello)
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for _, run := range []func(context.Context) error{deciders.Run, activities.Run} {
		wg.Go(func() {
			if err := run(ctx); err != nil {
				log.Print(err)
			}
		})
	}
	return func() { stop(); wg.Wait(); client.Close() }
}

// must ends the program if something has failed.
func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
