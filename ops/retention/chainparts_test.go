package retention_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/ops/retention"
	"github.com/droverhq/drover/schemas"
)

// The parts of an earlier run of a chain go with it, when the last run of the chain takes it along.
func TestPartsOfAChain(t *testing.T) {
	live(t, retention.Options{Default: "1"}, func(h *house) {
		t := h.t
		w := h.Client.Deciders(nil)
		w.Register("rec", decider.Func(func(_ context.Context, task *decider.Task) ([]schemas.Decision, error) {
			for _, ev := range task.Events() {
				switch a := ev.Attributes.(type) {
				case *schemas.WorkflowStarted:
					if a.ParentWorkflowExecution == nil && a.ContinuedExecutionRun == "" && strings.HasPrefix(a.WorkflowID, "c") {
						return []schemas.Decision{schemas.Decide(&schemas.StartChild{WorkflowID: "part-" + a.WorkflowID, WorkflowType: "rec"})}, nil
					}
					return []schemas.Decision{schemas.Decide(&schemas.CompleteWorkflow{})}, nil
				case *schemas.ChildSuccess:
					return []schemas.Decision{schemas.Decide(&schemas.ContinueAsNew{})}, nil
				}
			}
			return nil, nil
		}))
		h.Go(w)
		for i := range 4 {
			h.run("rec", fmt.Sprint("c-", i), says{})
		}
		for range 4 {
			h.settle()
			t.Logf("%+v %s", h.pass(), h.kept())
			time.Sleep(time.Hour)
		}
		h.wantKept("c-3 part-c-3")
	})
}
