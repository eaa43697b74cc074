package docs_test

import (
	"fmt"
	"go/ast"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/jsonschema"
)

func eventTypes() []schemas.EventType {
	return slices.Sorted(slices.Values(schemas.EventTypes()))
}

func decisionTypes() []schemas.DecisionType {
	return slices.Sorted(slices.Values(schemas.DecisionTypes()))
}

func attributesOf(t *testing.T, typ schemas.EventType) reflect.Type {
	t.Helper()
	var e schemas.Event
	if err := e.UnmarshalJSON(fmt.Appendf(nil, `{"type":%q}`, typ)); err != nil {
		t.Fatal(err)
	}
	return reflect.TypeOf(e.Attributes).Elem()
}

func decisionOf(t *testing.T, typ schemas.DecisionType) reflect.Type {
	t.Helper()
	var d schemas.Decision
	if err := d.UnmarshalJSON(fmt.Appendf(nil, `{"type":%q}`, typ)); err != nil {
		t.Fatal(err)
	}
	return reflect.TypeOf(d.Attributes).Elem()
}

// attributes are those of all events and decisions.
func attributes(t *testing.T) []reflect.Type {
	var all []reflect.Type
	for _, typ := range eventTypes() {
		all = append(all, attributesOf(t, typ))
	}
	for _, typ := range decisionTypes() {
		all = append(all, decisionOf(t, typ))
	}
	return all
}

var groups = map[schemas.Group]string{
	schemas.GroupService: "service", schemas.GroupDecider: "decider", schemas.GroupActivity: "activity", schemas.GroupExternal: "outside",
}

func yes(is bool) string {
	if is {
		return "yes"
	}
	return ""
}

func link(typ reflect.Type) string {
	return "[`" + typ.Name() + "`](#" + strings.ToLower(typ.Name()) + ")"
}

// meaning is a comment without the name that it begins with.
func meaning(t *testing.T, typ reflect.Type) string {
	return text(strings.TrimPrefix(jsonschema.Doc(source(t, "schemas"), typ), typ.Name()+" "))
}

func events(t *testing.T) string {
	var body [][]string
	for _, typ := range eventTypes() {
		closes := ""
		if status, ok := schemas.StatusOf(typ); ok {
			closes = "`" + string(status) + "`"
		}
		body = append(body, []string{link(attributesOf(t, typ)), groups[typ.Group()], yes(typ.Wakes()), closes, meaning(t, attributesOf(t, typ))})
	}
	return table([]string{"event", "caused by", "wakes the decider", "closes the run as", "the event"}, body)
}

func decisions(t *testing.T) string {
	var body [][]string
	supported := carriedOut(t)
	for _, typ := range decisionTypes() {
		d := schemas.Decide(reflect.New(decisionOf(t, typ)).Interface().(schemas.DecisionAttributes))
		state := "reserved"
		if slices.Contains(supported, string(typ)) {
			state = "yes"
		}
		body = append(body, []string{link(decisionOf(t, typ)), state, yes(d.Closes()), meaning(t, decisionOf(t, typ))})
	}
	return table([]string{"decision", "carried out", "closes the run", "the decision"}, body)
}

// carriedOut are the decisions of the type switch in the function supported of the core.
func carriedOut(t *testing.T) []string {
	var all []string
	source(t, "broker/execution").Each(func(n ast.Node) {
		fn, ok := n.(*ast.FuncDecl)
		if !ok || fn.Name.Name != "supported" {
			return
		}
		ast.Inspect(fn.Body, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				all = append(all, sel.Sel.Name)
			}
			return true
		})
	})
	if len(all) == 0 {
		t.Fatal("broker/execution has no function supported any more")
	}
	return all
}

func eventAttributes(t *testing.T) string {
	var b strings.Builder
	for _, typ := range eventTypes() {
		b.WriteString(structure(t, attributesOf(t, typ)))
	}
	return b.String()
}

func decisionAttributes(t *testing.T) string {
	var b strings.Builder
	for _, typ := range decisionTypes() {
		b.WriteString(structure(t, decisionOf(t, typ)))
	}
	return b.String()
}

