package decider_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/drovertest"
	"github.com/droverhq/drover/schemas"
)

// What a decider keeps in memory of its runs is good for all of them, though their histories together are more than the worker keeps.
func TestContinuesWithoutHistories(t *testing.T) { // P-11
	const runs, signals = 20, 3
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		var mu sync.Mutex
		left := map[string]string{} // by run, the token of the task that left its state
		asked := 0
		w := e.Client.Deciders(&decider.Options{StickyBytes: 20_000})
		w.Register("order", decider.Func(func(ctx context.Context, task *decider.Task) ([]schemas.Decision, error) {
			mu.Lock()
			defer mu.Unlock()
			run := task.Execution().Run
			if task.PreviousStartedID() > 0 {
				asked++
				if task.Continued() == "" || task.Continued() != left[run] {
					t.Errorf("run %s goes on from task %q, want %q", run, task.Continued(), left[run])
				}
			}
			left[run] = task.Token()
			v, err := task.View(ctx) // so its events are kept, as far as there is room
			if err != nil {
				return nil, err
			}
			if len(v.Signals("s")) == signals {
				return []schemas.Decision{decider.Complete(nil)}, nil
			}
			return nil, nil
		}))
		e.Go(w)
		var all []*drover.Run
		for i := range runs {
			run, err := e.Client.Start(t.Context(), "order", nil, &drover.StartOptions{ID: fmt.Sprint("o", i)})
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, run)
		}
		for range signals {
			for _, run := range all {
				if err := run.Signal(t.Context(), "s", strings.Repeat("x", 2000)); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, run := range all {
			e.Result(run, nil)
		}
		mu.Lock()
		defer mu.Unlock()
		if asked < runs {
			t.Errorf("%d tasks followed another, want one of each of %d runs", asked, runs)
		}
	})
}
