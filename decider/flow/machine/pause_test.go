package machine_test

import (
	"strings"
	"testing"

	"github.com/droverhq/drover/decider/flow/machine"
	"github.com/droverhq/drover/decider/flow/run"
)

// A flow whose decision is full waits for a timer of its own. If the service refuses that one, the run says so: it waited for ever.
func TestRefusedPauseEndsTheRun(t *testing.T) {
	p := part(t, compile(t, "steps:\n"+strings.Repeat("- log x\n", machine.MaxActions+1)), "")
	s, actions, err := machine.Start(p, machine.Begin{}, begin, half)
	if err != nil {
		t.Fatal(err)
	}
	last := actions[len(actions)-1]
	if last.Do != machine.StartTimer || s.Status != run.Running {
		t.Fatalf("the last action is %v and the flow has %s, want a timer and %s", last, s.Status, run.Running)
	}
	refusal := run.NewFailure(run.NameLimit, "too many timers")
	actions, err = machine.Step(p, s, []machine.Input{{Kind: machine.Failed, ID: last.ID, Failure: refusal}}, begin, half)
	if err != nil {
		t.Fatal(err)
	}
	if s.Status != run.Broke || len(actions) != 1 || actions[0].Do != machine.Fail || actions[0].Failure.Message != "too many timers" {
		t.Errorf("the flow has %s, and does %v, want %s and a failure of the run with the reason", s.Status, actions, run.Broke)
	}
}
