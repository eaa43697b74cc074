package broker_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/schemas"
)

// stepwise records a marker a decision and asks for the next one, until it has three, and closes. Each task must show the
// marker before it, and that one must be in the history by then: who goes on may rest on it.
func (f *fleet) stepwise() {
	f.t.Helper()
	f.repliesWith(func(d *decisionTask) []byte {
		done, _ := d.Context.(string)
		if got := f.markers("o"); done != "" && !slices.Contains(got, done) {
			f.t.Errorf("the decider is asked after step %s, and the history has the steps %q", done, got)
		}
		if done != "" && !slices.ContainsFunc(d.Events, func(e decisionEvent) bool { return e.Attributes["markerName"] == done }) {
			f.t.Errorf("the task after step %s does not show it: %v", done, d.Events)
		}
		if done == "111" {
			return []byte(`{"token":"` + d.Token + `","decisions":` + complete + `}`)
		}
		return []byte(`{"token":"` + d.Token + `","again":true,"context":"1` + done +
			`","decisions":[{"type":"RecordMarker","attributes":{"markerName":"1` + done + `"}}]}`)
	})
}

// markers are those that the history of a run has.
func (f *fleet) markers(id string) (names []string) {
	f.t.Helper()
	for _, e := range f.recorded(id) {
		if a, ok := e.Attributes.(*schemas.Marker); ok {
			names = append(names, a.MarkerName)
		}
	}
	return names
}

var threeSteps = append(append([]string{"WorkflowStarted", "DeciderScheduled"},
	slices.Repeat([]string{"DeciderStarted", "DeciderCompleted", "Marker", "DeciderScheduled"}, 3)...),
	"DeciderStarted", "DeciderCompleted", "WorkflowSuccess")

// A decider that asks for another decision gets it though nothing happens, and only once what it decided is stored, whoever dies.
func TestAnotherDecisionIsAskedFor(t *testing.T) { // P-1, P-2
	for name, judge := range map[string]func(string, []byte) cutwire.Verdict{
		"nobody dies":                          nil,
		"before the record of the first step":  nth(1, "drover.default.history.0.o.", cutwire.CutBefore),
		"after the record of the first step":   nth(1, "drover.default.history.0.o.", cutwire.CutAfter),
		"before the record of the second step": nth(2, "drover.default.history.0.o.", cutwire.CutBefore),
		"after the record of the second step":  nth(2, "drover.default.history.0.o.", cutwire.CutAfter),
		"before the question after a step":     nth(2, "drover.default.decide.", cutwire.CutBefore),
		"after the question after a step":      nth(2, "drover.default.decide.", cutwire.CutAfter),
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				f.stepwise()
				a := f.node("a", judge)
				if judge != nil {
					replaced := make(chan struct{})
					defer func() { <-replaced }()
					go func() {
						defer close(replaced)
						<-a.wire.Killed()
						a.stop()
						f.node("b", nil)
					}()
				}
				f.start(startO)
				f.completes("o")
				f.wantTypes("o", threeSteps...)
				if got := strings.Join(f.markers("o"), " "); got != "1 11 111" {
					t.Errorf("got the steps %s, want each once", got)
				}
			})
		})
	}
}
