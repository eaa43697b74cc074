package execution

import (
	"maps"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/droverhq/drover/broker/checker"
	"github.com/droverhq/drover/schemas"
)

// world drives one execution by hand and remembers its whole history. When the test ends, the history is checked against
// the rules of package checker, and folding it must give the state that the steps have led to.
type world struct {
	t       *testing.T
	c       Config
	s       *State
	now     schemas.Timestamp
	events  []schemas.Event
	effects []Effect
	mark    int  // since looks at the events from here on
	rebased bool // the state knows times that the events do not
	// committed is the last event that commit has seen.
	committed int64
}

// restored is the state as its snapshot has it.
func (w *world) restored() *State {
	w.t.Helper()
	b, err := w.s.Snapshot()
	if err != nil {
		w.t.Fatal(err)
	}
	s, err := Restore(b)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

func begin(t *testing.T, change ...func(*schemas.StartRequest)) *world {
	t.Helper()
	w := &world{t: t, c: Config{}.Defaults(), s: New("order-1", "run-1"), now: schemas.At(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))}
	t.Cleanup(w.check)
	q := &schemas.StartRequest{WorkflowID: "order-1", Run: "run-1", Type: "order", ActivityDefaults: &schemas.ActivityDefaults{List: "main"}}
	for _, f := range change {
		f(q)
	}
	w.do(Start{Request: q})
	w.mark = len(w.events)
	return w
}

// decided is a world whose first decider has answered.
func decided(t *testing.T, decisions ...schemas.DecisionAttributes) *world {
	t.Helper()
	w := begin(t)
	w.decide(decisions...)
	w.mark = len(w.events)
	return w
}

// working is a world with activity A at work.
func working(t *testing.T, a schemas.ScheduleActivity) *world {
	t.Helper()
	a.ActivityID, a.ActivityType = "A", "work"
	w := decided(t, &a)
	w.report("A", schemas.ReportStarted)
	w.mark = len(w.events)
	return w
}

// check is what every history must stand, whatever its test was about.
func (w *world) check() {
	for _, v := range checker.CheckEvents(w.s.WorkflowID, w.s.Run, w.events) {
		w.t.Errorf("%s", v)
	}
	if diff := sameState(fold(w.s, w.events), w.s); diff != "" && !w.rebased {
		w.t.Errorf("the folded events (-) and the steps (+) lead to different states:\n%s", diff)
	}
	if w.t.Failed() {
		w.t.Logf("history:\n%s", w.history())
	}
}

// fold is the state that a history leads to.
func fold(like *State, events []schemas.Event) *State {
	s := New(like.WorkflowID, like.Run)
	for _, e := range events {
		s.Apply(e)
	}
	return s
}

var stateOptions = cmp.Options{
	cmp.AllowUnexported(State{}), cmpopts.EquateEmpty(), cmpopts.IgnoreFields(Activity{}, "LastBeat", "BeatDetails", "NotBefore"),
}

// sameState tells how a state that was read from the history differs from the one that lived through it; empty if not at
// all. Two things no event shows, and a new owner does without: heartbeats, and whether a delayed task was put on its
// list already; in doubt it does so again.
func sameState(read, lived *State) string {
	diff := ""
	if !reflect.DeepEqual(shown(read), shown(lived)) { // much faster, and stricter
		diff = cmp.Diff(read, lived, stateOptions)
	}
	for id, a := range lived.Activities {
		if b := read.Activities[id]; diff == "" && a.NotBefore != 0 && a.NotBefore != b.NotBefore {
			diff = cmp.Diff(b, a)
		}
	}
	return diff
}

// shown is a copy of the state without what no event shows.
func shown(s *State) *State {
	c := *s
	c.Activities = make(map[int64]*Activity, len(s.Activities))
	for id, a := range s.Activities {
		b := *a
		b.LastBeat, b.BeatDetails, b.NotBefore = 0, nil, 0
		c.Activities[id] = &b
	}
	c.activityIDs, c.Timers = maps.Clone(s.activityIDs), maps.Clone(s.Timers)
	if len(c.activityIDs) == 0 {
		c.activityIDs = nil
	}
	if len(c.Timers) == 0 {
		c.Timers = nil
	}
	return &c
}

