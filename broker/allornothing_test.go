package broker_test

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/droverhq/drover/schemas"
)

// closesWhole answers that the run is closed, after a marker, or that nothing of this happens.
// Before its first answers, as many as told, it is so slow that a signal comes in.
func (f *fleet) closesWhole(slow int64, tasks func(*decisionTask)) (answered *atomic.Int64) {
	f.t.Helper()
	answered = new(atomic.Int64)
	f.repliesWith(func(d *decisionTask) []byte {
		tasks(d)
		if answered.Add(1) <= slow {
			f.publish("drover.default.signal.o.go", "")
			time.Sleep(time.Second)
		}
		return []byte(`{"token":"` + d.Token + `","allOrNothing":true,"context":"closed","decisions":[` +
			`{"type":"RecordMarker","attributes":{"markerName":"m"}},` + complete[1:] + `}`)
	})
	return answered
}

// A signal that comes in while a decider closes its run undoes all of the reply. The decider sees the whole window again, at
// once, and its second answer stands.
func TestASignalUndoesAReply(t *testing.T) { // S1-2, S1-36, S1-37
	virtually(t, 2, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		var shown []string
		answered := f.closesWhole(1, func(d *decisionTask) {
			if d.Attempt != 1 || d.Context != nil || d.PreviousStartedID != 0 {
				t.Errorf("got attempt %d after event %d with the context %v, want attempt 1 as if nothing had been answered", d.Attempt, d.PreviousStartedID, d.Context)
			}
			var types []string
			for _, e := range d.Events {
				types = append(types, e.Type)
			}
			shown = append(shown, strings.Join(types, " "))
		})
		f.start(startO)
		f.completes("o")
		f.wantTypes("o", "WorkflowStarted", "DeciderScheduled", "DeciderStarted", "Signal", "DeciderScheduled", "DeciderFailed",
			"DeciderStarted", "DeciderCompleted", "Marker", "WorkflowSuccess")
		const first = "WorkflowStarted DeciderScheduled DeciderStarted"
		if want := []string{first, first + " Signal DeciderScheduled DeciderFailed DeciderStarted"}; answered.Load() != 2 || !slices.Equal(shown, want) {
			t.Errorf("the decider was shown %q, want %q", shown, want)
		}
		events := f.events("o")
		if failed, again := events[5], events[6]; again.Time.Sub(failed.Time) >= 100*time.Millisecond {
			t.Errorf("it was asked again %s later, want at once", again.Time.Sub(failed.Time))
		}
	})
}

// Signals that come all the time do not keep a run from closing, and its end tells how many nobody has seen.
func TestSignalsDoNotUndoForEver(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		answered := f.closesWhole(1000, func(*decisionTask) {})
		f.start(startO)
		f.completes("o")
		events := f.events("o")
		closed, ok := events[len(events)-1].Attributes.(*schemas.WorkflowSuccess)
		if n := f.happened("o", schemas.EventDeciderFailed); !ok || closed.UnreadSignals != 1 || n != 10 || answered.Load() != 11 {
			t.Errorf("after %d answers, of which nothing of %d stands, the run ends with %+v; want 11, 10 and one unread signal", answered.Load(), n, events[len(events)-1].Attributes)
		}
		if n := f.happened("o", schemas.EventMarker); n != 1 {
			t.Errorf("got %d markers, want that of the answer that stands", n)
		}
	})
}
