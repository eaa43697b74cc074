package execution

import (
	"testing"

	"github.com/droverhq/drover/schemas"
)

// Requests of operators wait in the inbox like all else, and who gets no answer sends them again: one that comes twice does nothing the
// second time, whatever has been undone meanwhile, and one for another run does nothing at all.
func TestOperatorsAreObeyedOnce(t *testing.T) { // P-5
	fence := uint64(0)
	lock := func(w *world) { // a broken lock is taken again
		fence++
		w.do(Signal{Name: "x"})
		w.decide(lockUp("M"))
		w.grant("M", fence)
	}
	for name, tt := range map[string]struct {
		before func(*world)
		ask    func(*schemas.ExecutionRequest) Message
		want   string
		undo   func(*world)
	}{
		"pause": {
			func(*world) {}, func(r *schemas.ExecutionRequest) Message { return Pause{Request: r} }, "WorkflowPaused OPERATOR_INITIATED", resume,
		},
		"resume": {
			pause, func(r *schemas.ExecutionRequest) Message { return Resume{Request: r} }, "WorkflowResumed; DeciderScheduled", pause,
		},
		"hold": {
			func(*world) {}, func(r *schemas.ExecutionRequest) Message { return Hold{Request: r} }, "ContinuationHeld", release,
		},
		"release": {
			hold, func(r *schemas.ExecutionRequest) Message { return Release{Request: r} }, "ContinuationReleased", hold,
		},
		"break a lock": {
			lock, func(r *schemas.ExecutionRequest) Message { r.Lock = "M"; return BreakLock{Request: r} }, "LockBroken M 1 OPERATOR_INITIATED", lock,
		},
		"cancel": {
			func(*world) {}, func(r *schemas.ExecutionRequest) Message { return Cancel{Request: r} },
			"WorkflowCancelRequested; DeciderScheduled", func(*world) {},
		},
		"terminate": {
			func(*world) {}, func(r *schemas.ExecutionRequest) Message { return Terminate{Request: r} }, "WorkflowTerminated", func(*world) {},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := decided(t)
			tt.before(w)
			w.since()
			w.wantEffects(w.do(tt.ask(&schemas.ExecutionRequest{Run: "run-0", RequestID: "another"})))
			w.wantEffects(w.do(tt.ask(&schemas.ExecutionRequest{Run: "run-0", RequestID: "another", Origin: &schemas.RequestOrigin{FirstRun: "run-0"}})))
			w.follows("")
			request := func() Message { return tt.ask(&schemas.ExecutionRequest{Run: "run-1", RequestID: "q"}) }
			w.do(request())
			w.follows(tt.want)
			tt.undo(w)
			w.since()
			w.wantEffects(w.do(request()))
			w.follows("")
		})
	}
}

// A request is known by its id alone: of an end that another request, or none, has brought about a request without an id is no repeat.
func TestRepeatedIsAboutIDs(t *testing.T) { // P-5
	for name, tt := range map[string]struct {
		end  func(*world)
		want map[string]bool
	}{
		"terminated":               {func(w *world) { w.do(Terminate{Request: &schemas.ExecutionRequest{RequestID: "q"}}) }, map[string]bool{"q": true, "r": false, "": false}},
		"terminated without an id": {func(w *world) { w.do(Terminate{Request: &schemas.ExecutionRequest{}}) }, map[string]bool{"q": false, "": false}},
		"completed":                {func(w *world) { w.answer(&schemas.CompleteWorkflow{}) }, map[string]bool{"q": false, "": false}},
		"completed, and was paused": {func(w *world) {
			w.do(Pause{Request: &schemas.ExecutionRequest{RequestID: "q"}})
			w.answer(&schemas.CompleteWorkflow{})
		}, map[string]bool{"q": true, "r": false, "": false}},
	} {
		t.Run(name, func(t *testing.T) {
			w := begin(t)
			w.do(Taken{})
			tt.end(w)
			if !w.s.Closed() {
				t.Fatal("the run is open")
			}
			for id, want := range tt.want {
				if got := w.s.Repeated(&schemas.ExecutionRequest{RequestID: id}); got != want {
					t.Errorf("%q is a repeat: %v, want %v", id, got, want)
				}
			}
		})
	}
}

// Who asks a run to cancel is answered, whether or not the run is the one that was meant; the run is asked once.
func TestCancelIsAnswered(t *testing.T) { // P-6
	source := schemas.Execution{WorkflowID: "p", Run: "p-1"}
	ask := func(run string, event int64) Message {
		return Cancel{Request: &schemas.ExecutionRequest{Run: run, Origin: &schemas.RequestOrigin{Execution: &source, ScheduledEventID: event, FirstRun: run}}}
	}
	w := begin(t)
	for _, tt := range []struct {
		m    Message
		want schemas.Cause
	}{{ask("run-0", 5), schemas.CauseUnknownExecution}, {ask("run-1", 6), ""}, {ask("run-1", 6), ""}} {
		if got := of[Answer](w.do(tt.m)); len(got) != 1 || got[0].To != source || got[0].Answer.Cause != tt.want {
			t.Fatalf("got %+v, want one answer to %v with the cause %q", got, source, tt.want)
		}
	}
	w.follows("WorkflowCancelRequested")
	for _, id := range []string{"q", "another"} { // it has been asked already
		w.wantEffects(w.do(Cancel{Request: &schemas.ExecutionRequest{RequestID: id}}))
	}
	w.follows("")
}
