package checker_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/droverhq/drover/broker/checker"
	"github.com/droverhq/drover/schemas"
)

// free are the fields that no rule ties to anything: what users say to themselves, options that a type or namespace may
// fill in, and who did it.
var free = map[string]bool{
	"Control": true, "Identity": true, "RequestID": true, "ExecutionContext": true, "ReplyDigest": true, "MarkerName": true,
	"ExecutionStartToCloseTimeout": true, "TaskStartToCloseTimeout": true, "TaskScheduleToStartTimeout": true, "StartToCloseTimeout": true,
	"ScheduleToStartTimeout": true, "TaskPriority": true, "Attempt": true, "TimeoutType": true,
}

// freeOf are more of them: fields that are free in some events.
func freeOf(e schemas.Event, field string) bool {
	switch a := e.Attributes.(type) {
	case *schemas.WorkflowStarted:
		child, continued := a.ParentWorkflowExecution != nil, a.ContinuedExecutionRun != ""
		switch field {
		case "Input", "WorkflowType", "WorkflowTypeVersion":
			return !child && !continued
		case "Depth", "ParentScheduledEventID": // nobody looks at them before the run has a child
			return !child && !continued
		}
		return field == "ChildPolicy"
	case *schemas.WorkflowTerminated:
		return true // a run may be ended by anybody, for any reason
	case *schemas.WorkflowTimedOut, *schemas.WorkflowContinuedAsNew:
		return field == "ChildPolicy"
	case *schemas.Signal:
		return a.ExternalWorkflowExecution == nil && (field == "SignalName" || field == "Input" || field == "ExternalScheduledEventID")
	case *schemas.WorkflowCancelRequested:
		return field == "Reason" || field == "Cause" || a.ExternalWorkflowExecution == nil
	case *schemas.WorkflowSuccess, *schemas.WorkflowFailed, *schemas.WorkflowCanceled:
		return field != "DeciderCompletedEventID"
	case *schemas.ChildScheduled, *schemas.ChildStarted, *schemas.ChildSuccess, *schemas.ChildFailed, *schemas.ChildTimedOut, *schemas.ChildCanceled,
		*schemas.ChildTerminated:
		return field == "ChildPolicy" || field == "WorkflowType" && e.Type() != schemas.EventChildScheduled
	case *schemas.ChildStartFailed, *schemas.SignalExternalFailed, *schemas.CancelExternalFailed:
		return field == "Cause" || field == "WorkflowType" || field == "Run" || field == "DeciderCompletedEventID"
	case *schemas.CancelExternalScheduled, *schemas.SignalExternalScheduled:
		return false
	}
	return false
}

// change makes a field say something else, and tells whether it could.
func change(v reflect.Value) bool {
	switch p := v.Addr().Interface().(type) {
	case *schemas.Payload:
		*p = schemas.Payload(string(*p) + "!")
	case **schemas.Execution:
		if *p == nil {
			return false
		}
		*p = &schemas.Execution{WorkflowID: (*p).WorkflowID, Run: (*p).Run + "!"}
	case *schemas.Execution:
		*p = schemas.Execution{WorkflowID: p.WorkflowID, Run: p.Run + "!"}
	default:
		switch v.Kind() {
		case reflect.String:
			v.SetString(v.String() + "!")
		case reflect.Int, reflect.Int64:
			v.SetInt(v.Int() + 1)
		default:
			return false
		}
	}
	return true
}

// Nothing that one workflow says of another can be changed on one side alone.
func TestChangedLinksAreCaught(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(scenarios)) {
		if name == "refused" || name == "refused at once" || name == "reached nobody" || name == "failed, and repeated to one that began meanwhile" {
			continue // then nobody else speaks of it
		}
		all := scenario(t, settled(scenarios[name]))
		stored := make([]checker.Stored, len(all))
		for i, r := range all {
			stored[i] = checker.Stored{Record: r, At: 60 * second * schemas.Timestamp(1000+i)}
		}
		orders := [][]checker.Stored{stored, byID(stored, false), byID(stored, true)}
		for _, r := range all {
			for j, e := range r.Events {
				for f := range reflect.ValueOf(e.Attributes).Elem().NumField() {
					field := reflect.TypeOf(e.Attributes).Elem().Field(f).Name
					r.Events[j] = clone(r.Events[j : j+1])[0]
					if free[field] || freeOf(e, field) || !change(reflect.ValueOf(r.Events[j].Attributes).Elem().Field(f)) {
						r.Events[j] = e
						continue
					}
					for k, order := range orders {
						if len(checkNamespace(order, checker.EndOptions{Quiet: true})) == 0 {
							t.Errorf("%s, order %d: workflow %s event %d %s passes with another %s", name, k, r.WorkflowID, e.ID, e.Type(), field)
						}
					}
					r.Events[j] = e
				}
			}
		}
	}
}

