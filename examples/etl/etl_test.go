package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/drovertest"
	"github.com/droverhq/drover/internal/logx"
	"github.com/droverhq/drover/ops/alwayson"
	"github.com/droverhq/drover/ops/windows"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// master has what the role ops has and a drovertest house has not: always-on workflows, and periods.
func master(t *testing.T, e *drovertest.Env) {
	t.Helper()
	ns := subject.Namespace(e.Client.Namespace())
	a, err := alwayson.New(alwayson.Options{Conn: natsconn.Of(e.Client), Namespace: ns})
	if err != nil {
		t.Fatal(err)
	}
	w, err := windows.New(windows.Options{Conn: natsconn.Of(e.Client), Namespace: ns, Node: "test"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	go func() { ended <- a.Run(ctx) }()
	go func() { ended <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-ended, <-ended); err != nil {
			t.Error(err)
		}
	})
}

func workers(e *drovertest.Env) {
	d := e.Client.Deciders(nil)
	d.Register("etl-copy", decider.Func(decideCopy))
	d.Register("etl-report", decider.Func(decideReport))
	a := e.Client.Activities(&activity.Options{Lists: []string{taskList}})
	activity.Register(a, "etl-item", copyItem)
	activity.Register(a, "etl-report", writeReport)
	e.Go(d, a)
}

// lines is what out.txt has to be for a file of so many items.
func lines(n int) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "%d: ITEM %d\n", i+1, i+1)
	}
	return text.String()
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(b)
}

// until waits for ten minutes at most.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Minute); !done(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

// S2-13: at every item the server is killed, and what the worker has done there is lost to it. No
// item is missing in the output, and none is there twice; the same after more lines have come.
func TestKilledAtEveryItem(t *testing.T) {
	reached, goOn := make(chan int), make(chan struct{})
	killed := errors.New("the worker was killed here")
	drovertest.Run(t, &drovertest.Options{Logger: logx.Or(nil)}, func(t *testing.T, e *drovertest.Env) {
		reached, goOn = make(chan int), make(chan struct{})
		last := 0
		afterItem = func(w watermark) error {
			if w.Items <= last {
				return nil
			}
			last = w.Items
			reached <- w.Items
			<-goOn
			return killed
		}
		defer func() { afterItem = func(watermark) error { return nil } }()
		master(t, e)
		workers(e)
		dir := t.TempDir()
		if err := demo(dir); err != nil {
			t.Fatal(err)
		}
		if err := add(t.Context(), e.Client, dir, time.Second); err != nil {
			t.Fatal(err)
		}
		more := func(from, to int) {
			for item := from; item <= to; item++ {
				if got := <-reached; got != item {
					t.Fatalf("item %d comes after item %d", got, item-1)
				}
				e.Crash(time.Duration(item%3) * time.Second)
				goOn <- struct{}{}
			}
			until(t, "all items are done", func() bool { return read(t, outFile(dir)) == lines(to) })
		}
		more(1, 20)
		f, err := os.OpenFile(inFile(dir), os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString("item 21\nitem 22\nitem"); err != nil { // the last line is not whole
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		more(21, 22)
	})
}

// S2-6, S2-7, S2-13: the copy goes on in the next run where it was.
func TestGoesOnInTheNextRun(t *testing.T) {
	drovertest.Run(t, &drovertest.Options{Logger: logx.Or(nil)}, func(t *testing.T, e *drovertest.Env) {
		master(t, e)
		workers(e)
		dir := t.TempDir()
		if err := demo(dir); err != nil {
			t.Fatal(err)
		}
		if err := add(t.Context(), e.Client, dir, time.Minute); err != nil {
			t.Fatal(err)
		}
		until(t, "all items are done", func() bool { return read(t, outFile(dir)) == lines(20) })
		var w watermark
		for d := new(schemas.DescribeResponse); d.Started.Mode() != schemas.ModeContinuation; {
			time.Sleep(time.Minute)
			if time.Now().UTC().Hour() >= 3 { // the clock begins at midnight
				t.Fatal("it has not continued as new in three hours")
			}
			var err error
			if d, err = e.Client.Run("etl-copy", "").Describe(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := d.Input.Decode(&w); err != nil {
				t.Fatal(err)
			}
		}
		if w.Items != 20 || w.Written != int64(len(lines(20))) {
			t.Errorf("the next run begins at %+v, want the end of both files", w)
		}
		time.Sleep(5 * time.Minute)
		if got := read(t, outFile(dir)); got != lines(20) {
			t.Errorf("got %q", got)
		}
	})
}

// S2-11, S2-12: within the window of each day the report is written once, whatever is killed meanwhile.
func TestReportOnceADay(t *testing.T) {
	drovertest.Run(t, &drovertest.Options{Logger: logx.Or(nil)}, func(t *testing.T, e *drovertest.Env) {
		master(t, e)
		workers(e)
		dir := t.TempDir()
		input, err := schemas.JSONPayload(day{
			Dir: dir, Opens: schemas.Duration(2 * time.Hour), Length: schemas.Duration(time.Hour), Every: schemas.Duration(5 * time.Minute),
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Client.AddAlwaysOn(t.Context(), ops.AlwaysOn{Start: schemas.StartRequest{WorkflowID: "etl-report", Type: "etl-report", Input: input}}); err != nil {
			t.Fatal(err)
		}
		// The clock begins at midnight. From two o'clock on the server is killed at each trigger.
		for time.Sleep(119 * time.Minute); time.Now().UTC().Hour() < 3; time.Sleep(5 * time.Minute) {
			e.Crash(time.Second)
		}
		files, err := filepath.Glob(filepath.Join(dir, "report-*.txt"))
		if err != nil || len(files) != 1 || filepath.Base(files[0]) != "report-2000-01-01.txt" {
			t.Fatalf("after the window: got %q, %v, want the report of the day", files, err)
		}
		if n := written(t, e); n != 1 {
			t.Errorf("the report was asked for %d times, want once", n)
		}
	})
}

// written counts the reports in the histories of all runs.
func written(t *testing.T, e *drovertest.Env) (n int) {
	t.Helper()
	seen := map[string]bool{}
	for x, err := range e.Client.List(t.Context(), drover.ListOptions{WorkflowID: "etl-report"}) {
		if err != nil {
			t.Fatal(err)
		}
		if seen[x.Run] {
			continue
		}
		seen[x.Run] = true
		for event, err := range e.Client.Run("etl-report", x.Run).History(t.Context(), drover.HistoryOptions{}) {
			if err != nil {
				t.Fatal(err)
			}
			if a, is := event.Attributes.(*schemas.ActivityScheduled); is && a.ActivityType == "etl-report" {
				n++
			}
		}
	}
	return n
}

// One command does all, and the same again goes on.
func TestCommand(t *testing.T) {
	e := drovertest.Start(t, nil)
	master(t, e)
	dir := t.TempDir()
	for range 2 {
		var out, complaints strings.Builder
		if code := run(t.Context(), []string{"-nats", e.URL(), "-dir", dir}, &out, &complaints); code != 0 {
			t.Fatalf("exit code %d: %s", code, complaints.String())
		}
		if got := read(t, outFile(dir)); got != lines(20) {
			t.Errorf("got %q", got)
		}
		if got := read(t, reportFile(dir, today())); !strings.Contains(got, " items\n") {
			t.Errorf("the report is %q", got)
		}
	}
	var complaints strings.Builder
	if code := run(t.Context(), []string{"too much"}, &complaints, &complaints); code != 2 {
		t.Errorf("an argument too much: exit code %d: %s", code, complaints.String())
	}
}
