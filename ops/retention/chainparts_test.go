package retention_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/ops/retention"
	"github.com/droverhq/drover/schemas"
)

// parts serves workflows of the type rec: those of an id that begins with c or p have a part, and after it those with c continue as new.
func (h *house) parts() {
	w := h.Client.Deciders(nil)
	w.Register("rec", decider.Func(func(_ context.Context, task *decider.Task) ([]schemas.Decision, error) {
		id := task.Execution().WorkflowID
		for _, ev := range task.Events() {
			switch a := ev.Attributes.(type) {
			case *schemas.WorkflowStarted:
				if a.ParentWorkflowExecution == nil && a.ContinuedExecutionRun == "" {
					return []schemas.Decision{schemas.Decide(&schemas.StartChild{WorkflowID: "part-" + id, WorkflowType: "rec"})}, nil
				}
				return []schemas.Decision{schemas.Decide(&schemas.CompleteWorkflow{})}, nil
			case *schemas.ChildSuccess:
				if strings.HasPrefix(id, "c") {
					return []schemas.Decision{schemas.Decide(&schemas.ContinueAsNew{})}, nil
				}
				return []schemas.Decision{schemas.Decide(&schemas.CompleteWorkflow{})}, nil
			}
		}
		return nil, nil
	}))
	h.Go(w)
}

// The parts of an earlier run of a chain go with it, when the last run of the chain takes it along.
func TestPartsOfAChain(t *testing.T) {
	live(t, retention.Options{Default: "1"}, func(h *house) {
		t := h.t
		h.parts()
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

// A run waits for a part that may not go yet: later nobody would know whose part it is, and it would be kept as the last one of a group.
func TestPartThatWaits(t *testing.T) {
	for _, kind := range []string{"c", "p"} { // the part of an earlier run of a chain, and of a run that has not continued
		t.Run(kind, func(t *testing.T) {
			live(t, retention.Options{Default: "1"}, func(h *house) {
				h.parts()
				for i := range 2 {
					h.run("rec", fmt.Sprint(kind, "-", i), says{})
				}
				h.run("raw", "after", says{Retention: []string{"0"}, Hash: "after"}) // waits for nobody
				h.settle()
				start := ns.In(0, "part-"+kind+"-0", "start")
				if _, err := natsconn.Of(h.Client).PublishSync(h.t.Context(), start, natsconn.Addressed(start), []byte("no start")); err != nil {
					h.t.Fatal(err)
				}
				time.Sleep(time.Minute) // it is read, and stays as the last of the inbox
				all := fmt.Sprintf("%[1]s-0 %[1]s-1 part-%[1]s-0 part-%[1]s-1", kind)
				h.pass()
				h.wantKept(all)
				h.settle()
				h.pass()
				h.wantKept(fmt.Sprintf("%[1]s-1 part-%[1]s-1", kind))
			})
		})
	}
}
