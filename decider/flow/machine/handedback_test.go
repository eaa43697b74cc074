package machine_test

import (
	"testing"

	"github.com/droverhq/drover/decider/flow/machine"
)

// A run of a loop with reducing hands back what the loop's variables have come to in it, and no others.
func TestReducedVariablesAreHandedBack(t *testing.T) {
	p := part(t, compile(t, `
steps:
- type: foreach
  target: 1..2
  target_var_name: n
  reducing: {sum: 0}
  steps: ["let sum = ${sum} + ${n}", let other = 1, return far]
`), "0")
	b := machine.Begin{Program: "0", Reducing: []string{"sum"}, Vars: map[string]any{"sum": int64(3), "n": int64(4)}}
	_, actions, err := machine.Start(p, b, begin, half)
	if err != nil || len(actions) != 1 {
		t.Fatalf("got %+v, %v, want the end of the run", actions, err)
	}
	if got, want := shown(actions[0]), `complete far reduced={"sum":7}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
