package main

import (
	"context"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/decider"
)

// decide is asked whenever something has happened to a run: TaskA and TaskB at once, TaskC when either is done.
func decide(ctx context.Context, t *decider.Task) ([]drover.Decision, error) {
	run, err := t.View(ctx)
	if err != nil {
		return nil, err
	}
	task := func(name string) drover.Decision {
		return decider.Schedule(name, "work", run.Input(), decider.List("parallel"))
	}
	for _, name := range []string{"TaskA", "TaskB", "TaskC"} {
		if status, _, reason := run.Activity(name); status.Closed() && status != decider.ActivitySucceeded {
			return []drover.Decision{decider.Fail(name+": "+reason, nil)}, nil
		}
	}
	switch {
	case run.Counts().Scheduled == 0:
		return []drover.Decision{task("TaskA"), task("TaskB")}, nil
	case run.Counts("TaskC").Scheduled == 0 && (run.Done("TaskA") || run.Done("TaskB")):
		return []drover.Decision{task("TaskC")}, nil
	case run.Done("TaskA", "TaskB", "TaskC"):
		return []drover.Decision{decider.Complete("all three are done")}, nil
	}
	return nil, nil // wait for what is open
}

// work is the activity: ordinary code that takes its time, may fail, and may run on any machine.
func work(ctx context.Context, order string) (string, error) {
	name := activity.Info(ctx).ActivityID
	select {
	case <-time.After(pace[name]):
		return name + " of " + order, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}
