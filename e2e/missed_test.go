package e2e

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/schemas"
)

const (
	hangType = "hang"
	// hangSignal makes a decider that may hang do so, and any other complete the run.
	hangSignal = "go"
	// mayHang is the name of a decider that hangs when it is asked about that signal, or about a start with the input "hang".
	mayHang = "hangs"
)

// hangRole decides for runs that wait for a signal, and tells when it hangs.
func hangRole(ctx context.Context) error {
	c, err := connectRole(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	w, name := c.Deciders(nil), os.Getenv(envName)
	w.Register(hangType, decider.Func(func(ctx context.Context, t *decider.Task) ([]schemas.Decision, error) {
		for _, e := range t.Events() {
			switch a := e.Attributes.(type) {
			case *schemas.WorkflowStarted:
				if strings.Contains(string(a.Input), mayHang) {
					return hang(ctx, t, name)
				}
			case *schemas.Signal:
				return hang(ctx, t, name)
			}
		}
		return nil, nil
	}))
	return w.Run(ctx)
}

func hang(ctx context.Context, t *decider.Task, name string) ([]schemas.Decision, error) {
	if name != mayHang {
		return []schemas.Decision{decider.Complete("done")}, nil
	}
	fmt.Println("hangs", t.Execution().WorkflowID)
	<-ctx.Done()
	return nil, ctx.Err()
}

// A decider is killed with -9 while it decides. Others are asked at once: a decision may take an hour here, and nothing of that is
// in the history. One run has been its own, the other is new and might have been anyone's.
func TestDeciderIsMissed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.embedded("--profile", "dev", "--partitions", "1") // so that the owner of both has had an answer of it
	victim := w.role("hang-decider", mayHang)
	own := w.start(hangType, "own", nil, startOptions{DecisionTimeout: time.Hour})
	w.until(own, 4, schemas.EventDeciderCompleted)
	if err := own.Signal(t.Context(), hangSignal, nil); err != nil {
		t.Fatal(err)
	}
	hangs := func(id string) {
		if got := victim.Line(patience); got != "hangs "+id {
			t.Fatalf("got %q, want that it hangs with %s", got, id)
		}
	}
	hangs("own")
	any := w.start(hangType, "new", mayHang, startOptions{DecisionTimeout: time.Hour})
	hangs("new")
	victim.Kill()
	w.role("hang-decider", "decides")
	w.completes(any, `"done"`)
	w.completes(own, `"done"`)
	w.is(any, fiveEvents)
	for _, e := range w.events(own) {
		if e.Type() == schemas.EventDeciderTimedOut || e.Type() == schemas.EventDeciderFailed {
			t.Errorf("got %s in\n%s", e.Type(), notation(w.events(own)))
		}
	}
	w.verify()
}