// What each decision does when it is taken and when it is refused names events that exist. No decision is left out, and no event
// that refuses one.
func TestDecisionOutcomes(t *testing.T) {
	text := section(t, "reference/decisions.md", "## What becomes of a decision")
	var all []string
	for _, typ := range decisionTypes() {
		all = append(all, string(typ))
	}
	same(t, "decisions", column(text, 0), all)
	for _, n := range []int{1, 2} {
		for _, e := range column(text, n) {
			if !schemas.EventType(e).Known() {
				t.Errorf("%q is no event", e)
			}
		}
	}
	refusals := column(text, 2)
	for _, typ := range eventTypes() {
		_, why := attributesOf(t, typ).FieldByName("Cause")
		_, decided := attributesOf(t, typ).FieldByName("DeciderCompletedEventID")
		if why && decided && !slices.Contains(refusals, string(typ)) {
			t.Errorf("%s refuses a decision, and none in the table leads to it", typ)
		}
	}
}

// The names of SWF: every event and decision of ours is mapped once, and every one of theirs.
func TestSWFNames(t *testing.T) {
	var ours []string
	for _, typ := range eventTypes() {
		ours = append(ours, string(typ))
	}
	text := section(t, "reference/swf.md", "## Events of SWF")
	same(t, "events", column(text, 0), ours)
	theirs := strings.Fields(swfEvents)
	same(t, "events of SWF", slices.Compact(column(text, 1)), theirs)

	ours = nil
	for _, typ := range decisionTypes() {
		ours = append(ours, string(typ))
	}
	text = section(t, "reference/swf.md", "## Decisions of SWF")
	same(t, "decisions", slices.Compact(column(text, 0)), ours)
	same(t, "decisions of SWF", slices.Compact(column(text, 1)), strings.Fields(swfDecisions))
}

// The names of the seeds and those of SWF's attributes lead to names of ours.
func TestOtherNames(t *testing.T) {
	for _, heading := range []string{"## Names of the seeds", "## Attributes of SWF"} {
		for _, name := range column(section(t, "reference/swf.md", heading), 1) {
			if !strings.Contains(reference(t), "\n### "+name+"\n") && !isField(t, name) {
				t.Errorf("%s: %q is neither an event nor a decision nor a field", heading, name)
			}
		}
	}
}

func isField(t *testing.T, name string) bool {
	for _, typ := range attributes(t) {
		for f := range typ.Fields() {
			if got, _, _ := strings.Cut(f.Tag.Get("json"), ","); got == name {
				return true
			}
		}
	}
	return strings.Contains(reference(t), "\n| `"+name+"` |")
}

// The 54 events and 13 decisions of SWF's service model, version 2012-01-25.
const (
	swfEvents = `WorkflowExecutionStarted WorkflowExecutionCancelRequested WorkflowExecutionCompleted CompleteWorkflowExecutionFailed
		WorkflowExecutionFailed FailWorkflowExecutionFailed WorkflowExecutionTimedOut WorkflowExecutionCanceled
		CancelWorkflowExecutionFailed WorkflowExecutionContinuedAsNew ContinueAsNewWorkflowExecutionFailed
		WorkflowExecutionTerminated DecisionTaskScheduled DecisionTaskStarted DecisionTaskCompleted DecisionTaskTimedOut
		ActivityTaskScheduled ScheduleActivityTaskFailed ActivityTaskStarted ActivityTaskCompleted ActivityTaskFailed
		ActivityTaskTimedOut ActivityTaskCanceled ActivityTaskCancelRequested RequestCancelActivityTaskFailed
		WorkflowExecutionSignaled MarkerRecorded RecordMarkerFailed TimerStarted StartTimerFailed TimerFired TimerCanceled
		CancelTimerFailed StartChildWorkflowExecutionInitiated StartChildWorkflowExecutionFailed ChildWorkflowExecutionStarted
		ChildWorkflowExecutionCompleted ChildWorkflowExecutionFailed ChildWorkflowExecutionTimedOut
		ChildWorkflowExecutionCanceled ChildWorkflowExecutionTerminated SignalExternalWorkflowExecutionInitiated
		SignalExternalWorkflowExecutionFailed ExternalWorkflowExecutionSignaled
		RequestCancelExternalWorkflowExecutionInitiated RequestCancelExternalWorkflowExecutionFailed
		ExternalWorkflowExecutionCancelRequested LambdaFunctionScheduled LambdaFunctionStarted LambdaFunctionCompleted
		LambdaFunctionFailed LambdaFunctionTimedOut ScheduleLambdaFunctionFailed StartLambdaFunctionFailed`
	swfDecisions = `ScheduleActivityTask RequestCancelActivityTask CompleteWorkflowExecution FailWorkflowExecution
		CancelWorkflowExecution ContinueAsNewWorkflowExecution RecordMarker StartTimer CancelTimer
		SignalExternalWorkflowExecution RequestCancelExternalWorkflowExecution StartChildWorkflowExecution ScheduleLambdaFunction`
)
