package schemas_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// constants returns the values of all constants of a type in the package's source, sorted.
func constants(t *testing.T, typ string) []string {
	t.Helper()
	var values []string
	fset := token.NewFileSet()
	for _, file := range []string{"eventtype.go", "decision.go", "ops/operation.go"} {
		f, err := parser.ParseFile(fset, file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			if id, ok := spec.Type.(*ast.Ident); ok && id.Name == typ && len(spec.Values) == 1 {
				value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				values = append(values, value)
			}
			return true
		})
	}
	slices.Sort(values)
	return values
}

func names[T ~string](types []T) []string {
	var all []string
	for _, typ := range types {
		all = append(all, string(typ))
	}
	slices.Sort(all)
	return all
}

// A constant without an entry in its table would make an event that nobody can read back.
func TestTablesAreComplete(t *testing.T) {
	if diff := cmp.Diff(constants(t, "EventType"), names(schemas.EventTypes())); diff != "" {
		t.Fatalf("events (-constants +table):\n%s", diff)
	}
	if diff := cmp.Diff(constants(t, "DecisionType"), names(schemas.DecisionTypes())); diff != "" {
		t.Fatalf("decisions (-constants +table):\n%s", diff)
	}
	if diff := cmp.Diff(constants(t, "OperationKind"), names(ops.OperationKinds)); diff != "" {
		t.Fatalf("kinds of operations (-constants +table):\n%s", diff)
	}
	for _, typ := range schemas.EventTypes() {
		if got := attributesOf(t, typ).EventType(); got != typ {
			t.Fatalf("the table makes %s for %s", got, typ)
		}
		if want := "*schemas." + string(typ); fmt.Sprintf("%T", attributesOf(t, typ)) != want {
			t.Fatalf("%s is made as %T, want %s", typ, attributesOf(t, typ), want)
		}
		if !typ.Known() || typ.Group() == 0 {
			t.Fatalf("%s: known %v, group %d", typ, typ.Known(), typ.Group())
		}
		if _, closes := schemas.StatusOf(typ); closes != typ.Closes() {
			t.Fatalf("%s: StatusOf says it closes: %v; the table: %v", typ, closes, typ.Closes())
		}
	}
	for _, typ := range schemas.DecisionTypes() {
		if got := decisionOf(t, typ).DecisionType(); got != typ {
			t.Fatalf("the table makes %s for %s", got, typ)
		}
	}
}

// The lists are those of S1-42, S1-22 and S1-24.
func TestGroupsAndWakingEvents(t *testing.T) {
	asleep := strings.Fields(`WorkflowPaused ContinuationHeld ContinuationReleased DeciderScheduled DeciderStarted DeciderCompleted ActivityStarted
		ActivityInterrupted ActivityRetryScheduled ChildStarted ExternalSignaled ExternalCancelRequested LockBroken`)
	for _, typ := range schemas.EventTypes() {
		want := typ.Group() != schemas.GroupDecider && !typ.Closes() && !slices.Contains(asleep, string(typ))
		if got := typ.Wakes(); got != want {
			t.Errorf("%s wakes: got %v, want %v", typ, got, want)
		}
	}
	for typ, want := range map[schemas.EventType]schemas.Group{
		schemas.EventSignal: schemas.GroupExternal, schemas.EventActivitySuccess: schemas.GroupActivity,
		schemas.EventActivityTimedOut: schemas.GroupService, schemas.EventMarker: schemas.GroupDecider,
		schemas.EventWorkflowSuccess: schemas.GroupDecider, schemas.EventWorkflowTimedOut: schemas.GroupService,
		schemas.EventMarkerFailed: schemas.GroupService, "NotYetInvented": 0,
	} {
		if got := typ.Group(); got != want {
			t.Errorf("%s: got group %d, want %d", typ, got, want)
		}
	}
}

func TestDecisionCloses(t *testing.T) {
	for _, typ := range schemas.DecisionTypes() {
		want := slices.Contains(strings.Fields("CompleteWorkflow FailWorkflow CancelWorkflow ContinueAsNew"), string(typ))
		if got := schemas.Decide(decisionOf(t, typ)).Closes(); got != want {
			t.Errorf("%s closes: got %v, want %v", typ, got, want)
		}
	}
	if (schemas.Decision{}).Closes() || (schemas.Decision{}).Type() != "" || (schemas.Event{}).Type() != "" {
		t.Error("the zero decision or event has a type")
	}
}
