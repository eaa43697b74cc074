package drovertest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/contract"
	"github.com/droverhq/drover/decider/workflow"
	"github.com/droverhq/drover/drovertest"
	"github.com/droverhq/drover/schemas"
)

var (
	shout = contract.Activity[string, string]("shout")
	tour  = contract.Workflow[[]string, string]("tour")
)

// visit is the code of tour: an activity for each place, a minute after the one before.
func visit(ctx workflow.Context, places []string) (string, error) {
	for _, p := range places {
		if _, err := workflow.Call(ctx, shout, p); err != nil {
			return "", err
		}
		if err := workflow.Sleep(ctx, time.Minute); err != nil {
			return "", err
		}
	}
	return "home", nil
}

// travel runs some code as tour until it has ended, and returns the history.
func travel(
	t *testing.T, o *drovertest.Options, fn func(workflow.Context, []string) (string, error), places ...string,
) (h drovertest.History) {
	t.Helper()
	drovertest.Run(t, o, func(t *testing.T, e *drovertest.Env) {
		w := e.Client.Worker(nil)
		workflow.Implement(w, tour, fn, nil)
		activity.Implement(w, shout, func(_ context.Context, s string) (string, error) { return strings.ToUpper(s), nil })
		e.Go(w)
		run, err := drover.Start(t.Context(), e.Client, tour, places, nil)
		if err != nil {
			t.Fatal(err)
		}
		e.Result(run.Run, nil)
		h = e.History(run.ID)
	})
	return h
}

// Most of a year passes in a moment with a worker that does all, too.
func TestLeapWithAWorkerForAll(t *testing.T) {
	h := travel(t, nil, func(ctx workflow.Context, places []string) (string, error) {
		if err := workflow.Sleep(ctx, 300*day); err != nil {
			return "", err
		}
		return visit(ctx, places)
	}, "a")
	if passed := h[len(h)-1].Time.Sub(h[0].Time); passed < 300*day || passed > 301*day {
		t.Errorf("the tour takes %v, want 300 days", passed)
	}
}

// The coin of Options.Seed says after which decisions a run leaves the memory: the same each time.
func TestSeed(t *testing.T) {
	calls := func(seed int64) (n int, h drovertest.History) {
		h = travel(t, &drovertest.Options{Seed: seed, Replays: -1}, func(ctx workflow.Context, places []string) (string, error) {
			n++
			return visit(ctx, places)
		}, "a", "b", "c", "d", "e", "f", "g", "h")
		return n, h
	}
	first, h := calls(7)
	if again, other := calls(7); first != again && h.String() == other.String() {
		t.Errorf("with the same seed and history the code was called %d and %d times", first, again)
	}
	if none, _ := calls(-1); none >= first {
		t.Errorf("the code was called %d times with a negative seed, and %d times with another", none, first)
	}
}

// Histories are replayed with payloads that are too large for them.
func TestLargePayloadIsReplayed(t *testing.T) {
	var calls atomic.Int32
	large := strings.Repeat("large ", 200_000)
	h := travel(t, &drovertest.Options{Seed: -1}, func(ctx workflow.Context, places []string) (string, error) {
		if calls.Add(1); places[0] != large {
			return "", fmt.Errorf("got %d bytes", len(places[0]))
		}
		return visit(ctx, places)
	}, large)
	if started, _ := h[0].Attributes.(*schemas.WorkflowStarted); len(started.Input) > 1000 {
		t.Errorf("the history has %d bytes, want a reference", len(started.Input))
	}
	if n := calls.Load(); n < 4 {
		t.Errorf("the code was called %d times, want once for the run and three times at the end", n)
	}
}

// complaints takes what Replay says of a test.
type complaints struct {
	testing.TB
	ctx  context.Context
	said strings.Builder
}

func (c *complaints) Helper()                        {}
func (c *complaints) Context() context.Context       { return c.ctx }
func (c *complaints) Errorf(format string, a ...any) { fmt.Fprintf(&c.said, format+"\n", a...) }
func (c *complaints) Fatalf(format string, a ...any) {
	c.Errorf(format, a...)
	runtime.Goexit()
}

