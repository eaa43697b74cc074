package execution

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/droverhq/drover/schemas"
)

func hold(w *world)    { w.do(Hold{Request: &schemas.ExecutionRequest{}}) }
func release(w *world) { w.do(Release{Request: &schemas.ExecutionRequest{}}) }

func asking(after time.Duration, events int64) func(*schemas.StartRequest) {
	return func(q *schemas.StartRequest) {
		q.Continuation = &schemas.ContinuationPolicy{After: schemas.Duration(after), Events: events}
	}
}

// handled lets the run handle a signal, and decide upon it.
func (w *world) handled(decisions ...schemas.DecisionAttributes) {
	w.t.Helper()
	w.do(Signal{Name: "s"})
	w.decide(decisions...)
}

// turned is a run of an hourly policy whose decider has handled a signal, with these decisions.
func turned(t *testing.T, decisions ...schemas.DecisionAttributes) *world {
	t.Helper()
	w := begin(t, asking(time.Hour, 0))
	w.decide()
	w.handled(decisions...)
	w.since()
	return w
}

const suggested = "ContinuationSuggested age; DeciderScheduled"

// S2-6: a run is asked when it is as old as its policy says, on the dot, at a moment when nothing is open but timers and locks that it
// holds.
func TestAnOldRunIsAskedToContinue(t *testing.T) {
	w := turned(t)
	w.rings(time.Hour, suggested)

	w = turned(t, &schemas.ScheduleTimer{TimerID: "T", StartToFireTimeout: seconds(7200)}, lockUp("L"))
	w.grant("L", 1)
	w.decide()
	w.since()
	w.rings(time.Hour, suggested)

	w = begin(t, asking(time.Hour, 0))
	w.decide(&schemas.ScheduleTimer{TimerID: "T", StartToFireTimeout: seconds(60)})
	w.rest(time.Minute)
	w.decide()
	w.since()
	w.rings(59*time.Minute, suggested) // a timer is as good as a signal
}

// S2-6: each condition that does not hold alone keeps a run from being asked, by age, by events and by a recycle. Once it holds the run is
// asked at once.
func TestEachConditionAloneKeepsARunFromBeingAsked(t *testing.T) {
	activity := &schemas.ScheduleActivity{ActivityID: "A", ActivityType: "work", ScheduleToStartTimeout: schemas.Unlimited, StartToCloseTimeout: schemas.Unlimited}
	child := &schemas.StartChild{WorkflowID: "c", WorkflowType: "T", ChildPolicy: schemas.ChildAbandon}
	for name, tt := range map[string]struct {
		decisions []schemas.DecisionAttributes // of the handled signal
		before    func(*world)
		then      func(*world) // makes the condition hold; nil if another test shows that
	}{
		"an activity is open": {list(activity), nil, func(w *world) {
			w.report("A", schemas.ReportStarted)
			w.report("A", schemas.ReportSuccess)
			w.decide()
		}},
		"a child is open": {list(child), nil, func(w *world) {
			c := w.s.OpenChildren()[0]
			for _, status := range []schemas.Status{schemas.StatusOpen, schemas.StatusCompleted} {
				w.do(Child{Report: &schemas.ChildReport{
					ParentRun: w.s.Run, ScheduledEventID: c.ScheduledID, Status: status, Child: schemas.Execution{WorkflowID: "c", Run: c.Scheduled.Run},
				}})
			}
			w.decide()
		}},
		"a signal to another workflow has no answer": {list(&schemas.SignalExternal{WorkflowID: "o", SignalName: "s"}), nil, func(w *world) {
			x := w.s.OpenExternals()[0]
			w.do(External{Answer: &schemas.ExternalAnswer{SourceRun: w.s.Run, ScheduledEventID: x.ScheduledID, Target: schemas.Execution{WorkflowID: "o", Run: "r"}}})
		}},
		"it waits for a lock": {list(lockUp("L")), nil, func(w *world) {
			w.grant("L", 1)
			w.decide()
		}},
		"a state key is asked for": {list(&schemas.GetState{Key: "k"}), nil, func(w *world) {
			for _, q := range w.s.Requests {
				w.do(Answered{Asked: Asked{Run: w.s.Run, EventID: q.EventID}, Value: schemas.Text("1"), Revision: 3})
			}
			w.decide()
		}},
		"it is held": {nil, hold, release},
		"a decision is wanted": {nil, func(w *world) { w.do(Signal{Name: "t"}) }, func(w *world) {
			w.decide()
		}},
		"a decider is at work": {nil, func(w *world) {
			w.do(Signal{Name: "t"})
			w.do(Taken{})
		}, func(w *world) { w.answer() }},
		"it is paused": {nil, pause, func(w *world) {
			resume(w)
			w.decide()
		}},
		"it is closed": {list(&schemas.CompleteWorkflow{}), nil, nil},
	} {
		for _, reason := range []string{schemas.ContinueAge, schemas.ContinueEvents, schemas.ContinueRecycle} {
			t.Run(name+"/"+reason, func(t *testing.T) {
				p := map[string]*schemas.ContinuationPolicy{
					schemas.ContinueAge: {After: schemas.Duration(time.Hour)}, schemas.ContinueEvents: {Events: 9}, schemas.ContinueRecycle: {},
				}[reason]
				w := begin(t, func(q *schemas.StartRequest) { q.Continuation, q.TaskStartToCloseTimeout = p, schemas.Unlimited })
				w.decide()
				w.handled(tt.decisions...) // the ninth event is what hinders
				if tt.before != nil {
					tt.before(w)
				}
				w.after(2 * time.Hour)
				w.do(AlarmFired{})
				w.do(Recycle{})
				if slices.ContainsFunc(w.events, isSuggestion) {
					t.Fatal("it was asked to continue")
				}
				if tt.then == nil {
					return
				}
				tt.then(w)
				if reason == schemas.ContinueRecycle {
					w.do(Recycle{})
				}
				w.rest(time.Second)
				i := slices.IndexFunc(w.events, isSuggestion)
				if i < 0 || fmt.Sprint(w.events[i].Attributes) != fmt.Sprint(&schemas.ContinuationSuggested{Reasons: []string{reason}}) {
					t.Fatalf("it was not asked to continue because of %s", reason)
				}
			})
		}
	}
}

