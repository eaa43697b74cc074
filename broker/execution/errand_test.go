package execution

import (
	"slices"
	"testing"

	"github.com/droverhq/drover/schemas"
)

// A cancel request that arrived at a run which had been asked to end already has arrived all the same: a repeat of it asks no
// run that follows.
func TestRepeatedCancelOfAnotherWorkflow(t *testing.T) { // P-5, P-6
	for name, then := range map[string]func(*family){
		"open":      func(*family) {},
		"closed":    func(f *family) { f.decide("c", &schemas.CancelWorkflow{}) },
		"continued": func(f *family) { f.decide("c", &schemas.ContinueAsNew{}) },
		"anew": func(f *family) {
			f.decide("c", &schemas.CancelWorkflow{})
			f.begin(&schemas.StartRequest{WorkflowID: "c", Run: "c-2", Type: "child"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := household(t)
			asked := f.begin(&schemas.StartRequest{WorkflowID: "c", Run: "c-1", Type: "child"})
			f.step(asked, Cancel{Request: &schemas.ExecutionRequest{RequestID: "ours"}})
			f.decide("p", &schemas.CancelExternal{WorkflowID: "c"})
			f.deliver("c")
			delete(f.mail, "p") // the answer
			then(f)
			f.again(f.last["p"])
			f.settle()
			f.tells(t, "p", append(slices.Clone(first), "CancelExternalScheduled", "ExternalCancelRequested")...)
			if next := f.last["c"]; next != asked && next.CancelRequested {
				t.Fatal("the run that follows was asked to cancel")
			}
			f.over()
		})
	}
}
