package decider_test

import (
	"testing"

	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/schemas"
	"github.com/google/go-cmp/cmp"
)

// asked is a child "pay" of run R-1, asked for by event 1.
func asked(then ...schemas.Attributes) []schemas.Event {
	return numbered(append([]schemas.Attributes{&schemas.ChildScheduled{
		WorkflowID: "pay", Run: "R-1", WorkflowType: "payment", Control: schemas.Payload(`"c"`),
	}}, then...))
}

func TestChildStatus(t *testing.T) {
	run := schemas.Execution{WorkflowID: "pay", Run: "R-1"}
	later := schemas.Execution{WorkflowID: "pay", Run: "R-9"}
	started := &schemas.ChildStarted{WorkflowExecution: run, ScheduledEventID: 1}
	detail := schemas.Payload(`"why"`)
	again := &schemas.ChildScheduled{WorkflowID: "pay", Run: "R-2", WorkflowType: "payment"}
	refused := func(event int64) *schemas.ChildStartFailed {
		return &schemas.ChildStartFailed{
			WorkflowID: "pay", WorkflowType: "payment", ScheduledEventID: event, Cause: schemas.CauseWorkflowRunning, Details: "taken", Control: schemas.Payload(`"n"`),
		}
	}
	// child is what the view shows; what no case changes is as event 1 has it.
	child := func(status decider.ChildStatus, change func(*decider.Child)) decider.Child {
		c := decider.Child{WorkflowID: "pay", Type: "payment", Run: "R-1", ScheduledID: 1, Status: status, Control: schemas.Payload(`"c"`)}
		if change != nil {
			change(&c)
		}
		return c
	}
	second := func(status decider.ChildStatus) decider.Child {
		return decider.Child{WorkflowID: "pay", Type: "payment", Run: "R-2", ScheduledID: 2, Status: status}
	}
	refusal := func(c *decider.Child) {
		c.Reason, c.Cause, c.Details = "WORKFLOW_ALREADY_RUNNING", schemas.CauseWorkflowRunning, schemas.Payload("taken")
	}
	for name, c := range map[string]struct {
		then []schemas.Attributes
		want decider.Child
		all  int // children of the id, 0 means one
	}{
		"asked for": {nil, child(decider.ChildScheduled, nil), 0},
		"started":   {[]schemas.Attributes{started}, child(decider.ChildStarted, nil), 0},
		"succeeded": {
			[]schemas.Attributes{started, &schemas.ChildSuccess{WorkflowExecution: run, ScheduledEventID: 1, Result: schemas.Payload("42")}},
			child(decider.ChildSucceeded, func(c *decider.Child) { c.Result = schemas.Payload("42") }), 0,
		},
		"succeeded as a later run": {
			[]schemas.Attributes{started, &schemas.ChildSuccess{WorkflowExecution: later, ScheduledEventID: 1}},
			child(decider.ChildSucceeded, func(c *decider.Child) { c.Run = "R-9" }), 0,
		},
		"failed": {
			[]schemas.Attributes{started, &schemas.ChildFailed{WorkflowExecution: run, ScheduledEventID: 1, Reason: "broke", Details: detail}},
			child(decider.ChildFailed, func(c *decider.Child) { c.Reason, c.Details = "broke", detail }), 0,
		},
		"timed out": {
			[]schemas.Attributes{started, &schemas.ChildTimedOut{WorkflowExecution: run, ScheduledEventID: 1, TimeoutType: schemas.TimeoutStartToClose}},
			child(decider.ChildTimedOut, func(c *decider.Child) { c.Reason = "START_TO_CLOSE" }), 0,
		},
		"canceled": {
			[]schemas.Attributes{started, &schemas.ChildCanceled{WorkflowExecution: run, ScheduledEventID: 1, Details: detail}},
			child(decider.ChildCanceled, func(c *decider.Child) { c.Details = detail }), 0,
		},
		"terminated": {
			[]schemas.Attributes{started, &schemas.ChildTerminated{WorkflowExecution: run, ScheduledEventID: 1}},
			child(decider.ChildTerminated, nil), 0,
		},
		"refused by the owner of the id": {[]schemas.Attributes{refused(1)}, child(decider.ChildRefused, refusal), 0},
		"ends twice": {
			[]schemas.Attributes{
				started, &schemas.ChildTerminated{WorkflowExecution: run, ScheduledEventID: 1},
				&schemas.ChildSuccess{WorkflowExecution: later, ScheduledEventID: 1, Result: schemas.Payload("42")}, refused(1), started,
			},
			child(decider.ChildTerminated, nil), 0,
		},
		"asked for again": {
			[]schemas.Attributes{refused(1), again},
			decider.Child{WorkflowID: "pay", Type: "payment", Run: "R-2", ScheduledID: 3, Status: decider.ChildScheduled},
			2,
		},
		"a second one is on its way":              {[]schemas.Attributes{again}, second(decider.ChildScheduled), 2},
		"a second one is refused, the first open": {[]schemas.Attributes{again, refused(2)}, child(decider.ChildScheduled, nil), 2},
		"a second one is refused, the first closed": {
			[]schemas.Attributes{again, &schemas.ChildSuccess{WorkflowExecution: run, ScheduledEventID: 1}, refused(2)},
			func() decider.Child { c := second(decider.ChildRefused); refusal(&c); return c }(), 2,
		},
		"a second one is refused at once": {[]schemas.Attributes{refused(0)}, child(decider.ChildScheduled, nil), 2},
		"refused at once after its end": {
			[]schemas.Attributes{&schemas.ChildTerminated{WorkflowExecution: run, ScheduledEventID: 1}, refused(0)},
			child(decider.ChildRefused, func(c *decider.Child) {
				refusal(c)
				c.Run, c.ScheduledID, c.Control = "", 0, schemas.Payload(`"n"`)
			}), 2,
		},
		"events of a child that was not added": {
			[]schemas.Attributes{
				&schemas.ChildStarted{ScheduledEventID: 99}, &schemas.ChildSuccess{ScheduledEventID: 99}, &schemas.ChildFailed{ScheduledEventID: 99}, refused(99),
				&schemas.ChildTimedOut{ScheduledEventID: 99}, &schemas.ChildCanceled{ScheduledEventID: 99}, &schemas.ChildTerminated{ScheduledEventID: 99},
			},
			child(decider.ChildScheduled, nil), 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := viewOf(asked(c.then...))
			got := v.Child("pay")
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Fatalf("child (-want +got):\n%s", diff)
			}
			if n := len(v.Children("pay")); n != max(c.all, 1) {
				t.Errorf("got %d children of the id, want %d", n, max(c.all, 1))
			}
			if got.ScheduledID != 0 {
				if diff := cmp.Diff(got, v.ChildAt(got.ScheduledID)); diff != "" {
					t.Errorf("child by its event (-by id +by event):\n%s", diff)
				}
			}
			if got.Status.Open() == got.Status.Closed() || v.ChildrenDone("pay") != got.Status.Closed() {
				t.Errorf("%v is open: %v, closed: %v, done: %v", got.Status, got.Status.Open(), got.Status.Closed(), v.ChildrenDone("pay"))
			}
		})
	}
}

