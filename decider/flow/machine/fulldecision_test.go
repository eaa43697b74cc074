package machine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/droverhq/drover/decider/flow/machine"
	"github.com/droverhq/drover/decider/flow/run"
)

// A decision that was full when a step with runs within began, by what the step itself notes, left all of them out, and the run went on with
// an output of nothing.
func TestFullDecisionSkipsNoRuns(t *testing.T) {
	for _, kind := range []string{"foreach n in 1..3", "workflow"} {
		for logs := machine.MaxActions - 3; logs <= machine.MaxActions+1; logs++ {
			t.Run(fmt.Sprint(kind, " after ", logs), func(t *testing.T) {
				p := part(t, compile(t, "steps:\n"+strings.Repeat("- log x\n", logs)+"- {step: "+kind+", replayable: from here, steps: [no-op]}\n"), "")
				s, actions, err := machine.Start(p, machine.Begin{}, begin, half)
				asked := 0
				for {
					if err != nil {
						t.Fatal(err)
					}
					var in []machine.Input
					for _, a := range actions {
						switch a.Do {
						case machine.StartChild:
							asked++
							in = append(in, machine.Input{Kind: machine.Result, ID: a.ID})
						case machine.StartTimer:
							in = append(in, machine.Input{Kind: machine.Fired, ID: a.ID})
						}
					}
					if len(in) == 0 {
						break
					}
					actions, err = machine.Step(p, s, in, begin, half)
				}
				want := map[string]int{"workflow": 1}[kind]
				if want == 0 {
					want = 3
				}
				if asked != want || s.Status != run.Succeeded {
					t.Errorf("%d runs were asked for and the flow has %s, want %d and %s", asked, s.Status, want, run.Succeeded)
				}
			})
		}
	}
}

// What a decision has to carry is bounded by its size too: large texts are left to the next one.
func TestLargeActionsPartDecisions(t *testing.T) {
	p := part(t, compile(t, "steps:\n- {type: foreach, target: 1..40, target_var_name: n, concurrency: all, input: {text: "+strings.Repeat("x", 10_000)+"}, steps: [no-op]}\n"), "")
	s, actions, err := machine.Start(p, machine.Begin{}, begin, half)
	if err != nil {
		t.Fatal(err)
	}
	most := machine.MaxActionBytes/10_000 + 1
	for begun := 0; ; {
		var in []machine.Input
		n := 0
		for _, a := range actions {
			switch a.Do {
			case machine.StartChild:
				n++
			case machine.StartTimer:
				in = append(in, machine.Input{Kind: machine.Fired, ID: a.ID})
			}
		}
		if begun += n; n > most {
			t.Fatalf("a decision begins %d runs with 10,000 bytes each, want at most %d", n, most)
		}
		if len(in) == 0 {
			if begun != 40 {
				t.Errorf("%d runs were begun, want 40", begun)
			}
			return
		}
		if actions, err = machine.Step(p, s, in, begin, half); err != nil {
			t.Fatal(err)
		}
	}
}
