package flows_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/internal/cutwire"
)

// A0-4, A0-12, A0-13: broker, decider or worker is killed at each message that it sends, before the server has it and behind, while
// two runs want to count. Both complete without an operator, and the count is exact: nobody came between reading and writing, and
// nothing was counted twice.
func TestCounterIsExactWhereverACrashComes(t *testing.T) {
	for _, victim := range []struct {
		name  string
		least int // messages, so that the test cannot run out of crashes without notice
	}{{"broker", 20}, {"decider", 6}, {"worker", 6}} {
		for first, verdict := range []cutwire.Verdict{cutwire.CutBefore, cutwire.CutAfter} {
			t.Run(victim.name+[]string{" before", " behind"}[first], func(t *testing.T) {
				n := 1 + first%stride
				for ; ; n += stride {
					killed := false
					if !t.Run(fmt.Sprint(n), func(t *testing.T) { killed = counts(t, victim.name, n, verdict) }) || !killed {
						break
					}
				}
				if n <= victim.least {
					t.Errorf("message %d was not sent, want at least %d", n, victim.least)
				}
			})
		}
	}
}

// counts lets two runs count while the n-th message of a process is its last. It reports whether that came to pass.
func counts(t *testing.T, victim string, n int, verdict cutwire.Verdict) (killed bool) {
	c := &count{n: 41}
	inWorld(t, nil, []string{"counter"}, c, func(t *testing.T, w *world) {
		wasKilled, dismiss := w.staff(victim, func(string) cutwire.Verdict {
			if n--; n == 0 {
				return verdict
			}
			return cutwire.Pass
		})
		defer dismiss()
		var runs []*drover.Run
		for _, id := range []string{"one", "two"} {
			run, err := w.client.Start(t.Context(), "counter", map[string]string{"url": countURL}, &drover.StartOptions{ID: id})
			if err != nil {
				t.Fatal(err)
			}
			runs = append(runs, run)
		}
		for _, run := range runs {
			w.completes(run)
		}
		killed = wasKilled()
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	// What is not known to be done is done again, with the same number.
	if diff := cmp.Diff([]int{42, 43}, slices.Compact(slices.Clone(c.writes))); diff != "" {
		t.Errorf("what was written is %v (-want +got):\n%s", c.writes, diff)
	}
	return killed
}