// Two parallel children are joined as parallel activities are.
func TestChildren(t *testing.T) {
	v := viewOf(numbered([]schemas.Attributes{
		&schemas.ChildScheduled{WorkflowID: "b"},
		&schemas.ChildScheduled{WorkflowID: "a"},
		&schemas.ChildStarted{ScheduledEventID: 2},
	}))
	names := func(all []decider.Child) (ids []string) {
		for _, c := range all {
			ids = append(ids, c.WorkflowID)
		}
		return ids
	}
	if diff := cmp.Diff([]string{"b", "a"}, v.OpenChildren()); diff != "" {
		t.Errorf("open children (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"b", "a"}, names(v.Children())); diff != "" {
		t.Errorf("children (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a"}, names(v.Children("a", "unknown"))); diff != "" {
		t.Errorf("children a and unknown (-want +got):\n%s", diff)
	}
	for i, close := range []schemas.Attributes{&schemas.ChildSuccess{ScheduledEventID: 1}, &schemas.ChildFailed{ScheduledEventID: 2}} {
		if v.ChildrenDone("a", "b") {
			t.Errorf("done after %d of 2", i)
		}
		v.Add(schemas.Event{ID: int64(4 + i), Attributes: close})
	}
	if !v.ChildrenDone("a", "b") || v.ChildrenDone("a", "unknown") || !v.ChildrenDone() || len(v.OpenChildren()) != 0 {
		t.Errorf("want a and b done and nothing open, got %v and %v", v.ChildrenDone("a", "b"), v.OpenChildren())
	}
	got := viewOf(nil)
	if diff := cmp.Diff(decider.Child{}, got.Child("a")); diff != "" || got.ChildAt(1).Status != 0 || got.Children() != nil || len(got.OpenChildren()) != 0 {
		t.Errorf("an empty view shows a child %s", diff)
	}
}
