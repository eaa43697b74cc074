package flows_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/internal/cutwire"
)

// A0-4, A0-12, A0-13: broker, decider or worker is killed between any two messages that it sends, while two runs want to count.
// Both complete without an operator, and the count is exact: nobody came between reading and writing, and nothing was counted twice.
func TestCounterIsExactWhereverACrashComes(t *testing.T) {
	for _, victim := range []victim{{"broker", 20}, {"decider", 6}, {"worker", 6}} {
		dies(t, victim, countsOnTheWeb)
	}
}

// victim is a process.
type victim struct {
	name  string
	least int // messages, so that a test cannot run out of crashes without notice
}

// dies lets a process die before and after each stride-th of its messages, until there are no more.
func dies(t *testing.T, of victim, counts func(t *testing.T, victim string, judge func(string) cutwire.Verdict) (killed bool)) {
	for when, verdict := range map[string]cutwire.Verdict{"before": cutwire.CutBefore, "after": cutwire.CutAfter} {
		t.Run(of.name+" "+when, func(t *testing.T) {
			at := 1
			for killed := true; killed; at += stride {
				if !t.Run(fmt.Sprint(at), func(t *testing.T) {
					left := at
					killed = counts(t, of.name, func(string) cutwire.Verdict {
						if left--; left == 0 {
							return verdict
						}
						return cutwire.Pass
					})
				}) {
					return
				}
			}
			if at <= of.least {
				t.Errorf("message %d was not sent, want at least %d", at-stride, of.least)
			}
		})
	}
}

// twoCount lets two runs of a flow count.
func (w *world) twoCount(typ string, input any) {
	w.t.Helper()
	var runs []*drover.Run
	for _, id := range []string{"one", "two"} {
		run, err := w.client.Start(w.t.Context(), typ, input, &drover.StartOptions{ID: id})
		if err != nil {
			w.t.Fatal(err)
		}
		runs = append(runs, run)
	}
	for _, run := range runs {
		w.completes(run)
	}
}

func countsOnTheWeb(t *testing.T, victim string, judge func(string) cutwire.Verdict) (killed bool) {
	c := &count{n: 41}
	inWorld(t, []string{"counter"}, nil, c, func(_ *testing.T, w *world) {
		wasKilled, dismiss := w.staff(victim, judge)
		defer dismiss()
		w.twoCount("counter", map[string]string{"url": countURL})
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