// replayed is what Replay says of files, beside the code of tour.
func replayed(t *testing.T, pattern string, fn func(workflow.Context, []string) (string, error)) string {
	t.Helper()
	c := &complaints{ctx: t.Context()}
	done := make(chan struct{})
	go func() {
		defer close(done)
		drovertest.Replay(c, pattern, func(w *drover.Worker) { workflow.Implement(w, tour, fn, nil) })
	}()
	<-done
	return c.said.String()
}

// write writes a file as "drover history --json" does.
func write(t *testing.T, h drovertest.History) (file string) {
	t.Helper()
	var b strings.Builder
	for _, e := range h {
		line, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString(string(line) + "\n")
	}
	file = filepath.Join(t.TempDir(), "tour.jsonl")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// Files of closed and open runs agree with the code that has decided them, wherever they end between
// two records. sdk-go#1670, #2595.
func TestReplayAgrees(t *testing.T) {
	h := travel(t, nil, visit, "a", "b")
	for n := range h {
		// A decision and what it has caused are one record.
		if n+1 < len(h) {
			if _, caused := schemas.DecidedBy(h[n+1].Attributes); caused {
				continue
			}
		}
		if said := replayed(t, write(t, h[:n+1]), visit); said != "" {
			t.Errorf("up to event %d: %s", n+1, said)
		}
	}
}

// What does not agree is told with the file, the event, both sides and the line of the code.
func TestReplayDiffers(t *testing.T) {
	h := travel(t, nil, visit, "a")
	const file = "tour.jsonl: "
	for _, tc := range []struct {
		name string
		h    drovertest.History
		code func(workflow.Context, []string) (string, error)
		says []string
	}{
		{"another step", h, func(ctx workflow.Context, _ []string) (string, error) {
			return "", workflow.Sleep(ctx, day)
		}, []string{
			file, "in the decision at event 4:",
			"- event 5     ScheduleActivity shout#1  the code does not ask for it",
			"+             ScheduleTimer timer#1     replay_test.go:", "asks for it, the history does not have it here",
		}},
		{"another end", h, func(ctx workflow.Context, places []string) (string, error) {
			_, err := visit(ctx, places)
			return "", errors.Join(err, errors.New("late"))
		}, []string{file, "CompleteWorkflow", "FailWorkflow"}},
		{"no end", h, func(ctx workflow.Context, places []string) (string, error) {
			if _, err := visit(ctx, places); err != nil {
				return "", err
			}
			return "", workflow.WaitFor(ctx, func() bool { return false })
		}, []string{file, "CompleteWorkflow", "the code does not ask for it"}},
		{"a panic", h, func(workflow.Context, []string) (string, error) { panic("a bug") }, []string{file, "at event", "a bug", "replay_test.go:"}},
		{"a history without its beginning", h[1:], visit, []string{file, "WorkflowStarted"}},
		{"a history with a gap", append(append(drovertest.History{}, h[:3]...), h[5:]...), visit, []string{file, "event 4 of the history has the id 6"}},
		{"another type", drovertest.History{{ID: 1, Attributes: &schemas.WorkflowStarted{WorkflowType: "detour", WorkflowID: "w", Run: "r"}}}, visit, []string{
			file, `nobody implements the workflow "detour", only ["tour"]`,
		}},
		{"a reference", drovertest.History{{ID: 1, Attributes: &schemas.WorkflowStarted{
			WorkflowType: "tour", WorkflowID: "w", Run: "r", Input: schemas.RefPayload(&schemas.PayloadRef{Object: "o", Size: 1, Digest: strings.Repeat("0", 64)}),
		}}}, visit, []string{file, "event 1", "--payloads"}},
	} {
		said := replayed(t, write(t, tc.h), tc.code)
		for _, part := range tc.says {
			if !strings.Contains(said, part) {
				t.Errorf("%s: it does not say %q:\n%s", tc.name, part, said)
			}
		}
	}
	if said := replayed(t, filepath.Join(t.TempDir(), "*.jsonl"), visit); !strings.Contains(said, "no file matches") {
		t.Errorf("without a file: %q", said)
	}
}
