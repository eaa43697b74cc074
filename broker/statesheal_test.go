package broker_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/internal/cutwire"
)

const stateWrites = "$KV.drover-default-state."

// cutBehindState kills a node behind its first write of a state key.
func cutBehindState() func(string, []byte) cutwire.Verdict {
	return nth(1, stateWrites, cutwire.CutAfter)
}

// With a crash at every publish and every compare-and-set of the way, before and behind it, every increment is counted once.
func TestStatesOverCrashes(t *testing.T) {
	cases, all := 0, 0
	for name, v := range map[string]cutwire.Verdict{"before": cutwire.CutBefore, "behind": cutwire.CutAfter} {
		for prefix, writes := range map[string]int{"drover.default.history.": 16, stateWrites: 4, "$KV.drover-default-checkpoints.": 3} {
			all += writes
			for _, n := range tried(writes, halfShare, 0, 1) {
				cases++
				t.Run(fmt.Sprintf("%s %s %d", name, prefix, n), func(t *testing.T) { counts(t, nth(n, prefix, v), true) })
			}
		}
	}
	t.Logf("%d of %d crashes; -publishes=1 tries all", cases, all)
}

// So is it if a write is lost, or its answer, or it comes twice, or too late, and the owner lives on.
func TestStatesWithoutACrash(t *testing.T) {
	for name, v := range map[string]cutwire.Verdict{"lost": cutwire.Swallow, "answer lost": cutwire.Unanswered, "twice": cutwire.Twice, "late": cutwire.Late} {
		for n := 1; n <= 4; n++ {
			t.Run(fmt.Sprint(name, " ", n), func(t *testing.T) { counts(t, nth(n, stateWrites, v), false) })
		}
	}
}

// counts lets three runs add 2 each, and looks at the sum.
func counts(t *testing.T, judge func(string, []byte) cutwire.Verdict, crashes bool) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.decider("add", adder(2))
		a := f.node("a", judge)
		defer f.relieve(a)()
		ids := []string{"w1", "w2", "w3"}
		for _, id := range ids {
			for f.start(`{"workflowId":"` + id + `","type":"add","requestId":"` + id + `"}`)["error"] != nil {
				time.Sleep(100 * time.Millisecond)
			}
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
		var tries atomic.Int64
		f.node("a", func(subj string, _ []byte) cutwire.Verdict {
			if strings.HasPrefix(subj, stateWrites) && tries.Add(1) == 1 {
				return cutwire.Swallow
			}
			return cutwire.Pass
		})
		f.start(`{"workflowId":"w1","type":"one"}`)
		for tries.Load() == 0 {
			time.Sleep(time.Millisecond)
		}
		if _, err := broker.Fence(t.Context(), f.post, ns, 0, 1<<40, "other"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if n := tries.Load(); n != 1 {
			t.Fatalf("%d writes, want only the one that was lost", n)
		}
		if r, _ := f.state("", "k"); r != nil {
			t.Fatalf("the key is %+v, want none", r)
		}
	})
}
