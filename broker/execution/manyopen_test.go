package execution

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/schemas"
)

// Of everything that is open there may be several, and each is seen to, in the order in which it was asked for.
func TestManyOpen(t *testing.T) { // P-3
	child := func(id string) *schemas.StartChild { return &schemas.StartChild{WorkflowID: id, WorkflowType: "child"} }
	w := begin(t, func(q *schemas.StartRequest) {
		q.Origin = &schemas.StartOrigin{Parent: &schemas.Execution{WorkflowID: "p", Run: "p-1"}, ParentScheduledEventID: 5, Depth: 1}
	})
	w.decide(activity("B"), activity("A"), child("d"), child("c"), lockUp("M"), lockUp("L"), setKey("k", "1", ""), setKey("j", "1", ""),
		&schemas.SignalExternal{WorkflowID: "x", SignalName: "s"}, &schemas.CancelExternal{WorkflowID: "x"})
	want := []Effect{
		Dispatch{ScheduledID: 5},
		Dispatch{ScheduledID: 6},
		StartChild{ScheduledID: 7},
		StartChild{ScheduledID: 8},
		EnterLock{Key: "=.M", Asked: Asked{"run-1", 9}, By: 9},
		EnterLock{Key: "=.L", Asked: Asked{"run-1", 10}, By: 10},
		AskState{ScheduledID: 11},
		AskState{ScheduledID: 12},
		Request{ScheduledID: 13},
		Request{ScheduledID: 14},
	}
	for range 20 { // a map is walked in any order
		if diff := cmp.Diff(want, w.s.OpenEffects(w.now)); diff != "" {
			t.Fatalf("open (-want +got):\n%s", diff)
		}
	}
	for _, id := range []string{"A", "B"} {
		w.report(id, schemas.ReportStarted, func(r *schemas.Report) { r.Identity = "worker-" + id })
	}
	last := w.do(Terminate{Request: &schemas.ExecutionRequest{ChildPolicy: schemas.ChildTerminate}})
	if told := of[CancelRunning](last); len(told) != 2 || told[0].Worker != "worker-B" || told[1].Worker != "worker-A" || !told[0].Gone {
		t.Errorf("told are %+v, want both workers that nobody waits for them", told)
	}
	ends := []EndChild{
		{ScheduledID: 7, Child: schemas.Execution{WorkflowID: "d", Run: w.s.Children[7].Scheduled.Run}, Policy: schemas.ChildTerminate},
		{ScheduledID: 8, Child: schemas.Execution{WorkflowID: "c", Run: w.s.Children[8].Scheduled.Run}, Policy: schemas.ChildTerminate},
	}
	if diff := cmp.Diff(ends, of[EndChild](last)); diff != "" {
		t.Errorf("children (-want +got):\n%s", diff)
	}
	want = []Effect{StartChild{ScheduledID: 7}, StartChild{ScheduledID: 8}, Request{ScheduledID: 13}, Request{ScheduledID: 14}, ends[0], ends[1], Closed{}}
	for range 20 {
		if diff := cmp.Diff(want, w.s.OpenEffects(w.now)); diff != "" {
			t.Fatalf("open after the end (-want +got):\n%s", diff)
		}
	}
}

// Word that a child could not be started is late when it has begun; a child that has ended is left alone.
func TestLateWordOfAChild(t *testing.T) { // P-3
	report := func(status schemas.Status, cause schemas.Cause) Message {
		return Child{Report: &schemas.ChildReport{ParentRun: "run-1", ScheduledEventID: 5, Status: status, Cause: cause}}
	}
	w := decided(t, &schemas.StartChild{WorkflowID: "c", WorkflowType: "child"})
	w.do(report(schemas.StatusOpen, ""))
	w.do(report("", schemas.CauseWorkflowRunning))
	w.do(report(schemas.StatusOpen, ""))
	w.follows("ChildStarted")
	w.do(Terminate{Request: &schemas.ExecutionRequest{ChildPolicy: schemas.ChildTerminate}})
	w.wantEffects(w.do(report(schemas.StatusCompleted, "")))
	if got := w.s.Continuation(); got != nil {
		t.Errorf("a run that was terminated is continued by %+v", got)
	}
}
