// Command etl moves the lines of a file into another one, item by item, and writes a report once a day. Both are always-on
// workflows: they run all the time, go on where they were after any crash, and no item is done twice.
//
//	go run ./examples/etl
//
// starts a server of its own on a free port, makes a file of 20 lines, and ends when all of them are done and the report of the
// day is written. It needs the go command, since it builds the server that it runs. Beside a server that runs:
//
//	drover dev &
//	go run ./examples/etl -nats nats://127.0.0.1:4222 -dir /tmp/etl
//
// End it wherever you like and give the command again, append lines to in.txt, kill the server: out.txt has each line once, in
// its order.
//
// Where to read on: copy.go is the long workflow. It keeps two watermarks: how far it has read, and how far it has written. They
// travel in its context, and into the next run when it is asked to continue as new. A run that somebody has ended, and that is begun
// anew, begins with the first line and writes the same bytes to the same places. report.go is the daily one: it looks every few
// minutes, within a window of the day, whether it is the first to do so today. The service answers that with true once a day.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// limit bounds a whole run of the program, which takes a few seconds.
const limit = 2 * time.Minute

// taskList is that of all activities here.
const taskList = "etl"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run returns the exit code: 0 all is done, 1 something failed, 2 wrong usage.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("etl", flag.ContinueOnError)
	flags.SetOutput(stderr)
	url := flags.String("nats", "", "address of NATS, where a drover server runs (default one of its own)")
	dir := flags.String("dir", "", "folder of in.txt, out.txt and the reports (default a new one)")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	case flags.NArg() > 0:
		fmt.Fprintf(stderr, "etl: argument %q is too much\n", flags.Arg(0))
		return 2
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := all(ctx, *url, *dir, stdout); err != nil {
		fmt.Fprintln(stderr, "etl:", err)
		return 1
	}
	return 0
}

// all does everything, with a server of its own if no address is given.
func all(ctx context.Context, url, dir string, out io.Writer) (err error) {
	if dir == "" {
		if dir, err = os.MkdirTemp("", "drover-etl-"); err != nil {
			return err
		}
	} else if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	own := url == ""
	if own {
		s, err := startServer(ctx)
		if err != nil {
			return err
		}
		defer s.stop()
		url = s.url
	}
	client, err := drover.Connect(ctx, &drover.Options{URL: url})
	if err != nil {
		return err
	}
	defer client.Close()
	stop := work(ctx, client)
	defer func() { err = errors.Join(err, stop()) }()
	if err := demo(dir); err != nil {
		return err
	}
	if err := add(ctx, client, dir, time.Second); err != nil {
		return err
	}
	if err := await(ctx, dir); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s has all lines of %s\n%s is the report of today\n", outFile(dir), inFile(dir), reportFile(dir, today()))
	if own {
		return nil // its server ends with this program
	}
	fmt.Fprintf(out, "look further with: drover always-on list, drover describe etl-copy, drover history etl-copy\n")
	return nil
}

func inFile(dir string) string             { return filepath.Join(dir, "in.txt") }
func outFile(dir string) string            { return filepath.Join(dir, "out.txt") }
func reportFile(dir, period string) string { return filepath.Join(dir, "report-"+period+".txt") }
func today() string                        { return time.Now().UTC().Format(time.DateOnly) }

// demo makes a file to read, unless there is one.
func demo(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var text strings.Builder
	for i := range 20 {
		fmt.Fprintf(&text, "item %d\n", i+1)
	}
	f, err := os.OpenFile(inFile(dir), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(text.String())
	return errors.Join(err, f.Close())
}

// add says what is to run all the time, and how often the copy looks for new lines. It may be said again.
func add(ctx context.Context, client *drover.Client, dir string, every time.Duration) error {
	for id, input := range map[string]any{
		"etl-copy":   watermark{In: inFile(dir), Out: outFile(dir), Every: schemas.Duration(every)},
		"etl-report": day{Dir: dir, Length: schemas.Duration(24 * time.Hour), Every: schemas.Duration(time.Minute)},
	} {
		body, err := schemas.JSONPayload(input)
		if err != nil {
			return err
		}
		a, err := client.AddAlwaysOn(ctx, ops.AlwaysOn{Start: schemas.StartRequest{WorkflowID: id, Type: id, Input: body}})
		if err != nil {
			return err
		}
		if r := a.Record; a.Changed && r.Open { // it has worked in another folder
			return fmt.Errorf("%s runs with another folder: stop and start it with drover always-on, or give -dir as before", id)
		}
	}
	return nil
}

// work runs a decider worker and an activity worker until the returned function is called.
func work(ctx context.Context, client *drover.Client) (stop func() error) {
	deciders := client.Deciders(nil)
	deciders.Register("etl-copy", decider.Func(decideCopy))
	deciders.Register("etl-report", decider.Func(decideReport))
	activities := client.Activities(&activity.Options{Lists: []string{taskList}})
	activity.Register(activities, "etl-item", copyItem)
	activity.Register(activities, "etl-report", writeReport)

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

// await waits until all lines are done that the file has now, and the report is there.
func await(ctx context.Context, dir string) error {
	in, err := os.ReadFile(inFile(dir))
	if err != nil {
		return err
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		out, err := os.ReadFile(outFile(dir))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		_, missing := os.Stat(reportFile(dir, today()))
		if missing == nil && strings.Count(string(out), "\n") >= strings.Count(string(in), "\n") {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%d of %d lines are done, the report is there: %t: %w; see what they wait for with: drover why etl-copy, drover why etl-report",
				strings.Count(string(out), "\n"), strings.Count(string(in), "\n"), missing == nil, ctx.Err())
		}
	}
}
