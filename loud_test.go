package drover_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/schemas"
)

// loudRole makes the test binary a program that gives no logger, and whose workers panic.
const loudRole = "DROVER_TEST_LOUD"

// loud is that program: one workflow whose decider panics once, and whose activity panics always. It returns the exit code.
func loud() int {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := drover.Connect(ctx, &drover.Options{URL: exampleServer()})
	if err != nil {
		return 1
	}
	defer c.Close()
	var once atomic.Bool
	deciders := c.Deciders(nil)
	deciders.Register("order", decider.Func(func(ctx context.Context, t *decider.Task) ([]schemas.Decision, error) {
		if once.CompareAndSwap(false, true) {
			panic("the decider's own words")
		}
		run, err := t.View(ctx)
		if err != nil {
			return nil, err
		}
		switch status, _, reason := run.Activity("pay"); {
		case status.Closed():
			return []schemas.Decision{decider.Fail(reason, nil)}, nil
		case status.Open():
			return nil, nil
		}
		return []schemas.Decision{decider.Schedule("pay", "pay", 1, decider.List("work"))}, nil
	}))
	work := c.Activities(&activity.Options{Lists: []string{"work"}})
	activity.Register(work, "pay", func(context.Context, int) (int, error) { panic("the activity's own words") })
	go func() { _ = deciders.Run(ctx) }()
	go func() { _ = work.Run(ctx) }()
	run, err := c.Start(ctx, "order", nil, nil)
	if err != nil {
		return 1
	}
	fmt.Println(run.Result(ctx, nil))
	return 0
}

// U1: workers that were given no logger tell on stderr of what goes wrong, with the stacks of panics: one document a line,
// since it is no terminal.
func TestWorkersAreLoudByDefault(t *testing.T) {
	ctx := bounded(t, 90*time.Second)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, exe)
	cmd.Env = append(os.Environ(), loudRole+"=1")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s%s", err, &stdout, &stderr)
	}
	for _, words := range []string{"the decider's own words", "the activity's own words"} {
		told := false
		for line := range strings.Lines(stderr.String()) {
			var doc struct{ Level, Err, Stack string }
			if json.Unmarshal([]byte(line), &doc) == nil && strings.Contains(doc.Err, words) {
				told = told || strings.Contains(doc.Stack, "loud_test.go")
			}
		}
		if !told {
			t.Errorf("stderr does not tell of %q with its stack:\n%s%s", words, &stdout, &stderr)
		}
	}
}
