package execution

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/schemas"
)

func pause(w *world)  { w.do(Pause{Request: &schemas.ExecutionRequest{}}) }
func resume(w *world) { w.do(Resume{Request: &schemas.ExecutionRequest{}}) }

// wanted tells in how long the decider is to be asked, or that it is not.
func (w *world) wanted() (time.Duration, bool) {
	wanted, ok := w.s.WantsDecider(&w.c)
	if !ok {
		return 0, false
	}
	return max(wanted.NotBefore, w.now).Sub(w.now), true
}

func TestDeciderFails(t *testing.T) { // S1-7
	reported := func(e schemas.DecisionError) Message {
		return Reply{Digest: "d", Reply: &schemas.DecisionReply{
			Error: &e, Identity: "me", Context: schemas.Text("c"),
			Decisions: []schemas.Decision{schemas.Decide(&schemas.CompleteWorkflow{})}, // an error goes before what was decided
		}}
	}
	for _, tt := range []struct {
		name  string
		m     Message
		cause schemas.Cause
	}{
		{"it reports an error", reported(schemas.DecisionError{Cause: schemas.CauseDeciderError, Reason: "why", Details: "stack"}), schemas.CauseDeciderError},
		{"it panics", reported(schemas.DecisionError{Cause: schemas.CauseDeciderPanic, Reason: "why", Details: "stack"}), schemas.CauseDeciderPanic},
		{"it names no cause", reported(schemas.DecisionError{Reason: "why", Details: "stack"}), schemas.CauseDeciderError},
		{"it finds its answer too large", reported(schemas.DecisionError{Cause: schemas.CauseDecisionTooLarge, Reason: "why", Details: "stack"}), schemas.CauseDecisionTooLarge},
		{"its code does not fit the history", reported(schemas.DecisionError{Cause: schemas.CauseNonDeterministic, Reason: "why", Details: "stack"}), schemas.CauseNonDeterministic},
		{"it may not invent a cause", reported(schemas.DecisionError{Cause: schemas.CauseOperatorInitiated, Reason: "why", Details: "stack"}), schemas.CauseDeciderError},
		{"its answer cannot be read", Refuse{Cause: schemas.CauseInvalidDecision, Reason: "why", Details: "stack", Identity: "me"}, schemas.CauseInvalidDecision},
		{"its answer is too large", Refuse{Cause: schemas.CauseDecisionTooLarge, Reason: "why", Details: "stack", Identity: "me"}, schemas.CauseDecisionTooLarge},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := begin(t)
			w.do(Taken{})
			if effects := w.do(tt.m); len(effects) != 0 {
				t.Fatalf("got effects %v, want none", effects)
			}
			w.follows("DeciderStarted; DeciderFailed " + string(tt.cause) + "; DeciderScheduled")
			want := &schemas.DeciderFailed{Cause: tt.cause, Reason: "why", Details: "stack", ScheduledEventID: 2, StartedEventID: 3, Identity: "me"}
			if diff := cmp.Diff(want, w.events[3].Attributes); diff != "" {
				t.Fatal(diff)
			}
			if in, ok := w.wanted(); !ok || in != 100*time.Millisecond {
				t.Fatalf("asked again in %s (%v), want in 100ms", in, ok)
			}
			w.do(tt.m) // twice is not twice as bad
			w.do(Refuse{Cause: schemas.CauseInvalidDecision})
			w.follows("")
		})
	}
}

func TestBackoff(t *testing.T) {
	ms := func(all ...int) (d []schemas.Duration) {
		for _, n := range all {
			d = append(d, schemas.Duration(n)*schemas.Duration(time.Millisecond))
		}
		return d
	}
	for _, tt := range []struct {
		name string
		c    Config
		want []schemas.Duration // after 0, 1, 2 … failures
	}{
		{"default", Config{}, ms(0, 100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000)},
		{"its own", Config{DeciderBackoff: seconds(1), DeciderBackoffCap: seconds(3)}, ms(0, 1000, 2000, 3000, 3000)},
		{"a cap below the first", Config{DeciderBackoff: seconds(5), DeciderBackoffCap: seconds(3)}, ms(0, 3000, 3000)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := tt.c.Defaults()
			for n, want := range tt.want {
				if got := c.backoff(n); got != want {
					t.Fatalf("after %d failures: got %s, want %s", n, got, want)
				}
			}
		})
	}
}

