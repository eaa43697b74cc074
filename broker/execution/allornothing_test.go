package execution

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/schemas"
)

// answerWhole answers by a reply that is all or nothing.
func (w *world) answerWhole(decisions ...schemas.DecisionAttributes) []Effect {
	w.t.Helper()
	reply := &schemas.DecisionReply{AllOrNothing: true, Context: schemas.Text("after"), Identity: "me"}
	for _, d := range decisions {
		reply.Decisions = append(reply.Decisions, schemas.Decide(d))
	}
	return w.do(Reply{Reply: reply, Digest: "whole"})
}

// undone lets a signal come while a decider is at work that then wants to close the run.
func (w *world) undone(closing schemas.DecisionAttributes) {
	w.t.Helper()
	w.do(Taken{})
	w.do(Signal{Name: "x"})
	w.answerWhole(&schemas.RecordMarker{MarkerName: "m"}, closing)
	w.follows("DeciderStarted; Signal x; DeciderScheduled; DeciderFailed UNHANDLED_DECISION")
}

// What came in while a decider closed the run undoes all of its reply, and it decides again at once; only its answer is
// shown, for who looks.
func TestAllOrNothing(t *testing.T) { // S1-2, S1-3, S1-36
	for _, closing := range []schemas.DecisionAttributes{&schemas.CompleteWorkflow{}, &schemas.FailWorkflow{}, &schemas.CancelWorkflow{}, &schemas.ContinueAsNew{}} {
		t.Run(string(closing.DecisionType()), func(t *testing.T) {
			w := begin(t)
			w.do(Taken{})
			w.do(Reply{Digest: "first", Reply: &schemas.DecisionReply{Context: schemas.Text("before")}})
			w.do(Signal{Name: "go"})
			w.since()
			w.do(Taken{})
			started := w.s.LastID
			w.do(Signal{Name: "x"})
			base, window := w.s.Base, w.s.Decision.Previous
			effects := w.answerWhole(&schemas.SignalExternal{WorkflowID: "stats", SignalName: "sold"}, &schemas.RecordMarker{MarkerName: "m"}, closing)
			w.follows("DeciderStarted; Signal x; DeciderScheduled; DeciderFailed UNHANDLED_DECISION")
			want := &schemas.DeciderFailed{
				Cause: schemas.CauseUnhandledDecision, Reason: "something happened that the decider has not seen", Identity: "me",
				Decision: closing.DecisionType(), ScheduledEventID: started - 1, StartedEventID: started,
			}
			if diff := cmp.Diff(want, w.events[len(w.events)-1].Attributes); diff != "" || len(effects) != 0 {
				t.Fatalf("effects %v, and the event (-want +got):\n%s", effects, diff)
			}
			if w.s.Base != base || w.s.Decision.Previous != window || string(w.s.Context) != "before" {
				t.Fatalf("base %+v, context %q, windows begin after %d: something of the reply stands", w.s.Base, w.s.Context, w.s.Decision.Previous)
			}
			if in, ok := w.wanted(); !ok || in != 0 || w.s.Decision.Failures != 0 {
				t.Fatalf("asked again in %s (%v) after %d failures, want at once and none", in, ok, w.s.Decision.Failures)
			}
			w.do(Taken{})
			w.answerWhole(&schemas.RecordMarker{MarkerName: "m"}, closing)
			if got := w.since(); !w.s.Closed() || !strings.HasPrefix(got, "DeciderStarted; DeciderCompleted; Marker m; Workflow") {
				t.Fatalf("got %s, want a close", got)
			}
		})
	}
}

// Whatever comes in between is a reason; what the decider need not see is none. Without a close nothing is held up.
func TestAllOrNothingOfTheRest(t *testing.T) { // S1-36, S1-42
	for _, tt := range []struct {
		name      string
		meanwhile func(*world)
		want      string
	}{
		{"nothing", func(*world) {}, "DeciderCompleted; Marker m; WorkflowSuccess"},
		{"a start of an activity", func(w *world) { w.report("A", schemas.ReportStarted) }, "DeciderCompleted; Marker m; WorkflowSuccess"},
		{"its end", func(w *world) { w.report("A", schemas.ReportSuccess) }, "DeciderFailed UNHANDLED_DECISION"},
		{"a signal in a pause", func(w *world) { pause(w); w.do(Signal{Name: "x"}) }, "DeciderFailed UNHANDLED_DECISION"},
		{"a pause", pause, "DeciderCompleted; Marker m; WorkflowSuccess"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := decided(t, activity("A"))
			w.do(Signal{Name: "go"})
			w.do(Taken{})
			tt.meanwhile(w)
			w.since()
			w.answerWhole(&schemas.RecordMarker{MarkerName: "m"}, &schemas.CompleteWorkflow{})
			w.follows(tt.want)
			if !w.s.Closed() && w.s.Paused != nil {
				resume(w)
				w.follows("WorkflowResumed; DeciderScheduled")
			}
		})
	}
	w := begin(t)
	w.do(Taken{})
	w.do(Signal{Name: "x"})
	w.answerWhole(&schemas.RecordMarker{MarkerName: "m"})
	w.follows("DeciderStarted; Signal x; DeciderScheduled; DeciderCompleted; Marker m")
	w.do(Taken{})
	w.do(Signal{Name: "x"})
	w.answerWhole()
	w.follows("DeciderStarted; Signal x; DeciderScheduled; DeciderCompleted")
}

