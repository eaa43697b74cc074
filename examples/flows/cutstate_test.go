package flows_test

import (
	"net/http"
	"testing"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/internal/cutwire"
)

// A0-13: so it is with the state key of locked-increment.yaml.
func TestLockedIncrementIsExactWhereverACrashComes(t *testing.T) {
	for _, victim := range []victim{{"broker", 20}, {"decider", 6}} {
		dies(t, victim, countsByStateKey)
	}
}

func countsByStateKey(t *testing.T, victim string, judge func(string) cutwire.Verdict) (killed bool) {
	also := map[string]string{"show": "steps: ['return ${state.count}']"}
	inWorld(t, []string{"locked-increment"}, also, http.NotFoundHandler(), func(t *testing.T, w *world) {
		wasKilled, dismiss := w.staff(victim, judge)
		defer dismiss()
		w.twoCount("locked-increment", nil)
		killed = wasKilled()
		run, err := w.client.Start(t.Context(), "show", nil, &drover.StartOptions{ID: "show"})
		if err != nil {
			t.Fatal(err)
		}
		var got int
		if err := run.Result(t.Context(), &got); err != nil || got != 2 {
			t.Errorf("the count is %d (%v), want 2", got, err)
		}
	})
	return killed
}
