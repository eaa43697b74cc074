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

// Only what workflows have sent is known to a run that begins anew, whatever the ids look like that people give.
func TestIDsThatLookLikeThoseOfWorkflows(t *testing.T) { // P-6
	f := household(t)
	f.begin(&schemas.StartRequest{WorkflowID: "c", Run: "c-1", Type: "child"})
	f.decide("p", &schemas.SignalExternal{WorkflowID: "c", SignalName: "hello"})
	f.settle()
	f.step(f.last["c"], Signal{Name: "s", RequestID: "orders.17"})
	b, err := f.last["c"].Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	restored, err := Restore(b)
	if err != nil {
		t.Fatal(err)
	}
	f.decide("c", &schemas.CompleteWorkflow{})
	want := []string{externalSignalID("p-1", 5)}
	for _, s := range []*State{restored, f.last["c"]} {
		if got := s.ReceivedFromWorkflows(); !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	}
	f.begin(&schemas.StartRequest{WorkflowID: "c", Run: "c-2", Type: "child"})
	f.step(f.last["c"], Signal{Name: "s", RequestID: "orders.17"})
	f.tells(t, "c", "WorkflowStarted", "DeciderScheduled", "Signal s")
}
