// Command parallel runs one workflow with a raw decider: TaskA and TaskB in parallel, then TaskC as soon as either is
// done. It is its own decider worker and activity worker, so that a server is all it needs:
//
//	drover dev &
//	go run ./examples/parallel
//
// The decider and the activity are in decider.go. Everything else here is connecting, starting and printing.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/schemas"
)

// pace is how long each task takes.
var pace = map[string]time.Duration{
	"TaskA": 60 * time.Millisecond,
	"TaskB": 20 * time.Millisecond,
	"TaskC": 20 * time.Millisecond,
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run returns the exit code: 0 done, 1 failed, 2 wrong usage.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("parallel", flag.ContinueOnError)
	flags.SetOutput(stderr)
	url := flags.String("nats", "", "address of NATS (default $NATS_URL, else nats://127.0.0.1:4222)")
	id := flags.String("id", "", "the workflow id; an open run of it is joined (default a new one)")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	case flags.NArg() > 0:
		fmt.Fprintf(stderr, "parallel: argument %q is too much\n", flags.Arg(0))
		return 2
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	client, err := drover.Connect(ctx, &drover.Options{URL: *url})
	if err == nil {
		defer client.Close()
		err = order(ctx, client, *id, stdout)
	}
	if err != nil {
		fmt.Fprintln(stderr, "parallel:", err)
		return 1
	}
	return 0
}

// order runs the workers for as long as one workflow takes, and prints what became of it.
func order(ctx context.Context, client *drover.Client, id string, out io.Writer) error {
	stop := runWorkers(ctx, client)
	run, err := client.Start(ctx, "parallel", "order 17", &drover.StartOptions{ID: id, ConflictPolicy: schemas.ConflictUseExisting})
	if err != nil {
		return errors.Join(err, stop())
	}
	fmt.Fprintf(out, "workflow %s run %s\n", run.ID, run.RunID)
	var result string
	failed := run.Result(ctx, &result)
	if err := errors.Join(printTimeline(ctx, run, out), failed, stop()); err != nil {
		return err
	}
	fmt.Fprintln(out, "result:", result)
	return nil
}

// runWorkers runs a decider worker and an activity worker on the client's connection until the returned function is
// called.
func runWorkers(ctx context.Context, client *drover.Client) (stop func() error) {
	deciders := client.Deciders(nil)
	deciders.Register("parallel", decider.Func(decide))
	activities := client.Activities(&activity.Options{Lists: []string{"parallel"}})
	activity.Register(activities, "work", work)

	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	errs := make(chan error, 2)
	wg.Go(func() { errs <- deciders.Run(ctx) })
	wg.Go(func() { errs <- activities.Run(ctx) })
	return func() error {
		cancel()
		wg.Wait()
		return errors.Join(<-errs, <-errs)
	}
}
