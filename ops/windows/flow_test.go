package windows_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/droverhq/drover/decider/flow"
	"github.com/droverhq/drover/decider/flow/model"
	"github.com/droverhq/drover/schemas"
)

// oneFlow is the store of one flow.
type oneFlow struct{ d *model.Definition }

func (s oneFlow) Definition(context.Context, string, string, string) (*model.Definition, string, error) {
	return s.d, s.d.Version(), nil
}

// S2-12: of several runs of a flow one is told that it is the first of the day.
func TestFlowStep(t *testing.T) {
	d, err := flow.Parse("daily", []byte(`
steps:
- once ${what} per day in Europe/Berlin
- {step: 'return ours: ${output.period}', condition: {target: '${output.first}', equals: true}}
- return somebody else's
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	live(t, func(h *house) {
		w := h.Client.Deciders(nil)
		w.Register("daily", flow.New(oneFlow{d}, nil))
		h.Go(w)
		h.node("a", nil)
		h.node("b", nil)
		got := map[string]int{}
		for i := range 3 {
			run, err := h.Client.Start(h.t.Context(), "daily", map[string]any{"what": "report"}, nil)
			if err != nil {
				h.t.Fatal(err)
			}
			out := h.Wait(run)
			if out.Status != schemas.StatusCompleted {
				h.t.Fatalf("run %d: %s, %s %s", i, out.Status, out.Reason, out.Details)
			}
			got[string(out.Result)]++
		}
		if want := map[string]int{`"ours: 2000-01-01"`: 1, `"somebody else's"`: 2}; fmt.Sprint(got) != fmt.Sprint(want) {
			h.t.Errorf("the runs returned %v, want %v", got, want)
		}
	})
}
