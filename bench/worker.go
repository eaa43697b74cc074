package main

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/decider/workflow"
	"github.com/droverhq/drover/schemas"
)

const workerRole = "worker"

// job is the input of a bench workflow: N activities, one after the other ("seq"), at once ("fan"), or one after the
// other with a question before each ("once": not idempotent) or with a context in JSON ("json"); N signals to wait for
// ("signals"); one timer ("sleep"); or N steps of workflow code ("do", "quick").
type job struct {
	Kind    string `json:"kind"`
	N       int    `json:"n,omitempty"`
	Millis  int64  `json:"millis,omitempty"`
	Payload string `json:"payload"`
}

// benchList is the task list of all activities.
const benchList = "bench"

func runWorker(args []string) error {
	if len(args) != 1 {
		return errors.New("want the server's URL")
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	client, err := drover.Connect(ctx, &drover.Options{URL: args[0], Name: "bench worker"})
	if err != nil {
		return err
	}
	defer client.Close()
	return work(ctx, client)
}

// work decides and acts until ctx ends.
func work(ctx context.Context, client *drover.Client) error {
	deciders := decider.New(client, &decider.Options{Concurrency: 256})
	var late lags
	deciders.Register("bench", decider.Func(func(ctx context.Context, t *decider.Task) ([]schemas.Decision, error) {
		late.note(t.Events(), time.Now())
		return decide(ctx, t)
	}))
	for i := range visibleTypes {
		deciders.Register(visibleType(i), decider.Func(decideVisible))
	}
	workflow.Implement(deciders, stepping, steps, nil)
	workflow.Implement(deciders, coded, code, nil)
	workers := activity.New(client, &activity.Options{Lists: []string{benchList}, Concurrency: 512})
	note, err := noteRuns()
	if err != nil {
		return err
	}
	activity.Register(workers, "noop", func(_ context.Context, in string) (string, error) { return in, note() })
	var wg sync.WaitGroup
	var errs [3]error
	wg.Go(func() { errs[0] = deciders.Run(ctx) })
	wg.Go(func() { errs[1] = workers.Run(ctx) })
	wg.Go(func() { errs[2] = late.serve(ctx, client) })
	wg.Wait()
	return errors.Join(errs[:]...)
}

func decide(_ context.Context, t *decider.Task) ([]schemas.Decision, error) {
	p, err := readProgress(t.Context())
	if err != nil {
		return nil, err
	}
	for _, e := range t.Events() {
		switch a := e.Attributes.(type) {
		case *schemas.WorkflowStarted:
			if err := a.Input.Decode(&p.job); err != nil {
				return nil, err
			}
		case *schemas.ActivitySuccess, *schemas.Signal, *schemas.TimerExpired:
			p.Closed++
		case *schemas.ActivityFailed, *schemas.ActivityTimedOut:
			return nil, fmt.Errorf("an activity of the bench failed: %s", e.Type())
		}
	}
	if p.Kind == "sleep" {
		p.N = 1
	}
	if p.Closed == p.N {
		return []schemas.Decision{decider.Complete("done")}, nil
	}
	ds := next(&p)
	kept := p.text()
	if p.Kind == "json" {
		if kept, err = schemas.JSONPayload(p); err != nil {
			return nil, err
		}
	}
	t.SetContext(kept)
	return ds, nil
}

// next is what a workflow does that is not done.
func next(p *progress) (ds []schemas.Decision) {
	width := 1
	switch p.Kind {
	case "signals":
		return nil
	case "sleep":
		if p.Scheduled == 0 {
			p.Scheduled = 1
			ds = append(ds, decider.Timer("sleep", time.Duration(p.Millis)*time.Millisecond))
		}
		return ds
	case "fan":
		width = p.N
	}
	options := []decider.ActivityOption{decider.List(benchList)}
	if p.Kind == "once" {
		options = append(options, decider.NotIdempotent())
	}
	for p.Scheduled < p.N && p.Scheduled-p.Closed < width {
		p.Scheduled++
		ds = append(ds, decider.Schedule(strconv.Itoa(p.Scheduled), "noop", p.Payload, options...))
	}
	return ds
}
