package execution

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/schemas"
)

func pointAt(name string) *schemas.SetReplayPoint { return &schemas.SetReplayPoint{Name: name} }

// names are those of the points that hold, each with its event.
func (w *world) points() string {
	var all []string
	for _, p := range w.s.ReplayPoints {
		all = append(all, fmt.Sprintf("%s@%d", p.Name, p.EventID))
	}
	return strings.Join(all, " ")
}

// What is set again is the youngest; "only" and a reset forget the others; the close forgets none.
func TestReplayPoints(t *testing.T) {
	only := &schemas.SetReplayPoint{Name: "c", Only: true}
	for _, tt := range []struct {
		name      string
		decisions []schemas.DecisionAttributes
		want      string
	}{
		{"in their order", list(pointAt("b"), pointAt("a")), "b@5 a@6"},
		{"again", list(pointAt("b"), pointAt("a"), pointAt("b")), "a@6 b@7"},
		{"only", list(pointAt("b"), only), "c@6"},
		{"only, and on", list(pointAt("b"), only, pointAt("b")), "c@6 b@7"},
		{"reset", list(pointAt("b"), &schemas.ResetReplayPoints{}), ""},
		{"reset, and on", list(pointAt("b"), &schemas.ResetReplayPoints{}, pointAt("b")), "b@7"},
		{"closed", list(pointAt("b"), &schemas.CompleteWorkflow{}), "b@5"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := decided(t, tt.decisions...)
			if got := w.points(); got != tt.want {
				t.Fatalf("got %q, want %q", got, tt.want)
			}
			restored := w.restored()
			if d := cmp.Diff(w.s.ReplayPoints, restored.ReplayPoints); d != "" {
				t.Fatalf("(-before +restored):\n%s", d)
			}
		})
	}
}

// The state does not grow with the history, and a full history takes no more points.
func TestReplayPointsAreBounded(t *testing.T) {
	w := begin(t)
	var many []schemas.DecisionAttributes
	for i := range rememberedPoints + 5 {
		many = append(many, pointAt(fmt.Sprint("p", i)))
	}
	w.decide(many...)
	if n := len(w.s.ReplayPoints); n != rememberedPoints || w.s.ReplayPoints[0].Name != "p5" {
		t.Fatalf("%d points from %s on, want %d from p5 on", n, w.s.ReplayPoints[0].Name, rememberedPoints)
	}
	w.c.MaxEvents = w.s.LastID
	w.do(Signal{Name: "x"})
	w.mark = len(w.events)
	w.decide(pointAt("late"))
	w.follows("DeciderStarted; DeciderCompleted; MarkerFailed EVENT_LIMIT_EXCEEDED; DeciderScheduled")
}
