package workflow_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/decider/workflow"
	"github.com/droverhq/drover/drovertest"
	"github.com/droverhq/drover/schemas"
)

// A workflow without end learns that it is to continue as new while it waits, and no signal is lost
// on the way. The replays of drovertest see each of its runs.
func TestContinueAsNewSuggested(t *testing.T) {
	for _, kept := range []int{0, -1} {
		drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
			w := e.Client.Deciders(nil)
			workflow.Implement(w, any1, func(ctx workflow.Context, in string) (string, error) {
				notes := workflow.Signals(ctx, note)
				for {
					if err := workflow.WaitFor(ctx, func() bool {
						return notes.Len() > 0 || workflow.ContinueAsNewSuggested(ctx)
					}); err != nil {
						return "", err
					}
					for notes.Len() > 0 {
						s, err := notes.Receive(ctx)
						if in += s; err != nil || s == "." {
							return in, err
						}
					}
					if workflow.ContinueAsNewSuggested(ctx) {
						return workflow.ContinueAsNew(ctx, any1, in+"|")
					}
				}
			}, &workflow.Options{Kept: kept})
			e.Go(w)
			run, err := e.Client.Start(t.Context(), "any", "", &drover.StartOptions{
				Continuation: &schemas.ContinuationPolicy{After: schemas.Duration(time.Hour)},
			})
			if err != nil {
				t.Fatal(err)
			}
			want := ""
			for n := range 10 {
				s := fmt.Sprint(n)
				if n == 9 {
					s = "."
				}
				want += s
				if err := run.Signal(t.Context(), "note", s); err != nil {
					t.Fatal(err)
				}
				e.Sleep(25 * time.Minute)
			}
			var got string
			if e.Result(run, &got); strings.ReplaceAll(got, "|", "") != want || strings.Count(got, "|") < 2 {
				t.Errorf("%d kept: got %q, want %s in runs of an hour or so", kept, got, want)
			}
		})
	}
}