// A decision that is refused for another reason is seen by the decider next, as ever: nothing has come in.
func TestAllOrNothingBesideARefusal(t *testing.T) {
	w := begin(t)
	w.do(Taken{})
	w.answerWhole(&schemas.RecordMarker{MarkerName: "m"}, &schemas.CancelTimer{TimerID: "none"}, &schemas.CompleteWorkflow{})
	w.follows("DeciderStarted; DeciderCompleted; Marker m; TimerCancelFailed none TIMER_ID_UNKNOWN; WorkflowCloseFailed UNHANDLED_DECISION; DeciderScheduled")
}

// It is not counted as a failure, and the failures before it are over: its decider answers.
func TestAllOrNothingIsNoFailure(t *testing.T) {
	w := begin(t)
	w.c.DeciderAttempts = 2
	for range 3 {
		w.do(Taken{})
		w.do(Refuse{Cause: schemas.CauseDeciderError})
		w.follows("DeciderStarted; DeciderFailed DECIDER_ERROR; DeciderScheduled")
		w.undone(&schemas.CompleteWorkflow{})
		if in, ok := w.wanted(); !ok || in != 0 {
			t.Fatalf("asked again in %s (%v), want at once", in, ok)
		}
	}
	for range 3 {
		w.undone(&schemas.CancelWorkflow{})
	}
}

// Signals cannot hold up a close for ever: the eleventh time it stands, and tells how many no decider has seen.
func TestSignalsHoldUpACloseForAWhile(t *testing.T) { // P-4 has the same for continuations
	unread := map[schemas.DecisionType]func(w *world) int{
		schemas.DecideCompleteWorkflow: func(w *world) int { return last[*schemas.WorkflowSuccess](w).UnreadSignals },
		schemas.DecideFailWorkflow:     func(w *world) int { return last[*schemas.WorkflowFailed](w).UnreadSignals },
		schemas.DecideCancelWorkflow:   func(w *world) int { return last[*schemas.WorkflowCanceled](w).UnreadSignals },
	}
	for _, closing := range []schemas.DecisionAttributes{&schemas.CompleteWorkflow{}, &schemas.FailWorkflow{}, &schemas.CancelWorkflow{}} {
		t.Run(string(closing.DecisionType()), func(t *testing.T) {
			w := begin(t)
			for range 10 {
				w.undone(closing)
			}
			w.s = w.restored()
			w.do(Taken{})
			w.do(Signal{Name: "y"})
			w.do(Signal{Name: "z"})
			w.do(Cancel{Request: &schemas.ExecutionRequest{}})
			w.answerWhole(&schemas.RecordMarker{MarkerName: "m"}, closing)
			if n := unread[closing.DecisionType()](w); n != 2 {
				t.Fatalf("the close tells of %d unread signals, want 2", n)
			}
		})
	}
}

// The row is over once a decider that completed has seen all, and a reply that is not all or nothing waits as ever.
func TestTheRowOfUndoneReplies(t *testing.T) {
	w := begin(t)
	for range 9 {
		w.undone(&schemas.CompleteWorkflow{})
	}
	w.decide()
	w.do(Signal{Name: "go"})
	w.since()
	for range 10 {
		w.undone(&schemas.CompleteWorkflow{})
	}
	w.do(Taken{})
	w.do(Signal{Name: "x"})
	w.answer(&schemas.CompleteWorkflow{})
	w.follows("DeciderStarted; Signal x; DeciderScheduled; DeciderCompleted; WorkflowCloseFailed UNHANDLED_DECISION")
	w.do(Taken{})
	w.do(Signal{Name: "x"})
	w.answerWhole(&schemas.CompleteWorkflow{}) // no decider has seen all since
	w.follows("DeciderStarted; Signal x; DeciderScheduled; DeciderCompleted; WorkflowSuccess")
}

// A continuation keeps the rule that it has: signals alone hold it up, three times, and the next run gets them.
func TestContinuationThatIsAllOrNothing(t *testing.T) { // P-4
	w := begin(t)
	for range 3 {
		w.undone(&schemas.ContinueAsNew{})
	}
	w.do(Taken{})
	w.do(Signal{Name: "y"})
	w.answerWhole(&schemas.ContinueAsNew{})
	if got := last[*schemas.WorkflowContinuedAsNew](w).UnreadSignals; got != 1 {
		t.Fatalf("the continuation tells of %d unread signals, want 1", got)
	}

	w = decided(t, timer("T", 5))
	w.do(Signal{Name: "go"})
	w.since()
	for range 3 {
		w.undone(&schemas.ContinueAsNew{})
	}
	w.do(Taken{})
	w.after(5 * time.Second)
	w.do(AlarmFired{})
	w.answerWhole(&schemas.ContinueAsNew{})
	w.follows("DeciderStarted; TimerExpired T; DeciderScheduled; DeciderFailed UNHANDLED_DECISION")
}
