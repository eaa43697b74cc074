package decider_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/drovertest"
	"github.com/droverhq/drover/schemas"
	"github.com/google/go-cmp/cmp"
)

// family is a run that does to other workflows whatever a decision can, one thing after the other, and ends with what its
// view shows of it.
func family(ctx context.Context, t *decider.Task) ([]schemas.Decision, error) {
	v, err := t.View(ctx)
	if err != nil {
		return nil, err
	}
	if v.ContinuedRun() == "" {
		return []schemas.Decision{
			decider.SetAttributes(map[string]string{"stage": "second"}),
			decider.ContinueAsNew("again", decider.Tags("next"), decider.ChildPolicy(schemas.ChildRequestCancel)),
		}, nil
	}
	switch good, patient := v.Child("good"), v.Child("patient"); {
	case good.Status == 0:
		return []schemas.Decision{
			decider.StartChild("good", "kid", "good", decider.Control(1), decider.Tags("kid"), decider.ExecutionStartToClose(time.Hour)),
			decider.StartChild("patient", "kid", "patient", decider.TaskStartToClose(time.Minute)),
			decider.StartChild("slow", "kid", "patient", decider.ExecutionStartToClose(time.Minute)),
			decider.StartChild("taken", "kid", nil),
			decider.StartChild("", "kid", nil),
			decider.SignalExternal("nobody", "hello", nil, decider.Control("s")),
			decider.CancelExternal("nobody", decider.ToRun("R-1")),
			decider.CancelExternal(""),
		}, nil
	case !v.ChildrenDone("good", "slow", "taken"):
		return nil, nil
	case len(v.ExternalCancels("patient")) == 0:
		return []schemas.Decision{decider.SignalExternal("patient", "note", "so long"), decider.CancelExternal("patient", decider.ToRun(patient.Run))}, nil
	case patient.Status.Open():
		return nil, nil
	}
	return []schemas.Decision{decider.Complete(found(v))}, nil
}

// kid succeeds at once, or waits for a cancel request and tells who sent it.
func kid(ctx context.Context, t *decider.Task) ([]schemas.Decision, error) {
	v, err := t.View(ctx)
	if err != nil {
		return nil, err
	}
	switch {
	case string(v.Input()) == `"good"`:
		return []schemas.Decision{decider.Complete(v.Parent().WorkflowID)}, nil
	case v.CancelRequested() && len(v.Signals("note")) > 0:
		return []schemas.Decision{decider.Cancel(v.CancelRequest().ExternalWorkflowExecution.WorkflowID)}, nil
	}
	return nil, nil
}

// findings are what a view shows, without ids that differ from run to run.
type findings struct {
	Statuses, Reasons, Results map[string]string
	Control                    schemas.Payload
	Signals, Cancels, Refused  []string
	Attributes                 map[string]string
	First                      bool
}

func found(v *decider.View) findings {
	f := findings{Statuses: map[string]string{}, Reasons: map[string]string{}, Results: map[string]string{}, Control: v.Child("good").Control}
	for _, c := range v.Children() {
		f.Statuses[c.WorkflowID], f.Reasons[c.WorkflowID] = c.Status.String(), c.Reason
		if c.Status != decider.ChildRefused { // the details of a refusal are words for people
			f.Results[c.WorkflowID] = string(c.Result) + string(c.Details)
		}
	}
	for _, x := range v.ExternalSignals() {
		f.Signals = append(f.Signals, x.WorkflowID+" "+x.Signal+" "+x.Status.String()+" "+string(x.Cause)+" "+string(x.Control))
	}
	for _, x := range v.ExternalCancels() {
		f.Cancels = append(f.Cancels, x.WorkflowID+" "+x.Status.String()+" "+string(x.Cause))
	}
	for _, r := range v.Refused() {
		f.Refused = append(f.Refused, string(r.Decision)+" "+r.ID+" "+string(r.Cause))
	}
	for _, list := range [][]string{f.Signals, f.Cancels, f.Refused} {
		slices.Sort(list) // which answer comes first is up to the others' owners
	}
	f.Attributes, f.First = v.Attributes(), v.FirstRun() == v.ContinuedRun()
	return f
}

// What the constructors ask for is what the real service does, and the view shows what came of it.
func TestFamilyOnTheService(t *testing.T) {
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		deciders := e.Client.Deciders(nil)
		deciders.Register("family", decider.Func(family))
		deciders.Register("kid", decider.Func(kid))
		e.Go(deciders)
		if _, err := e.Client.Start(t.Context(), "kid", "patient", &drover.StartOptions{ID: "taken"}); err != nil {
			t.Fatal(err)
		}
		run, err := e.Client.Start(t.Context(), "family", nil, &drover.StartOptions{ID: "f", Attributes: map[string]string{"a": "1"}})
		if err != nil {
			t.Fatal(err)
		}
		var got findings
		e.Result(run, &got)
		want := findings{
			Statuses: map[string]string{"": "refused", "good": "succeeded", "patient": "canceled", "slow": "timed out", "taken": "refused"},
			Reasons: map[string]string{
				"": "INVALID_ATTRIBUTES", "good": "", "patient": "", "slow": "START_TO_CLOSE", "taken": "WORKFLOW_ALREADY_RUNNING",
			},
			Results: map[string]string{"good": `"f"`, "patient": `"f"`, "slow": ""},
			Control: schemas.Payload("1"),
			Signals: []string{`nobody hello failed UNKNOWN_EXTERNAL_WORKFLOW_EXECUTION "s"`, "patient note delivered  "},
			Cancels: []string{" failed INVALID_ATTRIBUTES", "nobody failed UNKNOWN_EXTERNAL_WORKFLOW_EXECUTION", "patient delivered "},
			Refused: []string{
				"CancelExternal  INVALID_ATTRIBUTES", "CancelExternal nobody UNKNOWN_EXTERNAL_WORKFLOW_EXECUTION",
				"SignalExternal nobody UNKNOWN_EXTERNAL_WORKFLOW_EXECUTION", "StartChild  INVALID_ATTRIBUTES", "StartChild taken WORKFLOW_ALREADY_RUNNING",
			},
			Attributes: map[string]string{"a": "1", "stage": "second"},
			First:      true,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("findings (-want +got):\n%s", diff)
		}
		kid, err := e.Client.Run("good", "").Describe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"kid"}, kid.Execution.Tags); diff != "" {
			t.Errorf("tags of the child (-want +got):\n%s", diff)
		}
	})
}
