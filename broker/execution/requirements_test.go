package execution

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/schemas"
)

// What the requirements say of several runs, as scripts against the pure core.

func household(t *testing.T) *family {
	f := newFamily(func(format string, args ...any) { t.Helper(); t.Fatalf(format, args...) })
	t.Cleanup(func() {
		if !t.Failed() {
			f.over()
		}
	})
	f.begin(&schemas.StartRequest{WorkflowID: "p", Run: "p-1", Type: "parent"})
	return f
}

// tells fails the test unless these are the events of the latest run of a workflow id.
func (f *family) tells(t *testing.T, id string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, f.told[f.last[id].Run]); diff != "" {
		t.Fatalf("events of %s (-want +got):\n%s", id, diff)
	}
}

var first = []string{"WorkflowStarted", "DeciderScheduled", "DeciderStarted", "DeciderCompleted"}

func TestChildWorkflow(t *testing.T) { // S1-24
	f := household(t)
	f.decide("p", &schemas.StartChild{WorkflowID: "c", WorkflowType: "child", Input: schemas.Text("in")}, &schemas.ScheduleTimer{TimerID: "T", StartToFireTimeout: schemas.Seconds(1)})
	f.settle()
	// A new run with an event 1 of its own; its start does not wake the parent.
	f.tells(t, "c", "WorkflowStarted", "DeciderScheduled")
	later := append(slices.Clone(first), "ChildScheduled", "TimerScheduled T", "ChildStarted")
	f.tells(t, "p", later...)
	if a := f.last["c"].Start; string(a.Input) != "in" || a.Depth != 1 || a.ParentWorkflowExecution.WorkflowID != "p" || a.ParentScheduledEventID != 5 {
		t.Fatalf("got %+v", a)
	}
	// The parent takes signals and timers meanwhile.
	f.step(f.last["p"], Signal{Name: "s"})
	f.decide("p")
	f.now += 2e9
	f.step(f.last["p"], AlarmFired{})
	f.decide("p")
	later = append(later, "Signal s", "DeciderScheduled", "DeciderStarted", "DeciderCompleted", "TimerExpired T", "DeciderScheduled", "DeciderStarted", "DeciderCompleted")
	f.tells(t, "p", later...)
	// It is woken when the child ends, and not before.
	f.decide("c", &schemas.CompleteWorkflow{Result: schemas.Text("out")})
	f.tells(t, "p", later...)
	f.settle()
	f.tells(t, "p", append(later, "ChildSuccess", "DeciderScheduled")...)
}

func TestEndsOfAChild(t *testing.T) { // S1-24, S1-42: every end of a child wakes the parent, once
	for want, end := range map[string]func(*family){
		"ChildSuccess":    func(f *family) { f.decide("c", &schemas.CompleteWorkflow{Result: schemas.Text("out")}) },
		"ChildFailed":     func(f *family) { f.decide("c", &schemas.FailWorkflow{Reason: "no", Details: schemas.Text("how")}) },
		"ChildCanceled":   func(f *family) { f.decide("c", &schemas.CancelWorkflow{Details: schemas.Text("how")}) },
		"ChildTerminated": func(f *family) { f.step(f.last["c"], Terminate{Request: &schemas.ExecutionRequest{}}) },
		"ChildTimedOut":   func(f *family) { f.now += 10e9; f.step(f.last["c"], AlarmFired{}) },
	} {
		t.Run(want, func(t *testing.T) {
			f := household(t)
			f.decide("p", &schemas.StartChild{WorkflowID: "c", WorkflowType: "child", ExecutionStartToCloseTimeout: schemas.Seconds(5)})
			f.settle()
			end(f)
			f.again(f.last["c"]) // a new owner reports the end again
			f.settle()
			f.again(f.last["c"])
			f.settle()
			f.tells(t, "p", append(slices.Clone(first), "ChildScheduled", "ChildStarted", want, "DeciderScheduled")...)
		})
	}
}

func TestChildThatIsOpenAlready(t *testing.T) { // S1-24, P-5
	f := household(t)
	f.begin(&schemas.StartRequest{WorkflowID: "c", Run: "c-1", Type: "child"})
	f.decide("p", &schemas.StartChild{WorkflowID: "c", WorkflowType: "child"})
	f.settle()
	f.tells(t, "p", append(slices.Clone(first), "ChildScheduled", "ChildStartFailed", "DeciderScheduled")...)
}