func (w *world) do(m Message) []Effect {
	w.t.Helper()
	events, effects := w.s.Step(&w.c, m, w.now)
	w.events = append(w.events, events...)
	w.effects = append(w.effects, effects...)
	if n := len(w.events); n > 0 && w.events[n-1].ID != int64(n) {
		w.t.Fatalf("event ids have a gap: event %d has the id %d", n, w.events[n-1].ID)
	}
	return effects
}

func (w *world) after(d time.Duration) { w.now += schemas.Timestamp(d) }

// rest rings whenever something is due, for the given span.
func (w *world) rest(d time.Duration) {
	w.t.Helper()
	end := w.now + schemas.Timestamp(d)
	for due := w.s.NextDue(&w.c); due != 0 && due <= end; due = w.s.NextDue(&w.c) {
		w.now = max(w.now, due)
		w.do(AlarmFired{})
	}
	w.now = end
}

// rings fails the test unless nothing happens up to one nanosecond before d has passed, and these events do at that very
// instant; NextDue must have told.
func (w *world) rings(d time.Duration, want string) {
	w.t.Helper()
	due := w.now + schemas.Timestamp(d)
	if next := w.s.NextDue(&w.c); next != due {
		w.t.Fatalf("next due in %s, want in %s", next.Sub(w.now), d)
	}
	w.follows("")
	w.now = due - 1
	w.do(AlarmFired{})
	w.follows("")
	w.now = due
	w.do(AlarmFired{})
	w.follows(want)
}

// decide lets a decider take the task and answer.
func (w *world) decide(decisions ...schemas.DecisionAttributes) {
	w.t.Helper()
	w.do(Taken{})
	w.answer(decisions...)
}

func (w *world) answer(decisions ...schemas.DecisionAttributes) []Effect {
	w.t.Helper()
	reply := &schemas.DecisionReply{}
	for _, d := range decisions {
		reply.Decisions = append(reply.Decisions, schemas.Decide(d))
	}
	return w.do(Reply{Reply: reply})
}

func (w *world) report(id string, kind schemas.ReportKind, change ...func(*schemas.Report)) []Effect {
	w.t.Helper()
	a := w.activity(id)
	r := &schemas.Report{Kind: kind, Token: Token(w.s.Run, a.ScheduledID, a.Attempt)}
	for _, f := range change {
		f(r)
	}
	return w.do(Report{Report: r})
}

// activity returns an open activity.
func (w *world) activity(id string) *Activity {
	w.t.Helper()
	a := w.s.ActivityByID(id)
	if a == nil {
		w.t.Fatalf("activity %s is not open", id)
	}
	return a
}

// refused fails the test unless the effects are a dead letter of that reason and nothing else.
func (w *world) refused(effects []Effect, reason string) {
	w.t.Helper()
	if len(effects) != 1 {
		w.t.Fatalf("got effects %v, want one dead letter", effects)
	}
	if d, ok := effects[0].(Dead); !ok || d.Reason != reason || d.Details == "" {
		w.t.Fatalf("got %#v, want a dead letter with the reason %s and details", effects[0], reason)
	}
}

// last returns the last event, which must be of type A.
func last[A schemas.Attributes](w *world) A {
	w.t.Helper()
	a, ok := w.events[len(w.events)-1].Attributes.(A)
	if !ok {
		w.t.Fatalf("the last event is %s, want %T", w.events[len(w.events)-1].Type(), a)
	}
	return a
}

// of returns the effects of one kind.
func of[E Effect](effects []Effect) []E {
	var found []E
	for _, e := range effects {
		if e, ok := e.(E); ok {
			found = append(found, e)
		}
	}
	return found
}
