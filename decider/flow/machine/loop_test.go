package machine_test

import (
	"fmt"
	"testing"

	"github.com/droverhq/drover/decider/flow/machine"
	"github.com/droverhq/drover/decider/flow/run"
)

// A loop has so many runs and no more, however its targets are written.
func TestMostTargets(t *testing.T) {
	for _, n := range []int{run.MaxTargets, run.MaxTargets + 1} {
		list := make([]any, n)
		for i := range list {
			list[i] = int64(i)
		}
		for name, target := range map[string]any{"a list": list, "a range": fmt.Sprintf("1..%d", n)} {
			p := part(t, compile(t, "steps:\n- {type: foreach, target: '${all}', target_var_name: n, steps: [no-op]}\n"), "")
			s, _, err := machine.Start(p, machine.Begin{Input: map[string]any{"all": target}}, begin, half)
			if err != nil {
				t.Fatal(err)
			}
			if refused := s.Status == run.Broke && s.Failure.Has(run.NameLimit); refused != (n > run.MaxTargets) {
				t.Errorf("%s of %d: the flow has %s (%v)", name, n, s.Status, s.Failure)
			}
		}
	}
}

// A wide loop starts its runs in several decisions, each asked for by one timer, and has no more open than a run may have.
func TestWideLoop(t *testing.T) {
	const runs, most = 2200, 1000
	p := part(t, compile(t, fmt.Sprintf("steps:\n- {type: foreach, target: 1..%d, target_var_name: n, concurrency: all, steps: [no-op]}\n", runs)), "")
	s, actions, err := machine.Start(p, machine.Begin{}, begin, half)
	asked, open, decisions := map[string]bool{}, []string{}, 0
	for ; err == nil; decisions++ {
		timers, children := 0, 0
		for _, a := range actions {
			switch a.Do {
			case machine.StartTimer:
				timers++
			case machine.StartChild:
				if asked[a.ID] {
					t.Fatalf("%s is asked for twice", a.ID)
				}
				asked[a.ID], open, children = true, append(open, a.ID), children+1
			}
		}
		if timers > 1 || children > machine.MaxActions || len(open) > most {
			t.Fatalf("a decision has %d timers and %d runs, and %d runs are open", timers, children, len(open))
		}
		if len(open) < most && len(asked) < runs && timers == 0 {
			t.Fatalf("%d of %d runs have begun, %d are open, and nothing starts more", len(asked), runs, len(open))
		}
		var in []machine.Input
		switch {
		case timers > 0:
			in = append(in, machine.Input{Kind: machine.Fired, ID: "0#1!more"})
		default:
			for _, id := range open {
				in = append(in, machine.Input{Kind: machine.Result, ID: id})
			}
			open = nil
		}
		if s.Status.Ended() || len(in) == 0 {
			break
		}
		actions, err = machine.Step(p, s, in, begin, half)
	}
	if err != nil || s.Status != run.Succeeded || len(asked) != runs {
		t.Errorf("%v: the flow has %s after %d decisions, %d of %d runs have begun", err, s.Status, decisions, len(asked), runs)
	}
}
