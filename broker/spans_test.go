package broker_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// Spans are read by any broker: of the latest run, of an earlier one by its id, and of none that is not there.
func TestSpansOfRuns(t *testing.T) {
	virtually(t, 2, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.node("b", nil)
		f.decider("order", func(*decisionTask) string {
			return `[{"type":"RecordMarker","attributes":{"markerName":"seen"}},{"type":"CompleteWorkflow"}]`
		})
		var runs []string
		for range 2 {
			a := f.start(`{"workflowId":"w","type":"order"}`)
			runs = append(runs, fmt.Sprint(a["run"]))
			time.Sleep(5 * time.Second)
		}
		kinds := []ops.SpanKind{ops.SpanDecision, ops.SpanMarker}
		for given, want := range map[string]string{"": runs[1], runs[0]: runs[0], runs[1]: runs[1]} {
			var a ops.SpansResponse
			f.apiInto(&a, "spans", `{"workflowId":"w","run":"`+given+`"}`)
			if a.Error != nil || a.Run != want || !slices.Equal(a.Spans.Kind, kinds) || !a.Closed || a.More || a.Base == 0 || a.Spans.End[0] < 0 {
				t.Errorf("run %q: got %+v, want a decision and a marker of run %s", given, a, want)
			}
			var rest ops.SpansResponse
			f.apiInto(&rest, "spans", fmt.Sprintf(`{"workflowId":"w","run":%q,"after":%d}`, a.Run, a.Next))
			if rest.Error != nil || len(rest.Spans.Kind) != 0 || rest.Next != a.Next || !rest.Closed {
				t.Errorf("after event %d: got %+v, want nothing more", a.Next, rest)
			}
		}
		for body, code := range map[string]schemas.Code{
			`{"workflowId":"none"}`: schemas.CodeNotFound, `{"workflowId":"w","run":"none"}`: schemas.CodeNotFound, `{}`: schemas.CodeInvalid,
		} {
			var a ops.SpansResponse
			if f.apiInto(&a, "spans", body); a.Error == nil || a.Error.Code != code {
				t.Errorf("%s: got %+v, want %s", body, a, code)
			}
		}
	})
}