func isSuggestion(e schemas.Event) bool { return e.Type() == schemas.EventContinuationSuggested }

// S2-6: a run that has handled neither a signal nor a timer has done nothing yet, and one without a policy is never asked.
func TestARunWithoutATurnIsNotAsked(t *testing.T) {
	for name, tt := range map[string]struct {
		policy func(*schemas.StartRequest)
		turn   func(*world)
	}{
		"no signal and no timer": {asking(time.Hour, 10), func(w *world) {
			w.decide(&schemas.ScheduleActivity{ActivityID: "A", ActivityType: "work"})
			w.report("A", schemas.ReportStarted)
			w.report("A", schemas.ReportSuccess)
			w.decide(&schemas.RecordMarker{MarkerName: "m"})
		}},
		"no policy": {func(*schemas.StartRequest) {}, func(w *world) { w.decide(); w.handled(); w.handled() }},
		"a policy without limits, by age and by events": {asking(0, 0), func(w *world) { w.decide(); w.handled(); w.handled() }},
		"without a limit of age, by age":                {asking(0, 1000), func(w *world) { w.decide(); w.handled(); w.handled() }},
	} {
		t.Run(name, func(t *testing.T) {
			w := begin(t, tt.policy)
			tt.turn(w)
			w.rest(3 * time.Hour)
			if name == "no policy" {
				w.do(Recycle{})
			}
			if slices.ContainsFunc(w.events, isSuggestion) {
				t.Fatal("it was asked to continue")
			}
		})
	}
}

// S2-6: a run with so many events is asked at the moment when it becomes quiet, and all reasons that hold are given.
func TestALongRunIsAskedToContinue(t *testing.T) {
	w := begin(t, asking(time.Hour, 12))
	w.decide()
	w.handled(&schemas.RecordMarker{MarkerName: "m"}) // event 9
	w.do(Signal{Name: "s"})
	w.do(Taken{})
	w.since()
	w.answer()
	w.follows("DeciderCompleted; ContinuationSuggested events; DeciderScheduled")

	w = turned(t)
	w.do(Recycle{})
	w.follows("ContinuationSuggested recycle; DeciderScheduled")
	w.do(Recycle{})
	w.follows("")

	w = turned(t)
	hold(w)
	w.after(time.Hour)
	release(w)
	w.since()
	w.do(AlarmFired{})
	w.follows(suggested)
}

