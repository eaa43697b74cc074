package execution

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/schemas"
)

// A sender that got no answer sends again; the history has the signal once.
func TestRepeatedSignals(t *testing.T) { // S1-21, P-5, P-6
	signal := func(w *world, id string) []Effect { return w.do(Signal{Name: "s" + id, RequestID: id}) }
	t.Run("while the run is open", func(t *testing.T) {
		w := begin(t)
		for _, id := range []string{"1", "2", "1", "3", "2", "", ""} { // without an id nothing is a repeat
			if effects := signal(w, id); len(effects) != 0 {
				t.Fatalf("got effects %v, want none", effects)
			}
		}
		w.follows("Signal s1; Signal s2; Signal s3; Signal s; Signal s")
		if got := w.events[2].Attributes.(*schemas.Signal); got.RequestID != "1" {
			t.Fatalf("got %+v, want the request id", got)
		}
	})
	t.Run("a repeat is no reason to refuse a close", func(t *testing.T) {
		w := begin(t)
		signal(w, "1")
		w.do(Taken{})
		signal(w, "1")
		w.answer(&schemas.CompleteWorkflow{})
		w.follows("Signal s1; DeciderStarted; DeciderCompleted; WorkflowSuccess")
	})
	t.Run("after a new owner has read the history", func(t *testing.T) {
		w := begin(t)
		signal(w, "1")
		w.s = fold(w.s, w.events)
		signal(w, "1")
		w.s = w.restored()
		signal(w, "1")
		w.follows("Signal s1")
	})
	t.Run("that of a start without any id", func(t *testing.T) {
		again := StartSignalOf(&schemas.StartRequest{WorkflowID: "order-1", Run: "run-2", Signal: &schemas.StartSignal{Name: "x"}})
		w := begin(t)
		w.do(again)
		w.do(again)
		w.follows("Signal x")
	})
	t.Run("an id that is too long to be remembered", func(t *testing.T) {
		w := begin(t)
		longest := strings.Repeat("1", schemas.MaxIDLen)
		w.refused(signal(w, longest+"1"), DeadInvalid)
		signal(w, longest)
		w.follows("Signal s" + longest)
	})
	t.Run("after the close a repeat is not parked", func(t *testing.T) {
		w := begin(t)
		signal(w, "1")
		w.decide(&schemas.CompleteWorkflow{})
		if effects := signal(w, "1"); len(effects) != 0 {
			t.Fatalf("got effects %v; the history has it", effects)
		}
		w.refused(signal(w, "2"), DeadClosedWorkflow)
		w.refused(signal(w, ""), DeadClosedWorkflow)
	})
}

// What is remembered is bounded, and so is the array after it.
func TestRememberedSignals(t *testing.T) {
	w := begin(t)
	for i := range 5 * rememberedSignals {
		w.do(Signal{Name: "x", RequestID: fmt.Sprint(i)})
	}
	if n, room := len(w.s.SignalIDs), cap(w.s.SignalIDs); n != rememberedSignals || room > 3*rememberedSignals {
		t.Fatalf("got %d ids in room for %d, want %d in not much more", n, room, rememberedSignals)
	}
	w.since()
	for i := 4 * rememberedSignals; i < 5*rememberedSignals; i++ {
		w.do(Signal{Name: "x", RequestID: fmt.Sprint(i)})
	}
	w.follows("")
	w.after(10 * time.Minute)
	w.do(Signal{Name: "x", RequestID: "0"}) // nobody remembers it: the checker neither
	w.follows("Signal x")
}

// What a workflow id has received from others is known to each run of it that does not continue one, a child too, and the signal of a
// signal-with-start is the first thing that comes.
func TestStartsKnowWhatWasReceived(t *testing.T) { // P-6
	for name, origin := range map[string]*schemas.StartOrigin{
		"of a client": nil, "of a parent": {Parent: &schemas.Execution{WorkflowID: "p", Run: "p-1"}, ParentScheduledEventID: 5, Depth: 1},
	} {
		t.Run(name, func(t *testing.T) {
			c, s := Config{}.Defaults(), New("order-1", "run-1")
			events, _ := s.Step(&c, Start{Received: []string{"x.7"}, Request: &schemas.StartRequest{
				WorkflowID: "order-1", Run: "run-1", Type: "order", RequestID: "q", Origin: origin, Signal: &schemas.StartSignal{Name: "hello", Input: schemas.Text("1")},
			}}, 1)
			if got := events[0].Attributes.(*schemas.WorkflowStarted).SignalIDs; !slices.Equal(got, []string{"x.7"}) {
				t.Errorf("the run knows %q, want what was received", got)
			}
			if len(events) != 3 {
				t.Fatalf("got %d events, want three, the last of them the signal", len(events))
			}
			want := &schemas.Signal{SignalName: "hello", Input: schemas.Text("1"), RequestID: "q"}
			if diff := cmp.Diff(want, events[2].Attributes); diff != "" {
				t.Errorf("the signal (-want +got):\n%s", diff)
			}
		})
	}
}