// partners are the scenarios in which every run speaks of another one, so that none can be lost.
var partners = []string{
	"success", "failure", "canceled", "terminated", "open", "a chain of a child", "policy terminate", "signal and cancel",
	"answered by a later run of the chain", "sent to a chain by its first run",
}

// A run that is not there at all is missed, unless it may have been removed: then nobody cries.
func TestLostRunsAreCaught(t *testing.T) {
	for _, name := range partners {
		all := chained(t, scenario(t, settled(scenarios[name])))
		runs := map[string]bool{}
		for _, s := range all {
			runs[s.Record.Run] = true
		}
		for run := range runs {
			t.Run(fmt.Sprint(name, "/", run), func(t *testing.T) {
				rest := slices.DeleteFunc(slices.Clone(all), func(s checker.Stored) bool { return s.Record.Run == run })
				if found := checkNamespace(rest, checker.EndOptions{}); len(found) == 0 {
					t.Fatal("nothing is missed")
				}
			})
		}
	}
}

// A history is removed once it is closed, its parent has its end, and who waits for its answer has it; what stays must not
// be blamed.
func TestRemovedHistoriesAreNotMissed(t *testing.T) {
	for name, removed := range map[string][]string{
		"success": {"r", "c-run"}, "failure": {"c-run"}, "terminated": {"c-run"}, "a chain of a child": {"c-run", "c-2"},
		"policy terminate": {"r"}, "policy request cancel": {"r"}, "the parent succeeds": {"r", "c-run"},
		"a chain of the parent leaves its child": {"r"}, "signal and cancel": {"t-run", "s-run"},
	} {
		all := chained(t, scenario(t, settled(scenarios[name])))
		for _, run := range removed {
			rest := slices.DeleteFunc(slices.Clone(all), func(s checker.Stored) bool { return s.Record.Run == run })
			for _, quiet := range []bool{false, true} {
				if found := checkNamespace(rest, checker.EndOptions{Removed: true, Quiet: quiet}); len(found) != 0 {
					t.Errorf("%s without run %s, at rest %v: got %v", name, run, quiet, found)
				}
			}
		}
	}
	// But a parent waits for its child.
	all := chained(t, scenario(t, settled(scenarios["open"])))
	rest := slices.DeleteFunc(slices.Clone(all), func(s checker.Stored) bool { return s.Record.Run == "c-run" })
	if got := rules(checkNamespace(rest, checker.EndOptions{Removed: true})); got != checker.RuleParent {
		t.Fatalf("got %s, want %s", got, checker.RuleParent)
	}
}

// A large payload may stand in the object store on one side only; its reference says what it is.
func TestReferencesStandForTheirContent(t *testing.T) {
	const input = `"in"`
	sum := sha256.Sum256([]byte(input))
	for digest, want := range map[string]string{hex.EncodeToString(sum[:]): "passes", strings.Repeat("0", 64): checker.RuleParent} {
		all := scenario(t, settled(scenarios["success"]))
		all[1].Events[0].Attributes.(*schemas.WorkflowStarted).Input = schemas.RefPayload(&schemas.PayloadRef{Object: "o", Size: 4, Digest: digest})
		if got := rules(checkNamespace(chained(t, all), checker.EndOptions{})); got != want {
			t.Errorf("digest %s: got %s, want %s", digest, got, want)
		}
	}
}

func TestCounts(t *testing.T) {
	n := checker.NewNamespace()
	for _, s := range chained(t, scenario(t, settled(scenarios["a chain of a child"]))) {
		if found := n.Record(s.Record, s.Body, s.At); len(found) != 0 {
			t.Fatal(found)
		}
	}
	if got, want := n.Counts(), (checker.Counts{Workflows: 2, Runs: 3, Open: 1, Records: 7, Events: 20}); got != want {
		t.Fatalf("got %+v, want %+v", got, want)
	}
}

// What has been settled is forgotten, whichever side is read first: memory is for what is open.
func TestSettledMattersAreForgotten(t *testing.T) {
	for name, want := range map[string]int{
		"success": 0, "a chain of a child": 0, "refused": 0, "signal and cancel": 0, "reached nobody": 2, "policy terminate": 0,
		"the parent succeeds": 0, "the source closes before its answer": 2, "open": 1, "policy abandon": 1, "asked to cancel before": 1,
	} {
		n := checker.NewNamespace()
		for _, s := range chained(t, scenario(t, settled(scenarios[name]))) {
			n.Record(s.Record, s.Body, s.At)
		}
		if got := n.Counts().Waiting; got != want {
			t.Errorf("%s: got %d that wait, want %d", name, got, want)
		}
	}
}
