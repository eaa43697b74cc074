package flow

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/drovertest"
	"github.com/droverhq/drover/internal/sample"
	"github.com/droverhq/drover/schemas"
	"github.com/google/go-cmp/cmp"
)

// loop serves a flow to one decider. full tells when its runs continue as new; nil is never.
func loop(t *testing.T, e *drovertest.Env, text string, warm int, full func(*decider.Task) bool) {
	t.Helper()
	definition, err := Parse("loop", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	d := New(one{definition}, &Options{Warm: warm})
	if full != nil {
		d.full = full
	}
	w := e.Client.Deciders(nil)
	w.Register("loop", d)
	e.Go(w)
}

func elements(n int) (all []any) {
	for i := range n {
		all = append(all, fmt.Sprintf("%d %s", i, strings.Repeat("x", 50)))
	}
	return all
}

// F11: a large loop comes to the same whatever it runs over, whether its run stays in memory or is read from the context and the history, and
// across runs that continue each other.
func TestLargeLoops(t *testing.T) {
	const n = 60
	numbers := func(keep func(int) bool) (all []any) {
		for i := range n {
			if keep(i + 1) {
				all = append(all, float64(i+1))
			}
		}
		return all
	}
	for name, c := range map[string]struct {
		loop string
		want []any
	}{
		"range":     {`{step: "foreach n in 1..60 do return ${n}", concurrency: WIDTH}`, numbers(func(int) bool { return true })},
		"list":      {`{step: "foreach n in ${items} do return ${n}", concurrency: WIDTH}`, elements(n)},
		"condition": {`{type: foreach, target: 1..60, target_var_name: n, condition: {target: "${n}", greater-than: 5}, concurrency: WIDTH, steps: ["return ${n}"]}`, numbers(func(n int) bool { return n > 5 })},
	} {
		for _, width := range []string{"1", "7"} {
			if width != "1" && name != "range" {
				continue // how many iterations run at once makes no difference to what they run over
			}
			for how, warm := range map[string]int{"warm": 0, "cold": -1} {
				for _, continues := range []bool{false, true} {
					t.Run(fmt.Sprint(name, "/", width, "/", how, "/continues=", continues), func(t *testing.T) {
						sample.OneOfEight(t)
						drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
							var full func(*decider.Task) bool
							if continues {
								full = func(t *decider.Task) bool { return t.StartedID() > 150 }
							}
							loop(t, e, "steps:\n- "+strings.ReplaceAll(c.loop, "WIDTH", width)+"\n- return ${output}\n", warm, full)
							run, err := e.Client.Start(t.Context(), "loop", map[string]any{"items": elements(n)}, &drover.StartOptions{ID: "l"})
							if err != nil {
								t.Fatal(err)
							}
							var got []any
							e.Result(run, &got)
							if diff := cmp.Diff(c.want, got); diff != "" {
								t.Errorf("-want +got\n%s", diff)
							}
							if a, ok := e.History("l")[0].Attributes.(*schemas.WorkflowStarted); !ok || continues && a.ContinuedExecutionRun == "" {
								t.Error("the last run has continued no other")
							}
						})
					})
				}
			}
		}
	}
}

// F11: the history of a loop grows with its length, not with the square of it.
func TestLargeLoopsAreLinear(t *testing.T) {
	sample.OneOfEight(t)
	size := func(n int) int {
		bytes := 0
		drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
			loop(t, e, "steps:\n- foreach n in ${items} do return ${n}\n", 0, nil)
			run, err := e.Client.Start(t.Context(), "loop", map[string]any{"items": elements(n)}, &drover.StartOptions{ID: "l"})
			if err != nil {
				t.Fatal(err)
			}
			var got []any
			e.Result(run, &got)
			for _, event := range e.History("l") {
				b, err := json.Marshal(event)
				if err != nil {
					t.Fatal(err)
				}
				bytes += len(b)
			}
		})
		return bytes
	}
	few, many := size(75), size(300)
	if many > 6*few {
		t.Errorf("75 elements take %d bytes, and 300 of them %d, more than six times as much", few, many)
	}
}

// F11: a replay of a run that broke in the middle of a large loop has the outputs of what was done, which are in the history of the run before.
func TestLargeLoopsAreReplayed(t *testing.T) {
	sample.OneOfEight(t)
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		loop(t, e, `
steps:
- {step: "set-state ready = ${ready}", condition: {target: "${ready}", when: present}}
- {step: return set, condition: {target: "${ready}", when: present}}
- type: foreach
  target: ${items}
  target_var_name: n
  steps:
  - {step: no-op, replayable: from here}
  - {step: fail message not yet, condition: {all: [{target: "${n}", equals: last}, {target: "${state.ready}", equals: no}]}}
  - return ${n}
- return ${output}
`, -1, nil)
		ready := func(v string) {
			run, err := e.Client.Start(t.Context(), "loop", map[string]any{"ready": v}, &drover.StartOptions{ID: v})
			if err != nil {
				t.Fatal(err)
			}
			e.Result(run, nil)
		}
		ready("no")
		items := append(elements(60), "last")
		run, err := e.Client.Start(t.Context(), "loop", map[string]any{"items": items}, &drover.StartOptions{ID: "l"})
		if err != nil {
			t.Fatal(err)
		}
		if out := e.Wait(run); out.Status != schemas.StatusFailed {
			t.Fatalf("got %v, want a failure", out.Status)
		}
		ready("yes")
		if _, err := run.Replay(t.Context(), &drover.ReplayOptions{From: schemas.ReplayFromEnd}); err != nil {
			t.Fatal(err)
		}
		var got []any
		e.Result(e.Client.Run("l", ""), &got)
		if diff := cmp.Diff(items, got); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	})
}
