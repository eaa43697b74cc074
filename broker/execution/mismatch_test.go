package execution

import (
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/schemas"
)

// misfits lets a decider answer that its code does not do what the history says.
func (w *world) misfits() {
	w.t.Helper()
	w.do(Taken{})
	w.do(Reply{Reply: &schemas.DecisionReply{Error: &schemas.DecisionError{
		Cause: schemas.CauseNonDeterministic, Reason: "event 5 is ship#1", Details: "the diff",
	}}})
}

const misfit = "DeciderStarted; DeciderFailed NON_DETERMINISTIC"

// Code that does not fit the history is not asked as often as code that fails: it is the same each time. The pause says so.
func TestCodeThatNeverFits(t *testing.T) { // S1-8
	w := begin(t)
	for range 2 {
		for i := range 3 {
			if in, ok := w.wanted(); !ok || in > time.Second {
				t.Fatalf("after %d times it is asked again in %s (%v)", i, in, ok)
			}
			w.s = w.restored()
			w.misfits()
		}
		w.follows(strings.Repeat(misfit+"; DeciderScheduled; ", 2) + misfit + "; WorkflowPaused DECIDER_ATTEMPTS_EXCEEDED")
		got := last[*schemas.WorkflowPaused](w)
		if got.Reason != "the decider failed 3 times in a row with NON_DETERMINISTIC: event 5 is ship#1" || got.Details != "the diff" {
			t.Fatalf("got %+v, want the cause, the reason and the details", got)
		}
		resume(w)
		w.follows("WorkflowResumed; DeciderScheduled")
	}
}

// Three in a row count: an answer, and any other failure, begins anew. The usual patience ends as ever.
func TestCodeThatFitsNowAndThen(t *testing.T) {
	for name, between := range map[string]func(*world){
		"it answers":            func(w *world) { w.decide(); w.do(Signal{Name: "x"}) },
		"it fails":              func(w *world) { w.do(Taken{}); w.do(Refuse{Cause: schemas.CauseDeciderError}) },
		"it does not answer":    func(w *world) { w.do(Taken{}); w.after(10 * time.Second); w.do(AlarmFired{}) },
		"it closes too early":   func(w *world) { w.undone(&schemas.CompleteWorkflow{}) },
		"all of it is refused":  func(w *world) { w.decide(&schemas.CancelTimer{TimerID: "none"}) },
		"it is paused, resumed": func(w *world) { pause(w); resume(w) },
	} {
		t.Run(name, func(t *testing.T) {
			w := begin(t)
			for range 3 {
				w.misfits()
				w.misfits()
				w.since()
				between(w)
				w.since()
			}
			if w.s.Paused != nil {
				t.Fatalf("it is parked: %s", w.s.Paused.Reason)
			}
		})
	}
	w := begin(t)
	w.c.DeciderAttempts = 2
	w.misfits()
	w.misfits()
	w.follows(misfit + "; DeciderScheduled; " + misfit + "; WorkflowPaused DECIDER_ATTEMPTS_EXCEEDED")
	if got := last[*schemas.WorkflowPaused](w).Reason; got != "the decider failed 2 times in a row: event 5 is ship#1" {
		t.Fatalf("got %q", got)
	}
}