// A repeated start is answered from the child's history, also when the child has closed and its id is used by another run.
func TestRepeatedStartOfAChild(t *testing.T) { // P-5
	f := household(t)
	f.decide("p", &schemas.StartChild{WorkflowID: "c", WorkflowType: "child"})
	f.again(f.last["p"])
	f.again(f.last["p"])
	f.deliver("c")
	f.decide("c", &schemas.CompleteWorkflow{})
	f.begin(&schemas.StartRequest{WorkflowID: "c", Run: "c-2", Type: "child"})
	f.settle()
	f.tells(t, "c", "WorkflowStarted", "DeciderScheduled")
	f.tells(t, "p", append(slices.Clone(first), "ChildScheduled", "ChildStarted", "ChildSuccess", "DeciderScheduled")...)
}

func TestContinuedAsNew(t *testing.T) { // S1-25, P-4, P-6
	f := household(t)
	f.decide("p", &schemas.StartChild{WorkflowID: "c", WorkflowType: "child", WorkflowTypeVersion: "v1"})
	f.settle()
	before := f.last["c"]
	for i, id := range []string{"s1", "s2"} {
		f.step(f.last["c"], Signal{Name: id, RequestID: id})
		please := &schemas.ExecutionRequest{WorkflowID: "c", RequestID: "end " + id, Origin: &schemas.RequestOrigin{FirstRun: f.last["c"].FirstRun()}}
		f.step(f.last["c"], Cancel{Request: please})
		f.decide("c", &schemas.ContinueAsNew{Input: schemas.Text(id)})
		next := f.last["c"]
		// The history is empty, and the run stands for the one before it: to its parent, and to who signals again.
		f.tells(t, "c", "WorkflowStarted", "DeciderScheduled")
		a := next.Start
		if next.Run == before.Run || a.ContinuedExecutionRun != before.Run || a.FirstExecutionRun != before.FirstRun() || string(a.Input) != id || a.Depth != 1 {
			t.Fatalf("got %+v", a)
		}
		if len(a.SignalIDs) != i+1 || len(a.RequestIDs) != i+1 {
			t.Fatalf("run %d knows the signals %v and the requests %v", i+2, a.SignalIDs, a.RequestIDs)
		}
		f.step(next, Signal{Name: id, RequestID: id})
		f.step(next, Cancel{Request: please})
		f.tells(t, "c", "WorkflowStarted", "DeciderScheduled")
		before = next
	}
	f.settle()
	f.tells(t, "p", append(slices.Clone(first), "ChildScheduled", "ChildStarted")...)
	f.decide("c", &schemas.CompleteWorkflow{})
	f.settle()
	f.tells(t, "p", append(slices.Clone(first), "ChildScheduled", "ChildStarted", "ChildSuccess", "DeciderScheduled")...)
}

// A signal that arrived is reported as arrived, also if its first answer was lost and its target has closed or gone on since.
func TestRepeatedSignalToAnotherWorkflow(t *testing.T) { // P-6
	for name, then := range map[string]schemas.DecisionAttributes{
		"closed": &schemas.CompleteWorkflow{}, "continued": &schemas.ContinueAsNew{}, "open": nil, "anew": &schemas.CompleteWorkflow{},
	} {
		for _, run := range []string{"", "c-1"} { // that the sender names
			t.Run(name+" "+run, func(t *testing.T) {
				f := household(t)
				f.begin(&schemas.StartRequest{WorkflowID: "c", Run: "c-1", Type: "child"})
				f.decide("p", &schemas.SignalExternal{WorkflowID: "c", Run: run, SignalName: "hello"})
				f.deliver("c")
				delete(f.mail, "p") // the answer
				if then != nil {
					f.decide("c", then)
				}
				if name == "anew" {
					f.begin(&schemas.StartRequest{WorkflowID: "c", Run: "c-2", Type: "child"})
				}
				f.again(f.last["p"])
				f.settle()
				f.tells(t, "p", append(slices.Clone(first), "SignalExternalScheduled", "ExternalSignaled")...)
			})
		}
	}
}

