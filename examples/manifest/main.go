// Command manifest writes the SHA-256 of every file of a folder into a manifest that "sha256sum -c" accepts. Each file is
// an activity of one workflow, so that the work is spread over all workers, goes on where it was after a crash, and can
// be looked at while it runs.
//
//	manifest -dir DIR -out FILE [-width 8] [-files-from FILE] [-id ID]
//
// It is its own decider worker and activity worker; start it on other machines that see the same folders, with the same
// -id, and they share the work. If it is ended before the workflow is, the same command with the same -id goes on.
//
// decider.go is what happens in which order, activities.go is the work. Names and digests travel by files in a scratch
// folder (scratch.go), so that no message grows with the folder, and so that names which are not UTF-8 survive.
package main

import (
	"context"
	"errors"
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
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run returns the exit code: 0 done, 1 failed, 2 wrong usage.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	switch {
	case errors.Is(err, errHelp):
		return 0
	case err != nil:
		fmt.Fprintln(stderr, "manifest:", err)
		return 2
	}
	client, err := drover.Connect(ctx, &drover.Options{URL: o.url})
	if err == nil {
		defer client.Close()
		err = manifest(ctx, client, o, stdin, stdout, stderr)
	}
	if err != nil {
		fmt.Fprintln(stderr, "manifest:", err)
		return 1
	}
	return 0
}

// manifest starts the workflow, or joins the open one of the same id, and works until it has ended.
func manifest(ctx context.Context, client *drover.Client, o *options, stdin io.Reader, stdout, stderr io.Writer) (err error) {
	began := time.Now()
	run, r, err := start(ctx, client, o, stdin, stderr)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "workflow %s run %s\n", run.ID, run.RunID)
	stop := runWorkers(ctx, client)
	defer func() { err = errors.Join(err, stop()) }()
	outcome, err := wait(ctx, run, o.progress, stderr)
	if err != nil {
		return fmt.Errorf("%w; the workflow goes on when you repeat the command with -id %s", err, run.ID)
	}
	// Nobody needs the scratch folder of a run that has ended, however it did.
	if err := os.RemoveAll(r.Scratch); err != nil {
		return err
	}
	if err := outcome.Err(); err != nil {
		return fmt.Errorf("%w; look at it with: drover history %s", err, run.ID)
	}
	var s summary
	if err := outcome.Result.Decode(&s); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "wrote %s: %d files, %d bytes in %.2fs\n", s.Manifest, s.Files, s.Bytes, time.Since(began).Seconds())
	fmt.Fprintf(stdout, "look further with: drover describe %[1]s, drover history %[1]s\n", run.ID)
	return nil
}

// start starts the workflow, or joins the open run of the id.
func start(ctx context.Context, client *drover.Client, o *options, stdin io.Reader, stderr io.Writer) (*drover.Run, *request, error) {
	r, err := o.request(stdin)
	if err != nil {
		return nil, nil, err
	}
	run, err := client.Start(ctx, workflowType, r, &drover.StartOptions{ID: o.id})
	if err == nil {
		return run, r, nil
	}
	if errors.Is(err, drover.ErrUnavailable) || errors.Is(err, drover.ErrTimeout) {
		// Perhaps it was started all the same, and then it needs the folder.
		return nil, nil, fmt.Errorf("%w; %s is kept for it", err, r.Scratch)
	}
	if gone := os.RemoveAll(r.Scratch); gone != nil {
		return nil, nil, errors.Join(err, gone)
	}
	if open, is := errors.AsType[*drover.Error](err); is && errors.Is(err, drover.ErrAlreadyStarted) {
		return join(ctx, client.Run(open.ID, open.Run), stderr)
	}
	return nil, nil, err
}

// join looks at what an open run was asked for: that counts, and not the flags of this call.
func join(ctx context.Context, run *drover.Run, stderr io.Writer) (*drover.Run, *request, error) {
	d, err := run.Describe(ctx)
	if err != nil {
		return nil, nil, err
	}
	r := &request{}
	if err := d.Input.Decode(r); err != nil || d.Execution.Type != workflowType || r.validate() != nil {
		return nil, nil, fmt.Errorf("workflow %s is open and is no manifest: choose another -id", run.ID)
	}
	fmt.Fprintf(stderr, "manifest: going on with the open run: %s into %s\n", r.Dir, r.Out)
	return run, r, nil
}

// runWorkers runs a decider worker and an activity worker until the returned function is called.
func runWorkers(ctx context.Context, client *drover.Client) (stop func() error) {
	deciders := client.Deciders(nil)
	deciders.Register(workflowType, decider.Func(decide))
	activities := client.Activities(&activity.Options{Lists: []string{taskList}})
	activity.Register(activities, activityList, list)
	activity.Register(activities, activityHash, hash)
	activity.Register(activities, activityWrite, write)

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

// wait waits for the end of the run, and shows how far it is if that is wanted.
func wait(ctx context.Context, run *drover.Run, progress bool, out io.Writer) (*drover.Outcome, error) {
	watching, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	if progress {
		wg.Go(func() { watch(watching, run, out) })
	}
	outcome, err := run.Wait(ctx)
	cancel()
	wg.Wait()
	return outcome, err
}

// watch shows how far the run is, as its decider's context tells. Only a person needs it, so that errors end it silently.
func watch(ctx context.Context, run *drover.Run, out io.Writer) {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	defer fmt.Fprintln(out)
	for {
		d, err := run.Describe(ctx)
		var s state
		if err != nil || d.LatestContext.Decode(&s) != nil {
			return
		}
		fmt.Fprintf(out, "\r%-8s %d of %d files, %d bytes", s.Step, s.done(), s.Files, s.Bytes)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
