package execution

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/droverhq/drover/schemas"
)

// R3, P-4. Signals that keep coming hold up a continuation three times in a row. Then it is accepted, and the next run begins with what
// was not read. What else comes, and another end than a continuation, is refused as before.
func TestSignalsHoldUpAContinuationThreeTimes(t *testing.T) {
	signals := func(n int) []Message {
		return []Message{Signal{Name: fmt.Sprint("s", n)}, Signal{Name: fmt.Sprint("t", n)}}
	}
	next := &schemas.ContinueAsNew{}
	held := "DeciderStarted; Signal s%d; DeciderScheduled; Signal t%[1]d; DeciderCompleted; WorkflowCloseFailed UNHANDLED_DECISION"
	through := "DeciderStarted; Signal s%d; DeciderScheduled; Signal t%[1]d; DeciderCompleted; WorkflowContinuedAsNew"
	for name, tt := range map[string]struct {
		tries int
		came  func(n int) []Message
		says  func(n int) schemas.DecisionAttributes
		want  map[int]string // by the number of the try
	}{
		"only signals": {4, signals, nil, map[int]string{1: held, 3: held, 4: through}},
		"a cancel request too": {9, func(n int) []Message {
			return append(signals(n), Cancel{Request: &schemas.ExecutionRequest{Origin: &schemas.RequestOrigin{
				Execution: &schemas.Execution{WorkflowID: "w", Run: "r"}, ScheduledEventID: int64(n),
			}}})
		}, nil, map[int]string{9: strings.Replace(held, "Signal t%[1]d", "Signal t%[1]d; WorkflowCancelRequested", 1)}},
		"a decision of its own is refused": {
			9, signals, func(int) schemas.DecisionAttributes { return &schemas.CancelTimer{TimerID: "x"} },
			map[int]string{9: strings.Replace(held, "DeciderCompleted", "DeciderCompleted; TimerCancelFailed x TIMER_ID_UNKNOWN", 1)},
		},
		"another decision now and then": {7, signals, func(n int) schemas.DecisionAttributes {
			if n%2 == 0 {
				return &schemas.RecordMarker{MarkerName: "m"}
			}
			return nil
		}, map[int]string{2: strings.Replace(held, "WorkflowCloseFailed UNHANDLED_DECISION", "Marker m", 1), 7: through}},
		"it has seen all meanwhile": {7, func(n int) []Message {
			if n == 3 {
				return nil
			}
			return signals(n)
		}, func(n int) schemas.DecisionAttributes {
			if n == 3 {
				return &schemas.RecordMarker{MarkerName: "m"}
			}
			return nil
		}, map[int]string{6: held, 7: through}},
	} {
		t.Run(name, func(t *testing.T) {
			w := begin(t)
			for n := 1; n <= tt.tries; n++ {
				if w.s.Closed() {
					t.Fatalf("it continued at try %d, want %d", n-1, tt.tries)
				}
				if w.s.Decision.Scheduled == 0 {
					w.do(Signal{Name: "wake"})
				}
				w.since()
				w.do(Taken{})
				for _, m := range tt.came(n) {
					w.do(m)
				}
				var other schemas.DecisionAttributes
				if tt.says != nil {
					other = tt.says(n)
				}
				switch {
				case other == nil:
					w.answer(next)
				case other.DecisionType() == schemas.DecideRecordMarker:
					w.answer(other)
				default:
					w.answer(other, next)
				}
				if want := tt.want[n]; want != "" {
					w.follows(fmt.Sprintf(want, n))
				}
			}
			if a, ok := w.s.Close, w.s.Closed(); ok {
				if got := a.Attributes.(*schemas.WorkflowContinuedAsNew).UnreadSignals; got != 2 {
					t.Fatalf("%d signals are unread, it says; want 2", got)
				}
			}
		})
	}
	for _, end := range []schemas.DecisionAttributes{&schemas.CompleteWorkflow{}, &schemas.FailWorkflow{Reason: "r"}, &schemas.CancelWorkflow{}} {
		w := begin(t)
		for n := range 8 {
			w.do(Taken{})
			w.do(Signal{Name: fmt.Sprint(n)})
			if w.answer(end); w.s.Closed() {
				t.Fatalf("%s over a signal that nobody has seen", end.DecisionType())
			}
		}
	}
}

// R3, P-4, P-5, P-6. The next run begins with copies in their order, which name their origin; it knows their ids, and an owner that finds
// only some of them adds the rest.
func TestUnreadSignalsComeFirst(t *testing.T) {
	source := schemas.Execution{WorkflowID: "other", Run: "o1"}
	f := newFamily(t.Fatalf)
	f.begin(&schemas.StartRequest{WorkflowID: "a", Run: "a1", Type: "T"})
	first := f.last["a"]
	for range mostHeld {
		f.decideAmid("a", []Message{Signal{Name: "read"}}, &schemas.ContinueAsNew{})
	}
	f.decideAmid("a", []Message{
		Signal{Name: "one", Input: schemas.Text("1"), RequestID: "q1"},
		Signal{Name: "two"},
		Signal{Name: "three", External: &schemas.ExternalSignal{Name: "three", Input: schemas.Text("3"), Source: source, ScheduledEventID: 7}},
	}, &schemas.ContinueAsNew{})
	next := f.last["a"]
	if next == first || !first.Closed() {
		t.Fatal("it did not continue")
	}
	f.tells(t, "a", "WorkflowStarted", "DeciderScheduled", "Signal one", "Signal two", "Signal three")
	unread := first.Unread(f.all[first.Run])
	for i, e := range f.all[next.Run][2:] {
		a, of := e.Attributes.(*schemas.Signal), unread[i].Attributes.(*schemas.Signal)
		if a.OriginRun != first.Run || a.OriginEventID != unread[i].ID || a.RequestID != of.RequestID || string(a.Input) != string(of.Input) ||
			a.ExternalScheduledEventID != of.ExternalScheduledEventID {
			t.Errorf("copy %d is %+v; want one of event %d, %+v", i, a, unread[i].ID, of)
		}
	}
	f.step(next, Signal{Name: "one", RequestID: "q1"})
	f.step(next, Signal{Name: "three", External: &schemas.ExternalSignal{Name: "three", Source: source, ScheduledEventID: 7}})
	if got := len(f.all[next.Run]); got != 5 {
		t.Errorf("%d events: a repeat of a copied signal came again", got)
	}
	if want := []string{"q1", "o1.7"}; !slices.Equal(next.SignalIDs, want) {
		t.Errorf("the run knows %q, want %q", next.SignalIDs, want)
	}
	for n := 2; n <= 5; n++ { // where an owner dies
		s := fold(next, f.all[next.Run][:n])
		if s.Copying() != (n < 5) {
			t.Errorf("with %d events, still copying is %v", n, s.Copying())
		}
		for _, e := range unread[s.Copied:] {
			s.Step(&f.c, Copied{EventID: e.ID, Signal: e.Attributes.(*schemas.Signal)}, f.now)
		}
		if diff := sameState(s, next); s.Copying() || diff != "" && n > 2 { // times differ
			t.Logf("with %d events:\n%s", n, diff)
		}
		if s.LastID != 5 {
			t.Errorf("with %d events the run has %d at last, want 5", n, s.LastID)
		}
	}
	f.decide("a", &schemas.CompleteWorkflow{})
	f.mail = map[string][]Message{} // the answer to the other workflow, which is not there
}
