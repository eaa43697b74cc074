package workflows

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/schemas"
)

// slowAfter is when a wait says what it waits for.
const slowAfter = 2 * time.Second

// runPatience bounds how long an interrupted command looks for the run that it waited for.
const runPatience = time.Second

// awaitOutcome is outcome for a workflow that goes on without this process: Ctrl-C ends the wait,
// and says how to go on with it.
func awaitOutcome(
	ctx context.Context, a *cli.App, c *drover.Client, run *drover.Run, began time.Time,
) error {
	waiting, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	err := ShowOutcome(waiting, a, c, run, began)
	if _, ended := errors.AsType[*drover.WorkflowError](err); err == nil || ended ||
		!errors.Is(waiting.Err(), context.Canceled) {
		return err
	}
	e := &drover.Error{
		Op: "result", ID: run.ID, Run: run.RunID, Code: schemas.CodeTimeout,
		Err: cli.ErrInterrupted,
	}
	if e.Run == "" {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), runPatience)
		defer cancel()
		if d, err := run.Describe(ctx); err == nil {
			e.Run = d.Execution.Run
		}
	}
	words := []string{"result", e.ID}
	if e.Run != "" {
		words = append(words, "--run", e.Run)
	}
	e.Hint = "wait for it again: " + a.CommandLine(words...)
	return e
}

// waitFor waits for the end of a run. If that takes long, a line on stderr says what the run waits
// for.
func waitFor(
	ctx context.Context, a *cli.App, c *drover.Client, run *drover.Run,
) (*drover.Outcome, error) {
	if a.JSON {
		return run.Wait(ctx) // stderr holds one document at most
	}
	var mu sync.Mutex
	over := false
	slow, stop := context.WithCancel(ctx)
	defer func() {
		stop()
		mu.Lock()
		defer mu.Unlock()
		over = true
	}()
	go func() {
		select {
		case <-time.After(slowAfter):
		case <-slow.Done():
			return
		}
		because, err := whyOrUnserved(slow, c, run.ID, run.RunID)
		mu.Lock()
		defer mu.Unlock()
		if err == nil && !over {
			fmt.Fprintln(a.Stderr, "waiting: "+cli.Sentence(because))
		}
	}()
	return run.Wait(ctx)
}
