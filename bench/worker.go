package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/schemas"
)

const workerRole = "worker"

// job is the input of a bench workflow: N activities, one after the other ("seq"), at once ("fan"), or one after the
// other with a question before each ("once": not idempotent); N signals to wait for ("signals"); or one timer ("sleep").
type job struct {
	Kind    string `json:"kind"`
	N       int    `json:"n,omitempty"`
	Millis  int64  `json:"millis,omitempty"`
	Payload string `json:"payload"`
	List    string `json:"list,omitempty"` // of the activities; "bench" if empty
	Size    int    `json:"size,omitempty"` // of their arguments, in bytes; that of Payload if 0
}

func runWorker(args []string) error {
	if len(args) != 2 {
		return errors.New("want the server's URL and how many task lists to serve")
	}
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	lists := make([]string, n)
	for i := range lists {
		lists[i] = listName(i)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	client, err := drover.Connect(ctx, &drover.Options{URL: args[0], Name: "bench worker"})
	if err != nil {
		return err
	}
	defer client.Close()
	return work(ctx, client, lists)
}

// work decides, and acts for the lists, until ctx ends.
func work(ctx context.Context, client *drover.Client, lists []string) error {
	deciders := decider.New(client.Conn(), &decider.Options{Concurrency: 256})
	var late lags
	deciders.Register("bench", decider.Func(func(ctx context.Context, t *decider.Task) ([]schemas.Decision, error) {
		late.note(t.Events(), time.Now())
		return decide(ctx, t)
	}))
	workers := activity.New(client.Conn(), &activity.Options{Lists: lists, Concurrency: max(512, 4*len(lists))})
	note, err := noteRuns()
	if err != nil {
		return err
	}
	activity.Register(workers, "noop", func(_ context.Context, in string) (string, error) { return in, note() })
	activity.Register(workers, "echo", func(_ context.Context, in schemas.Payload) (schemas.Payload, error) { return in, note() })
	var wg sync.WaitGroup
	var errs [4]error
	wg.Go(func() { errs[0] = deciders.Run(ctx) })
	wg.Go(func() { errs[1] = workers.Run(ctx) })
	wg.Go(func() { errs[2] = flows(client)(ctx) })
	wg.Go(func() { errs[3] = late.serve(ctx, client) })
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
	t.SetContext(p.text())
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
	options := []decider.ActivityOption{decider.List(cmp.Or(p.List, benchList))}
	if p.Kind == "once" {
		options = append(options, decider.NotIdempotent())
	}
	input := p.Payload
	if p.Size > 0 {
		input = strings.Repeat("x", p.Size)
	}
	for p.Scheduled < p.N && p.Scheduled-p.Closed < width {
		p.Scheduled++
		ds = append(ds, decider.Schedule(strconv.Itoa(p.Scheduled), "noop", input, options...))
	}
	return ds
}