// A decider that fails or times out is asked again ever later, and not for ever: the run is parked, and says why.
func TestParking(t *testing.T) { // S1-8
	w := begin(t)
	var waits []time.Duration
	for i := range 10 {
		in, ok := w.wanted()
		if !ok || w.s.Decision.Failures != i {
			t.Fatalf("after %d failures: wanted %v, counted %d", i, ok, w.s.Decision.Failures)
		}
		waits = append(waits, in)
		if got := last[*schemas.DeciderScheduled](w).Attempt; got != i+1 {
			t.Fatalf("got attempt %d, want %d", got, i+1)
		}
		w.after(in)
		w.do(Taken{})
		if i%2 == 0 {
			w.after(10 * sec)
			w.do(AlarmFired{})
		} else {
			w.do(Refuse{Cause: schemas.CauseDeciderPanic, Reason: "index out of range", Details: "goroutine 1"})
		}
	}
	const ms = time.Millisecond
	if diff := cmp.Diff([]time.Duration{0, 100 * ms, 200 * ms, 400 * ms, 800 * ms, 1600 * ms, 3200 * ms, 6400 * ms, 10 * sec, 10 * sec}, waits); diff != "" {
		t.Fatal(diff)
	}
	const again = "DeciderStarted; DeciderTimedOut START_TO_CLOSE; DeciderScheduled; DeciderStarted; DeciderFailed DECIDER_PANIC; "
	w.follows(strings.Repeat(again+"DeciderScheduled; ", 4) + again + "WorkflowPaused DECIDER_ATTEMPTS_EXCEEDED")
	if got := last[*schemas.WorkflowPaused](w); got.Reason != "the decider failed 10 times in a row: index out of range" || got.Details != "goroutine 1" {
		t.Fatalf("got %+v, want the reason and the stack", got)
	}
	if _, ok := w.wanted(); ok || w.s.Status != schemas.StatusPaused {
		t.Fatalf("status %s, wanted %v; want paused and not wanted", w.s.Status, ok)
	}
	w.do(Signal{Name: "x"})
	w.rest(24 * time.Hour)
	w.follows("Signal x")
	resume(w)
	if in, ok := w.wanted(); !ok || in != 0 || w.s.Decision.Failures != 0 || w.s.Status != schemas.StatusOpen {
		t.Fatalf("wanted %v in %s after %d failures, want at once and none", ok, in, w.s.Decision.Failures)
	}
	w.decide(&schemas.CompleteWorkflow{})
	w.follows("WorkflowResumed; DeciderScheduled; DeciderStarted; DeciderCompleted; WorkflowSuccess")
	if d := w.s.Decision; d.Previous != w.s.LastID-2 {
		t.Fatalf("got %+v", d)
	}
}

func TestParkingByTimeoutsTellsWhy(t *testing.T) {
	w := begin(t)
	w.c.DeciderAttempts = 1
	w.do(Taken{})
	w.rest(time.Minute)
	w.follows("DeciderStarted; DeciderTimedOut START_TO_CLOSE; WorkflowPaused DECIDER_ATTEMPTS_EXCEEDED")
	if got := last[*schemas.WorkflowPaused](w).Reason; got != "the decider failed 1 times in a row: it did not answer within 10s" {
		t.Fatalf("got %q", got)
	}
}

// A decision that was already pending after the last failure waits through the parking.
func TestParkedWithAPendingDecision(t *testing.T) { // S1-5
	w := begin(t)
	w.c.DeciderAttempts = 1
	w.do(Taken{})
	w.do(Signal{Name: "x"})
	w.do(Refuse{Cause: schemas.CauseDeciderError})
	w.follows("DeciderStarted; Signal x; DeciderScheduled; DeciderFailed DECIDER_ERROR; WorkflowPaused DECIDER_ATTEMPTS_EXCEEDED")
	if _, ok := w.wanted(); ok {
		t.Fatal("a paused run wants a decider")
	}
	w.do(Taken{})
	w.follows("")
	resume(w)
	w.decide(&schemas.CompleteWorkflow{})
	w.follows("WorkflowResumed; DeciderStarted; DeciderCompleted; WorkflowSuccess")
}

func TestACompletedDecisionEndsTheRow(t *testing.T) {
	w := begin(t)
	w.c.DeciderAttempts = 2
	for range 3 {
		w.do(Taken{})
		w.do(Refuse{Cause: schemas.CauseDeciderError})
		w.decide()
		w.do(Signal{Name: "x"})
	}
	if w.s.Paused != nil || w.s.Decision.Failures != 0 {
		t.Fatalf("got %+v, paused %v", w.s.Decision, w.s.Paused)
	}
}

// The window begins after the last completed decider, so what one that failed has seen is seen again.
func TestWindowAfterFailures(t *testing.T) { // S1-37, S1-46
	w := decided(t) // started by event 3
	w.do(Signal{Name: "x"})
	w.do(Taken{})
	w.after(10 * sec)
	w.do(AlarmFired{})
	w.do(Taken{})
	w.do(Refuse{Cause: schemas.CauseDeciderError})
	w.do(Taken{})
	if d := w.s.Decision; d.Previous != 3 || d.Started != w.s.LastID {
		t.Fatalf("the window is %d-%d, want 3-%d", d.Previous, d.Started, w.s.LastID)
	}
}

// The backoff counts from the failure, even if what is asked again was pending before it.
func TestBackoffOfAPendingDecision(t *testing.T) {
	w := begin(t)
	w.do(Taken{})
	w.do(Signal{Name: "x"})
	w.after(5 * sec)
	w.do(Refuse{Cause: schemas.CauseDeciderError})
	if in, ok := w.wanted(); !ok || in != 100*time.Millisecond {
		t.Fatalf("asked again in %s (%v), want in 100ms", in, ok)
	}
}

