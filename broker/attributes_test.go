package broker_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// What a run shows in lists stands in the headers of its records, and NATS stores no more than 64 KiB of these. Too much of it is
// refused, and what becomes too long as JSON is left out: no run may hold up its partition.
func TestLargeAttributes(t *testing.T) { // P-4
	large := strings.Repeat("x", 70_000)
	escaped := strings.Repeat("\x01", 12_000) // six times as long in JSON
	for _, tt := range []struct{ name, start, decided, field, want string }{
		{name: "attributes at the start", start: fmt.Sprintf(`,"attributes":{"k":%q}`, large), field: "attributes"},
		{name: "tags", start: fmt.Sprintf(`,"tagList":[%q]`, large), field: "tagList"},
		{name: "a version", start: fmt.Sprintf(`,"typeVersion":%q`, large), field: "typeVersion"},
		{name: "attributes of a decision", decided: large, want: "WorkflowPaused"},
		{name: "attributes with control characters", decided: escaped, want: "WorkflowSuccess"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				f.node("a", nil)
				f.decider("order", func(d *decisionTask) string {
					if d.WorkflowID == "o" && tt.decided != "" {
						value := strings.ReplaceAll(fmt.Sprintf("%q", tt.decided), `\x01`, `\u0001`)
						return `[{"type":"SetAttributes","attributes":{"attributes":{"k":` + value + `}}},{"type":"CompleteWorkflow"}]`
					}
					return complete
				})
				a := f.start(`{"workflowId":"o","type":"order","run":"r1","requestId":"q1"` + tt.start + `}`)
				if e, _ := a["error"].(map[string]any); (tt.field != "") != (e["code"] == "invalid_argument" && e["field"] == tt.field) {
					t.Fatalf("got %v, want the field %q refused", a, tt.field)
				}
				time.Sleep(time.Minute)
				if tt.want != "" && !slices.Contains(f.types("o"), tt.want) {
					t.Fatalf("got %v, want %s", f.types("o"), tt.want)
				}
				f.start(`{"workflowId":"other","type":"order","run":"r9","requestId":"q9"}`)
				f.completes("other")
			})
		})
	}
}
