package workflow_test

import (
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/contract"
	"github.com/droverhq/drover/decider/workflow"
	"github.com/droverhq/drover/drovertest"
	"github.com/droverhq/drover/schemas"
)

var measure = contract.Activity[float64, string]("echo")

// A beginner's mistake fails the decision with words that name it and the way out. The run waits, and
// goes on once the code is mended.
func TestMistakes(t *testing.T) {
	for _, tc := range []struct {
		name string
		fn   func(ctx workflow.Context, never chan error) error // never is closed at the end of the test
		says []string
	}{
		{"native goroutine", func(ctx workflow.Context, never chan error) error {
			go func() {
				_, err := workflow.Call(ctx, echo, "x")
				never <- err
			}()
			return <-never
		}, []string{"workflow.Start", "mistakes_test.go", "workflow.Go"}},
		{"native channel", func(_ workflow.Context, never chan error) error {
			return <-never
		}, []string{"mistakes_test.go", "outside the workflow", "workflow.Signals"}},
		{"native sleep", func(workflow.Context, chan error) error {
			time.Sleep(30 * time.Second)
			return nil
		}, []string{"mistakes_test.go", "sleep", "workflow.Sleep"}},
		{"panic", func(workflow.Context, chan error) error {
			panic("a bug")
		}, []string{"panicked", "mistakes_test.go", "a bug"}},
		{"a value without a JSON form", func(ctx workflow.Context, _ chan error) error {
			_, err := workflow.Call(ctx, measure, math.NaN())
			return err
		}, []string{`activity "echo"`, "input", "NaN"}},
		{"a value for a closed channel", func(ctx workflow.Context, _ chan error) error {
			c := workflow.NewChannel[string](1)
			c.Close()
			return c.Send(ctx, "x")
		}, []string{"mistakes_test.go", "a channel that is closed"}},
		{"a value for the channel of a signal", func(ctx workflow.Context, _ chan error) error {
			return workflow.Signals(ctx, note).Send(ctx, "x")
		}, []string{"mistakes_test.go", `the signal "note"`}},
		{"a condition that does something", func(ctx workflow.Context, _ chan error) error {
			asked := false
			return workflow.WaitFor(ctx, func() bool {
				if asked {
					_ = workflow.Sleep(ctx, time.Second)
				}
				asked = true
				return false
			})
		}, []string{"WaitFor", "may only read"}},
		{"a side effect that asks for something", func(ctx workflow.Context, _ chan error) error { // MutatingSideEffect
			workflow.Once(ctx, "x", func() string {
				s, _ := workflow.Call(ctx, echo, "x")
				return s
			})
			return nil
		}, []string{"workflow.Start", "mistakes_test.go", "the function of Once", "may only read"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var mended atomic.Bool
			never := sync.OnceValue(func() chan error { return make(chan error) }) // of the bubble
			o := play(t, func(ctx workflow.Context, _ string) (string, error) {
				if !mended.Load() {
					return "", tc.fn(ctx, never())
				}
				return "mended", nil
			}, func(t *testing.T, e *drovertest.Env, run *drover.Run) {
				failed, _ := e.Await(run.ID, schemas.EventDeciderFailed).Attributes.(*schemas.DeciderFailed)
				close(never())
				for _, part := range tc.says {
					if text := failed.Reason + failed.Details; !strings.Contains(text, part) {
						t.Errorf("%q does not say %q", text, part)
					}
				}
				mended.Store(true)
				time.Sleep(time.Minute) // until native sleeps are over, too
			})
			if string(o.Result) != `"mended"` {
				t.Errorf("once it is mended: %s %s %s", o.Status, o.Reason, o.Details)
			}
		})
	}
}

// A workflow that was changed while a run is open does nothing for it, says what differs, and goes on
// once its code agrees again.
// sdk-go#864, #1271, #1693, #1837, features#559.
func TestChangedWhileARunIsOpen(t *testing.T) {
	var changed atomic.Bool
	o := playWith(t, &workflow.Options{Kept: -1}, func(ctx workflow.Context, _ string) (string, error) {
		if changed.Load() {
			if _, err := workflow.Call(ctx, book, "new"); err != nil {
				return "", err
			}
		}
		if _, err := workflow.Call(ctx, echo, "x"); err != nil {
			return "", err
		}
		return "done", workflow.Sleep(ctx, time.Hour)
	}, func(t *testing.T, e *drovertest.Env, run *drover.Run) {
		e.Await(run.ID, schemas.EventTimerScheduled)
		changed.Store(true)
		failed, _ := e.Await(run.ID, schemas.EventDeciderFailed).Attributes.(*schemas.DeciderFailed)
		text := failed.Reason + failed.Details
		for _, part := range []string{"book#1", "echo#1", "workflow.Changed"} {
			if !strings.Contains(text, part) {
				t.Errorf("%q does not say %q", text, part)
			}
		}
		changed.Store(false)
	})
	if string(o.Result) != `"done"` {
		t.Errorf("once it agrees: %s %s %s", o.Status, o.Reason, o.Details)
	}
}
