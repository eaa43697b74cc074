package flow_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/drovertest"
	"github.com/droverhq/drover/internal/sample"
	"github.com/droverhq/drover/schemas"
)

// Flows that would run or grow for ever end by themselves with an error that says what is wrong. None of them keeps its decider busy
// for longer than the others can wait, and a run beside them completes.
func TestHostileRuns(t *testing.T) {
	sample.OneOfEight(t)
	large := "- let x = 0123456789\n" + strings.Repeat("- {type: let, variable: x, value: '${x}${x}'}\n", 16)
	hostile := map[string]struct{ flow, want string }{
		"loop":    {"steps:\n- {id: a, step: no-op}\n- goto a\n", "the flow goes round in circles"},
		"replay":  {"replayable: from start\nsteps:\n- {step: fail message again}\non-error: retry\n", "the flow goes round in circles"},
		"grows":   {"steps:\n- {type: let, variable: x, value: []}\n- {id: a, step: 'let x[] = some text that takes room'}\n- goto a\n", "with as much work"},
		"works":   {"steps:\n" + large + "- {id: a, step: 'transform y = ${x} | replace all 5 6 | size'}\n- goto a\n", "with as much work"},
		"doubles": {"steps:\n- let x = 0123456789\n- {type: let, id: a, variable: x, value: '${x}${x}'}\n- goto a\n", "too large"},
		"nests":   {"steps:\n- {type: let, variable: x, value: [1, 2]}\n- {type: let, id: a, variable: x, value: ['${x}', '${x}']}\n- goto a\n", "too large"},
		"many":    {"steps:\n- step: foreach n in 1..1000000000\n  concurrency: all\n  do: no-op\n", "more than 10000 targets"},
		"itself":  {"steps:\n- child itself\n", "ancestors"},
	}
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		flows := map[string]string{"good": "steps: [sleep 1s, return good]"}
		for name, h := range hostile {
			flows[name] = h.flow
		}
		farm(t, e, flows, nil)
		runs := map[string]*drover.Run{}
		for name := range hostile {
			runs[name] = start(t, e, name, name, nil)
		}
		if out := e.Wait(start(t, e, "good", "good", nil)); out.Status != schemas.StatusCompleted {
			t.Errorf("the run beside: got %+v, want completed", out)
		}
		for name, h := range hostile {
			out := e.Wait(runs[name])
			text := fmt.Sprint(out.Reason, " ", string(out.Details))
			if out.Status != schemas.StatusFailed || !strings.Contains(text, h.want) {
				t.Errorf("%s: got %s with %s, want a failure with %q", name, out.Status, text[:min(len(text), 1000)], h.want)
			}
		}
	})
}
