package execution

import (
	"testing"
	"time"

	"github.com/droverhq/drover/schemas"
)

// asks answers by a reply that asks for another decision.
func (w *world) asks(decisions ...schemas.DecisionAttributes) {
	w.t.Helper()
	reply := &schemas.DecisionReply{Again: true}
	for _, d := range decisions {
		reply.Decisions = append(reply.Decisions, schemas.Decide(d))
	}
	w.do(Reply{Reply: reply})
}

// Who asks for another decision gets it at once, even if nothing happens; it comes after what was decided.
func TestAnotherDecision(t *testing.T) { // S1-5, S1-7, S1-35
	for _, tt := range []struct {
		name      string
		meanwhile func(*world)
		decisions []schemas.DecisionAttributes
		want      string
		wanted    bool
	}{
		{"nothing is decided", nil, nil, "DeciderCompleted; DeciderScheduled", true},
		{
			"after what is decided", nil,
			[]schemas.DecisionAttributes{&schemas.RecordMarker{MarkerName: "m"}, timer("T", 5)},
			"DeciderCompleted; Marker m; TimerScheduled T; DeciderScheduled", true,
		},
		{"one is pending", func(w *world) { w.do(Signal{Name: "x"}) }, nil, "DeciderCompleted", true},
		{"a part is refused", nil, []schemas.DecisionAttributes{timer("T", 5), timer("T", 6)}, "DeciderCompleted; TimerScheduled T; TimerScheduleFailed T TIMER_ID_ALREADY_IN_USE; DeciderScheduled", true},
		{"the run is closed", nil, []schemas.DecisionAttributes{&schemas.CompleteWorkflow{}}, "DeciderCompleted; WorkflowSuccess", false},
		{
			"the close is refused", func(w *world) { w.do(Signal{Name: "x"}) },
			[]schemas.DecisionAttributes{&schemas.CompleteWorkflow{}},
			"DeciderCompleted; WorkflowCloseFailed UNHANDLED_DECISION", true,
		},
		{"the run is paused", pause, nil, "DeciderCompleted", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := begin(t)
			w.do(Taken{})
			started := w.s.LastID
			if tt.meanwhile != nil {
				tt.meanwhile(w)
			}
			w.since()
			w.asks(tt.decisions...)
			w.follows(tt.want)
			if in, ok := w.wanted(); ok != tt.wanted || in != 0 {
				t.Fatalf("a decision is wanted %v in %s, want %v and at once", ok, in, tt.wanted)
			}
			if w.s.Decision.Previous != started {
				t.Fatalf("the next window begins after event %d, want %d", w.s.Decision.Previous, started)
			}
		})
	}
}

// The next decider has seen all that its task shows: it may close the run. Once is asked for once.
func TestAnotherDecisionIsOne(t *testing.T) { // S1-2, S1-5
	w := begin(t)
	w.do(Taken{})
	w.asks(&schemas.RecordMarker{MarkerName: "1"})
	w.s = w.restored()
	w.do(Taken{})
	w.asks(&schemas.RecordMarker{MarkerName: "2"})
	w.decide(&schemas.RecordMarker{MarkerName: "3"})
	const one = "DeciderStarted; DeciderCompleted; Marker "
	w.follows(one + "1; DeciderScheduled; " + one + "2; DeciderScheduled; " + one + "3")
	w.rest(time.Hour)
	if _, ok := w.wanted(); ok {
		t.Fatal("a decision is wanted that nobody has asked for")
	}
	w.do(Signal{Name: "x"})
	w.decide(&schemas.CompleteWorkflow{})
	w.follows("Signal x; DeciderScheduled; DeciderStarted; DeciderCompleted; WorkflowSuccess")
}

// What is asked for in a pause comes after it.
func TestAnotherDecisionAfterAPause(t *testing.T) { // S1-5
	w := begin(t)
	w.do(Taken{})
	pause(w)
	w.asks()
	resume(w)
	w.decide(&schemas.CompleteWorkflow{})
	w.follows("DeciderStarted; WorkflowPaused OPERATOR_INITIATED; DeciderCompleted; WorkflowResumed; DeciderScheduled; DeciderStarted; DeciderCompleted; WorkflowSuccess")
}

// A reply of which everything is refused counts as a failed one all the same: it is asked again later, and not for ever.
func TestAnotherDecisionAfterRefusals(t *testing.T) {
	w := begin(t)
	w.c.DeciderAttempts = 2
	w.do(Taken{})
	w.asks(&schemas.CancelTimer{TimerID: "none"})
	w.follows("DeciderStarted; DeciderCompleted; TimerCancelFailed none TIMER_ID_UNKNOWN; DeciderScheduled")
	if in, ok := w.wanted(); !ok || in != 100*time.Millisecond {
		t.Fatalf("asked again in %s (%v), want in 100ms", in, ok)
	}
	w.do(Taken{})
	w.asks(&schemas.CancelTimer{TimerID: "none"})
	w.follows("DeciderStarted; DeciderCompleted; TimerCancelFailed none TIMER_ID_UNKNOWN; WorkflowPaused DECIDER_ATTEMPTS_EXCEEDED")
}

// A decider that asks for another decision for ever does not: its run is told of the limit of events, and ends there.
func TestOtherDecisionsAreBounded(t *testing.T) {
	w := begin(t)
	w.c.MaxEvents = 500
	n := 0
	for ; !w.s.Closed(); n++ {
		if int64(n) > w.c.hardLimit() {
			t.Fatalf("%d decisions, and the run is still open", n)
		}
		w.do(Taken{})
		w.asks()
	}
	if got := last[*schemas.WorkflowTerminated](w); got.Cause != schemas.CauseEventLimitExceeded || w.s.LastID > w.c.hardLimit()+1 {
		t.Fatalf("after %d decisions and %d events the run is terminated by %+v, want the limit of events", n, w.s.LastID, got)
	}
}