// While a run is paused everything goes on but the decider; what came in is seen at the resume.
func TestPause(t *testing.T) { // S1-5, S1-21
	w := decided(t, timer("T", 5), &schemas.ScheduleActivity{ActivityID: "A", ActivityType: "work", ScheduleToStartTimeout: seconds(9)}, activity("B"))
	w.do(Pause{Request: &schemas.ExecutionRequest{Reason: "look", RequestID: "r1", Identity: "me"}})
	want := &schemas.WorkflowPaused{Cause: schemas.CauseOperatorInitiated, Reason: "look", RequestID: "r1", Identity: "me"}
	if diff := cmp.Diff(want, last[*schemas.WorkflowPaused](w)); diff != "" {
		t.Fatal(diff)
	}
	pause(w) // once is enough
	w.report("B", schemas.ReportSuccess)
	w.do(Signal{Name: "x"})
	w.rest(time.Minute)
	w.do(Taken{})
	w.follows("WorkflowPaused OPERATOR_INITIATED; ActivityStarted B; ActivitySuccess B; Signal x; TimerExpired T; ActivityScheduledTimeout A")
	if _, ok := w.wanted(); ok {
		t.Fatal("a paused run wants a decider")
	}
	w.refused(w.answer(&schemas.CompleteWorkflow{}), DeadLateDecision)
	w.do(Resume{Request: &schemas.ExecutionRequest{Reason: "seen", RequestID: "r2", Identity: "me"}})
	resume(w)
	w.follows("WorkflowResumed; DeciderScheduled")
	if diff := cmp.Diff(&schemas.WorkflowResumed{Reason: "seen", RequestID: "r2", Identity: "me"}, w.events[len(w.events)-2].Attributes); diff != "" {
		t.Fatal(diff)
	}
	if in, ok := w.wanted(); !ok || in != 0 {
		t.Fatalf("wanted %v in %s, want at once", ok, in)
	}
	w.decide(&schemas.CompleteWorkflow{})
	w.follows("DeciderStarted; DeciderCompleted; WorkflowSuccess")
}

// A decider that is at work when the run is paused may finish.
func TestPauseWhileDeciding(t *testing.T) { // S1-36
	t.Run("it answers", func(t *testing.T) {
		w := begin(t)
		w.do(Taken{})
		pause(w)
		w.answer(activity("A"))
		w.follows("DeciderStarted; WorkflowPaused OPERATOR_INITIATED; DeciderCompleted; ActivityScheduled A")
		resume(w)
		w.follows("WorkflowResumed; DeciderScheduled")
	})
	t.Run("it is refused something", func(t *testing.T) {
		w := begin(t)
		w.do(Taken{})
		pause(w)
		w.answer(&schemas.CancelTimer{TimerID: "T"})
		w.follows("DeciderStarted; WorkflowPaused OPERATOR_INITIATED; DeciderCompleted; TimerCancelFailed T TIMER_ID_UNKNOWN")
		resume(w)
		w.follows("WorkflowResumed; DeciderScheduled")
	})
	t.Run("it fails", func(t *testing.T) {
		w := begin(t)
		w.c.DeciderAttempts = 1
		w.do(Taken{})
		pause(w)
		w.do(Refuse{Cause: schemas.CauseDeciderError})
		w.follows("DeciderStarted; WorkflowPaused OPERATOR_INITIATED; DeciderFailed DECIDER_ERROR") // parked already
		resume(w)
		w.follows("WorkflowResumed; DeciderScheduled")
	})
	t.Run("it times out", func(t *testing.T) {
		w := begin(t)
		w.do(Taken{})
		pause(w)
		w.rest(time.Hour)
		w.follows("DeciderStarted; WorkflowPaused OPERATOR_INITIATED; DeciderTimedOut START_TO_CLOSE")
		resume(w)
		w.follows("WorkflowResumed; DeciderScheduled")
	})
	t.Run("the run is resumed before it answers", func(t *testing.T) {
		w := begin(t)
		w.do(Taken{})
		pause(w)
		resume(w)
		w.answer()
		w.do(Taken{})
		w.follows("DeciderStarted; WorkflowPaused OPERATOR_INITIATED; WorkflowResumed; DeciderScheduled; DeciderCompleted; DeciderStarted")
	})
}

// What a decider says of its failure is cut where it is longer than a record is to keep, between two letters.
func TestLongWordsOfADecider(t *testing.T) {
	w := begin(t)
	w.do(Taken{})
	fits, long := strings.Repeat("x", schemas.MaxDeciderReason), strings.Repeat("ü", schemas.MaxDeciderDetails)
	w.do(Refuse{Cause: schemas.CauseDeciderError, Reason: fits, Details: long})
	got := w.events[len(w.events)-2].Attributes.(*schemas.DeciderFailed)
	if n := len(got.Details); got.Reason != fits || n > schemas.MaxDeciderDetails || n < schemas.MaxDeciderDetails-3 || !utf8.ValidString(got.Details) || !strings.HasSuffix(got.Details, "ü…") {
		t.Errorf("got a reason of %d bytes, want all %d; details of %d bytes, want at most %d that end with …", len(got.Reason), len(fits), n, schemas.MaxDeciderDetails)
	}
}
