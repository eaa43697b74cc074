package execution

import (
	"strings"
	"testing"

	"github.com/droverhq/drover/schemas"
)

// What a run shows in lists is bounded over all its decisions, and what it says of the runs that it asks for.
func TestListedWordsAreBounded(t *testing.T) {
	half := strings.Repeat("x", schemas.MaxAttributes/2-1)
	set := func(name, value string) *schemas.SetAttributes {
		return &schemas.SetAttributes{Attributes: map[string]string{name: value}}
	}
	w := decided(t, set("a", half), set("b", half))
	w.follows("")
	for _, d := range [][]schemas.DecisionAttributes{{set("c", "x")}, {&schemas.RecordMarker{MarkerName: "m"}, set("c", "x")}, {set("a", ""), set("a", half), set("b", half+"x")}} {
		w.do(Signal{Name: "x"})
		w.decide(d...)
		w.follows("Signal x; DeciderScheduled; DeciderStarted; DeciderFailed INVALID_DECISION; DeciderScheduled")
		w.decide(&schemas.RecordMarker{MarkerName: "m"})
		w.since()
	}
	w.do(Signal{Name: "x"})
	w.decide(set("a", ""), set("c", half))
	w.follows("Signal x; DeciderScheduled; DeciderStarted; DeciderCompleted; AttributesSet; AttributesSet")
	if n := schemas.AttributesSize(w.s.Attributes); n != schemas.MaxAttributes {
		t.Fatalf("got %d bytes, want %d", n, schemas.MaxAttributes)
	}

	long := strings.Repeat("x", schemas.MaxIDLen+1)
	w = decided(t, &schemas.StartChild{WorkflowID: "c", WorkflowType: "T", TagList: []string{long}},
		&schemas.StartChild{WorkflowID: "c", WorkflowType: "T", WorkflowTypeVersion: long})
	w.want("WorkflowStarted", "DeciderScheduled", "DeciderStarted", "DeciderCompleted", "ChildStartFailed", "ChildStartFailed", "DeciderScheduled")
	for _, e := range w.events[4:6] {
		if a := e.Attributes.(*schemas.ChildStartFailed); a.Cause != schemas.CauseInvalidAttributes {
			t.Fatalf("got %+v", a)
		}
	}
}