// S2-6: who ignores that is asked again a threshold later, and each reason has its own.
func TestWhoDoesNotContinueIsAskedAgain(t *testing.T) {
	w := turned(t)
	w.rings(time.Hour, suggested)
	if got := w.s.ContinueReasons(); !slices.Equal(got, []string{"age"}) {
		t.Fatalf("got %q, want age", got)
	}
	w.after(time.Minute)
	w.decide()
	if got := w.s.ContinueReasons(); got != nil {
		t.Fatalf("got %q, want none: the decider has answered", got)
	}
	w.since()
	w.rings(59*time.Minute, suggested)

	w = begin(t, asking(0, 12))
	w.decide()
	w.handled(&schemas.RecordMarker{MarkerName: "m"})
	w.handled() // twelve and more
	w.decide()  // ignores it
	w.since()
	for w.do(Signal{Name: "s"}); ; w.do(Signal{Name: "s"}) {
		w.decide()
		if w.s.Decision.Scheduled != 0 {
			break
		}
	}
	again := w.events[len(w.events)-2]
	first := slices.IndexFunc(w.events, isSuggestion)
	if n := again.ID - w.events[first].ID; !isSuggestion(again) || n < 12 || n > 16 {
		t.Fatalf("event %d, %s, is %d events after the first suggestion, want 12 and at most a decision more", again.ID, again.Type(), n)
	}
}

// S2-6: a decider that writes many events whenever it is asked, and does not continue, is not asked without end.
func TestADeciderThatIgnoresSuggestionsIsLeftAlone(t *testing.T) {
	w := begin(t, asking(0, 10))
	var markers []schemas.DecisionAttributes
	for range 12 {
		markers = append(markers, &schemas.RecordMarker{MarkerName: "m"})
	}
	w.decide()
	w.handled(markers...)
	for range 5 {
		w.decide(markers...)
	}
	if n := len(slices.DeleteFunc(slices.Clone(w.events), func(e schemas.Event) bool { return !isSuggestion(e) })); n != 1 {
		t.Fatalf("it was asked %d times, want once", n)
	}
}

// P-4: a continuation that is refused since a signal came in is asked for again with the next decision.
func TestASuggestionStandsUntilItIsAnswered(t *testing.T) {
	w := turned(t)
	w.rings(time.Hour, suggested)
	w.do(Taken{})
	w.do(Signal{Name: "late"})
	w.since()
	w.answer(&schemas.ContinueAsNew{})
	w.follows("DeciderCompleted; WorkflowCloseFailed UNHANDLED_DECISION")
	for name, s := range map[string]*State{"lived": w.s, "restored": w.restored()} {
		if got := s.ContinueReasons(); !slices.Equal(got, []string{"age"}) {
			t.Fatalf("%s: got %q, want age", name, got)
		}
	}
	hold(w)
	if got := w.s.ContinueReasons(); got != nil {
		t.Fatalf("got %q, want none while it is held", got)
	}
	release(w)
	w.decide(&schemas.ContinueAsNew{})
	if w.s.Status != schemas.StatusContinuedAsNew {
		t.Fatalf("got %s", w.s.Status)
	}
}

// S2-8: the run that continues has the policy, the hold and the mode of its chain.
func TestAContinuationKeepsItsPolicy(t *testing.T) {
	for _, mode := range []schemas.StartMode{"", schemas.ModeManual, schemas.ModeSchedule, schemas.ModeAutoStart} {
		w := begin(t, asking(time.Hour, 0), func(q *schemas.StartRequest) { q.StartMode = mode })
		w.do(Hold{Request: &schemas.ExecutionRequest{Reason: "looking", Identity: "me"}})
		w.decide(&schemas.ContinueAsNew{})
		q := w.s.Continuation()
		next := New("order-1", q.Run)
		next.Step(&w.c, Start{Request: q}, w.now)
		if got, want := next.Start.Mode(), w.s.Start.Mode().Continued(); got != want {
			t.Errorf("%q: got %q, want %q", mode, got, want)
		}
		if next.Start.Continuation == nil || next.Start.Continuation.After != schemas.Duration(time.Hour) || next.Continuing.Held == nil || next.Continuing.Held.Reason != "looking" {
			t.Errorf("got %+v, held %+v", next.Start.Continuation, next.Continuing.Held)
		}
	}
}

// P-15: the age counts from the server's time of the record.
func TestTheAgeCountsFromTheRecord(t *testing.T) {
	w := begin(t, asking(time.Hour, 0))
	w.rebased = true
	w.s.Rebase(1, w.now+schemas.Timestamp(time.Minute))
	w.decide()
	w.handled()
	w.since()
	w.rings(61*time.Minute, suggested)
	w.s.Rebase(w.s.LastID-1, w.now+schemas.Timestamp(time.Minute))
	w.decide()
	w.since()
	w.rings(61*time.Minute, suggested)
	w.decide()
	w.after(time.Hour)
	w.since()
	w.do(AlarmFired{Uncommitted: w.s.Continuing.AgeFrom})
	w.follows("")
}
