package broker_test

import (
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/internal/cutwire"
)

const stateWrites = "$KV.drover-default-state."

// cutLaterState kills a node after its first write of a state key.
func cutLaterState() judge {
	return nth(1, stateWrites, cutwire.CutAfter)
}

// With a crash at every publish and every compare-and-set of the way, before and after it, every increment is counted once.
func TestStatesOverCrashes(t *testing.T) {
	overCrashes(t, map[string]int{"drover.default.history.": 16, stateWrites: 4, "$KV.drover-default-checkpoints.": 3}, func(t *testing.T, j judge) { counts(t, j, true) })
}

// So is it if a write is lost, or its answer, or it comes twice, or too late, and the owner lives on.
func TestStatesWithoutACrash(t *testing.T) {
	overLosses(t, stateWrites, 4, func(t *testing.T, j judge) { counts(t, j, false) })
}

// counts lets three runs add 2 each, and looks at the sum.
func counts(t *testing.T, j judge, crashes bool) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.decider("add", adder(2))
		a := f.node("a", j)
		defer f.relieve(a)()
		ids := []string{"w1", "w2", "w3"}
		for _, id := range ids {
			f.startsAtLast(id, "add")
			if strings.Contains(t.Name(), "checkpoints") {
				time.Sleep(time.Second) // else all is over before the first
			}
		}
		for _, id := range ids {
			f.completesAtLast(id)
		}
		if r, _ := f.state("", "n"); r == nil || string(r.Value) != "6" {
			t.Fatalf("the key is %+v, want 6", r)
		}
		if crashes && !a.killed() {
			t.Fatal("the crash never came: nothing matched")
		}
	})
}

// P-13: an owner whose first try to write a state key was lost looks at the fence before it tries again, and writes nothing once
// another has fenced the partition.
func TestFencedOwnerWritesNoState(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.decider("one", script(stateDecision("SetState", "k", `,"value":1`)))
		f.fencedWritesNothing(stateWrites)
		if r, _ := f.state("", "k"); r != nil {
			t.Fatalf("the key is %+v, want none", r)
		}
	})
}