// A run that is ended by force takes its children with it as its policy says, also one that begins after its end, and
// those of its children.
func TestPoliciesForChildren(t *testing.T) { // S1-4, S1-24
	ends := map[string]func(*family, schemas.ChildPolicy){
		"terminated": func(f *family, p schemas.ChildPolicy) {
			f.step(f.last["p"], Terminate{Request: &schemas.ExecutionRequest{ChildPolicy: p}})
		},
		"timed out": func(f *family, _ schemas.ChildPolicy) { f.now += 10e9; f.step(f.last["p"], AlarmFired{}) },
	}
	want := map[schemas.ChildPolicy][]string{
		schemas.ChildTerminate: {"WorkflowTerminated"}, schemas.ChildRequestCancel: {"WorkflowCancelRequested"}, schemas.ChildAbandon: nil,
	}
	for name, end := range ends {
		for policy, happens := range want {
			for _, late := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/late %v", name, policy, late), func(t *testing.T) {
					f := household(t)
					f.step(f.last["p"], Terminate{Request: &schemas.ExecutionRequest{}})
					f.begin(&schemas.StartRequest{WorkflowID: "p", Run: "p-2", Type: "parent", ChildPolicy: policy, ExecutionStartToCloseTimeout: schemas.Seconds(5)})
					f.holdUp = func() bool { return late }
					f.decide("p", &schemas.StartChild{WorkflowID: "c", WorkflowType: "child"})
					f.holdUp = nil
					if !late {
						f.settle()
					}
					end(f, policy)
					for len(f.mail) > 0 {
						f.deliver(slices.Sorted(maps.Keys(f.mail))[0])
					}
					f.settle()
					f.tells(t, "c", append([]string{"WorkflowStarted", "DeciderScheduled"}, happens...)...)
					c := f.last["c"]
					if a := c.Close; a != nil && a.Attributes.(*schemas.WorkflowTerminated).Cause != schemas.CauseChildPolicyApplied {
						t.Fatalf("got %+v", a.Attributes)
					}
				})
			}
		}
	}
}

// The core takes from outside a start, signals and requests; nothing that a worker or stranger sends can write an event of
// another group.
func TestWhoMayWriteWhat(t *testing.T) { // S1-28, S1-29, S1-30
	external := map[schemas.EventType]bool{
		schemas.EventSignal: true, schemas.EventWorkflowCancelRequested: true, schemas.EventWorkflowTerminated: true,
		schemas.EventWorkflowPaused: true, schemas.EventWorkflowResumed: true, schemas.EventDeciderScheduled: true,
	}
	request := &schemas.ExecutionRequest{RequestID: "q"}
	for _, m := range []Message{
		Signal{Name: "s"}, Cancel{Request: request}, Terminate{Request: request}, Pause{Request: request}, Resume{Request: request}, Start{Request: &schemas.StartRequest{}},
	} {
		w := working(t, schemas.ScheduleActivity{})
		w.do(m)
		for _, e := range w.events[w.mark:] {
			if !external[e.Type()] {
				t.Errorf("%T writes %s", m, e.Type())
			}
		}
	}
	worker := map[schemas.EventType]bool{
		schemas.EventActivityStarted: true, schemas.EventActivitySuccess: true, schemas.EventActivityFailed: true, schemas.EventActivityCanceled: true,
		schemas.EventDeciderScheduled: true,
	}
	for _, kind := range []schemas.ReportKind{schemas.ReportStarted, schemas.ReportSuccess, schemas.ReportFailed, schemas.ReportCanceled, "WorkflowSuccess", ""} {
		w := working(t, schemas.ScheduleActivity{})
		w.report("A", kind)
		for _, e := range w.events[w.mark:] {
			if !worker[e.Type()] {
				t.Errorf("a report of kind %q writes %s", kind, e.Type())
			}
		}
	}
	// Of a decision only what deciders decide can come: each event type of the service that a reply names is refused as a whole.
	for _, typ := range schemas.EventTypes() {
		w := begin(t)
		w.do(Taken{})
		w.do(Reply{Reply: &schemas.DecisionReply{Decisions: []schemas.Decision{{Attributes: &schemas.UnknownDecision{Type: schemas.DecisionType(typ)}}}}})
		w.follows("DeciderStarted; DeciderFailed INVALID_DECISION; DeciderScheduled")
	}
}
