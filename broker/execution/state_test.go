package execution

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/schemas"
)

func TestStart(t *testing.T) { // S1-1, S1-31, S1-48
	q := &schemas.StartRequest{
		WorkflowID: "order-1", Run: "run-1", Type: "order", TypeVersion: "2", Input: schemas.Text("in"), RequestID: "r", Identity: "me",
		ExecutionStartToCloseTimeout: seconds(1), TaskStartToCloseTimeout: seconds(2), TaskScheduleToStartTimeout: seconds(3), TaskPriority: 4,
		ActivityDefaults: &schemas.ActivityDefaults{List: "main"}, ChildPolicy: schemas.ChildAbandon, TagList: []string{"a"}, Attributes: map[string]string{"k": "v"},
	}
	w := begin(t, func(p *schemas.StartRequest) { *p = *q })
	want := []schemas.Event{
		{ID: 1, Time: w.now, Attributes: &schemas.WorkflowStarted{
			WorkflowID: "order-1", Run: "run-1", WorkflowType: "order", WorkflowTypeVersion: "2", Input: schemas.Text("in"), RequestID: "r", StartMode: "Manual", Identity: "me",
			ExecutionStartToCloseTimeout: seconds(1), TaskStartToCloseTimeout: seconds(2), TaskScheduleToStartTimeout: seconds(3), TaskPriority: 4,
			ActivityDefaults: &schemas.ActivityDefaults{List: "main"}, ChildPolicy: schemas.ChildAbandon, TagList: []string{"a"}, Attributes: map[string]string{"k": "v"},
		}},
		{ID: 2, Time: w.now, Attributes: &schemas.DeciderScheduled{StartToCloseTimeout: seconds(2), ScheduleToStartTimeout: seconds(3), TaskPriority: 4, Attempt: 1}},
	}
	if diff := cmp.Diff(want, w.events); diff != "" {
		t.Fatal(diff)
	}
	if got, wanted := w.s.WantsDecider(&w.c); !wanted || got != (Wanted{StartedID: 3}) {
		t.Fatalf("got %+v (%v), want event 3 at once", got, wanted)
	}
	w.refused(w.do(Start{Request: q}), DeadInvalid) // a run begins once
	if w.s.LastID != 2 {
		t.Fatalf("got event %d", w.s.LastID)
	}
}

func TestWantsDecider(t *testing.T) { // S1-6, S1-35, S1-37
	w := begin(t)
	want := func(want Wanted, wanted bool) {
		t.Helper()
		if got, ok := w.s.WantsDecider(&w.c); got != want || ok != wanted {
			t.Fatalf("got %+v (%v), want %+v (%v)", got, ok, want, wanted)
		}
	}
	w.do(Taken{})
	want(Wanted{StartedID: 3, Started: true}, true) // an owner who takes over asks the same again
	w.do(Signal{Name: "x"})
	want(Wanted{StartedID: 3, Started: true}, true)
	w.answer()
	want(Wanted{StartedID: 7}, true)
	w.do(Signal{Name: "y"})
	want(Wanted{StartedID: 8}, true)
	w.decide()
	want(Wanted{}, false)
}

// The history does not go back when the clock does; what is due counts from the later of the two.
func TestClockGoesBack(t *testing.T) {
	w := begin(t)
	first := w.now
	w.now -= schemas.Timestamp(time.Hour)
	w.decide(timer("T", 5))
	w.do(AlarmFired{})
	for _, e := range w.events {
		if e.Time != first {
			t.Fatalf("event %d is of %s, want %s", e.ID, e.Time, first)
		}
	}
	if got := w.s.NextDue(&w.c); got != first.Add(seconds(5)) {
		t.Fatalf("next due %s, want %s", got, first.Add(seconds(5)))
	}
	w.do(Signal{Name: "x"})
	w.decide(&schemas.ScheduleActivity{ActivityID: "A", ActivityType: "work", Retry: &schemas.RetryPolicy{}})
	w.report("A", schemas.ReportFailed)
	if got := last[*schemas.ActivityRetryScheduled](w).NextTime; got != first.Add(seconds(1)) {
		t.Fatalf("the retry comes at %s, want %s", got, first.Add(seconds(1)))
	}
}

func TestActivitiesInOrder(t *testing.T) {
	w := decided(t, activity("C"), activity("A"), activity("B"))
	for range 20 { // a map is walked in any order
		var got []string
		for _, a := range w.s.OpenActivities() {
			got = append(got, a.Scheduled.ActivityID)
		}
		if diff := cmp.Diff([]string{"C", "A", "B"}, got); diff != "" {
			t.Fatal(diff)
		}
	}
	w.report("A", schemas.ReportStarted)
	if diff := cmp.Diff([]Effect{Dispatch{ScheduledID: 5}, Dispatch{ScheduledID: 7}}, w.s.OpenEffects(w.now)); diff != "" {
		t.Fatal(diff)
	}
	if w.s.ActivityByID("D") != nil || New("a", "b").ActivityByID("A") != nil {
		t.Fatal("an activity that was never scheduled is open")
	}
}

// Every due time counts from the server's time of the record that set it; a ring that is one nanosecond early does nothing.
func TestRebase(t *testing.T) { // P-15
	const lag = 700 * time.Millisecond // between an event and the server's time of its record
	for _, tt := range []struct {
		name  string
		start func(*schemas.StartRequest)
		do    func(*world) // its last step sets what is due
		rings time.Duration
		want  string
	}{
		{
			"the run", func(q *schemas.StartRequest) { q.ExecutionStartToCloseTimeout = seconds(5) },
			func(*world) {}, 5 * sec, "WorkflowTimedOut",
		},
		{"a timer", nil, func(w *world) { w.decide(timer("T", 5)) }, 5 * sec, "TimerExpired T; DeciderScheduled"},
		{"timers", nil, func(w *world) { w.decide(timer("T", 5), timer("S", 5), timer("R", 5)) }, 5 * sec, "TimerExpired T; DeciderScheduled; TimerExpired S; TimerExpired R"},
		{
			"schedule-to-start", nil,
			func(w *world) {
				w.decide(&schemas.ScheduleActivity{ActivityID: "A", ActivityType: "work", ScheduleToStartTimeout: seconds(5)})
			}, 5 * sec, "ActivityScheduledTimeout A; DeciderScheduled",
		},
		{
			"schedule-to-close", nil,
			func(w *world) {
				w.decide(&schemas.ScheduleActivity{ActivityID: "A", ActivityType: "work", ScheduleToCloseTimeout: seconds(5)})
			}, 5 * sec, "ActivityTimedOut A SCHEDULE_TO_CLOSE; DeciderScheduled",
		},
		{
			"start-to-close", nil,
			func(w *world) {
				w.decide(&schemas.ScheduleActivity{ActivityID: "A", ActivityType: "work", StartToCloseTimeout: seconds(5)})
				w.commit(lag)
				w.report("A", schemas.ReportStarted)
			}, 5 * sec, "ActivityTimedOut A START_TO_CLOSE; DeciderScheduled",
		},
		{
			"heartbeat", nil,
			func(w *world) {
				w.decide(&schemas.ScheduleActivity{ActivityID: "A", ActivityType: "work", HeartbeatTimeout: seconds(5)})
				w.commit(lag)
				w.report("A", schemas.ReportStarted)
			}, 5 * sec, "ActivityTimedOut A HEARTBEAT; DeciderScheduled",
		},
		{
			"a decider that runs", nil, func(w *world) { w.do(Taken{}) }, 10 * sec,
			"DeciderTimedOut START_TO_CLOSE; DeciderScheduled",
		},
		{
			"a decider that never ran", func(q *schemas.StartRequest) { q.TaskScheduleToStartTimeout = seconds(5) },
			func(*world) {}, 5 * sec, "DeciderTimedOut SCHEDULE_TO_START; DeciderScheduled",
		},
		{
			"a decision that waited", func(q *schemas.StartRequest) { q.TaskScheduleToStartTimeout = seconds(5) },
			func(w *world) { w.do(Taken{}); w.do(Signal{Name: "x"}); w.commit(lag); w.answer() },
			5 * sec, "DeciderTimedOut SCHEDULE_TO_START; DeciderScheduled",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := begin(t, func(q *schemas.StartRequest) {
				if tt.start != nil {
					tt.start(q)
				}
			})
			tt.do(w)
			w.commit(lag)
			w.since()
			w.rings(tt.rings, tt.want)
		})
	}
}

// commit gives the events since the last commit the server's time, lag later.
func (w *world) commit(lag time.Duration) {
	w.after(lag)
	w.s.Rebase(w.committed+1, w.now)
	w.committed, w.rebased = w.s.LastID, true
}

func TestRebaseStartDelay(t *testing.T) { // P-15
	w := decided(t, &schemas.ScheduleActivity{ActivityID: "A", ActivityType: "work", StartDelay: seconds(5)})
	w.commit(sec)
	w.rings(5*sec, "")
	if got := of[Dispatch](w.effects); len(got) != 1 {
		t.Fatalf("got %v, want the task", got)
	}
	w.s.Rebase(1, w.now.Add(seconds(9))) // the task is on its list; nothing delays it again
	if got := w.activity("A").NotBefore; got != 0 {
		t.Fatalf("got %s, want no delay", got)
	}
}

// A retry names its instant in its event, which no record moves.
func TestRebaseRetry(t *testing.T) { // P-15
	w := working(t, schemas.ScheduleActivity{Retry: &schemas.RetryPolicy{}})
	w.report("A", schemas.ReportFailed)
	next := last[*schemas.ActivityRetryScheduled](w).NextTime
	w.commit(sec / 2)
	if got := w.s.NextDue(&w.c); got != next {
		t.Fatalf("next due %s, want %s", got, next)
	}
}

// A backoff counts from the record of the failure.
func TestRebaseBackoff(t *testing.T) { // P-15
	w := begin(t)
	w.do(Taken{})
	w.do(Signal{Name: "x"})
	w.commit(sec)
	w.do(Refuse{Cause: schemas.CauseDeciderError})
	w.commit(sec)
	if in, ok := w.wanted(); !ok || in != 100*time.Millisecond {
		t.Fatalf("asked again in %s (%v), want in 100ms", in, ok)
	}
}

// A record moves what its own events have set, and nothing else.
func TestRebaseLeavesWhatWasThere(t *testing.T) { // P-15
	w := decided(t, timer("T", 5), activity("A"))
	w.report("A", schemas.ReportStarted)
	w.do(Signal{Name: "x"}) // a decider is wanted
	old := w.restored()
	w.s.Rebase(w.s.LastID+1, w.now.Add(seconds(100)))
	if diff := sameState(old, w.s); diff != "" {
		t.Fatal(diff)
	}
}

// A snapshot at any point is as good as the history before it.
func TestSnapshot(t *testing.T) { // S1-43
	w := begin(t, func(q *schemas.StartRequest) {
		q.Attributes = map[string]string{"k": "v"}
		q.Input = schemas.Text("in")
	})
	steps := []func(){
		func() { w.do(Taken{}) },
		func() {
			w.answer(activity("A"), timer("T", 60), &schemas.SetAttributes{Attributes: map[string]string{"k": "", "l": "w"}},
				&schemas.ScheduleActivity{ActivityID: "B", ActivityType: "work", StartDelay: seconds(3), Retry: &schemas.RetryPolicy{NonRetryable: []string{"x"}}})
		},
		func() {
			w.report("A", schemas.ReportStarted, func(r *schemas.Report) { r.Nonce, r.TaskSequence = "n", 7 })
		},
		func() { w.do(Signal{Name: "x"}) },
		func() { w.do(Taken{}) },
		func() { w.do(Refuse{Cause: schemas.CauseDeciderError}) },
		func() { pause(w) },
		func() { w.do(Signal{Name: "y"}) },
		func() { resume(w) },
		func() { w.do(Taken{}) },
		func() {
			w.do(Reply{Digest: "d", Reply: &schemas.DecisionReply{Context: schemas.Text("c"), Decisions: []schemas.Decision{schemas.Decide(&schemas.RequestCancelActivity{ActivityID: "A"})}}})
		},
		func() { w.report("A", schemas.ReportCanceled) },
		func() { w.decide(&schemas.CompleteWorkflow{Result: schemas.Text("r")}) },
	}
	for _, step := range steps {
		step()
		restored := w.restored()
		if diff := sameState(restored, w.s); diff != "" {
			t.Fatalf("after event %d: %s", w.s.LastID, diff)
		}
		w.s = restored // and carry on with it
	}
	if !w.s.Closed() {
		t.Fatal("the run is open")
	}
}

func TestRestoreOfAnOlderSnapshot(t *testing.T) {
	old := New("o", "r1")
	old.Apply(schemas.Event{ID: 1, Time: 5, Attributes: &schemas.WorkflowStarted{WorkflowID: "o", Run: "r1"}})
	old.Rebase(1, 7)
	old.StartedAt = 0 // it holds no time of the event itself
	b, err := old.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	s, err := Restore(b)
	if err != nil {
		t.Fatal(err)
	}
	if s.StartedAt != 7 {
		t.Fatalf("it was started at %d, want 7, which is next to it", s.StartedAt)
	}
}

func TestRestoreRefuses(t *testing.T) {
	for _, tt := range []struct{ name, snapshot string }{
		{"nothing", ""},
		{"noise", "noise"},
		{"another shape", `{"activities":[]}`},
		{"events without a start", `{"lastId":7}`},
		{"an empty activity", `{"start":{},"lastId":7,"activities":{"5":null}}`},
		{"an activity without its event", `{"start":{},"lastId":7,"activities":{"5":{"attempt":1}}}`},
		{"an empty timer", `{"start":{},"lastId":7,"timers":{"T":null}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := Restore([]byte(tt.snapshot))
			if err == nil {
				t.Fatalf("got %+v, want an error", s)
			}
			if !errors.Is(err, schemas.ErrEmpty) && !errors.Is(err, schemas.ErrVersion) && !errors.Is(err, schemas.ErrMalformed) {
				t.Fatalf("got %v, want one of the errors of schemas", err)
			}
		})
	}
}

// A history may hold events that Step does not write: those of other parts, of later versions, and of an operator.
func TestApplyWhatOthersWrote(t *testing.T) {
	for _, tt := range []struct {
		a      schemas.Attributes
		status schemas.Status
	}{
		{&schemas.WorkflowTerminated{}, schemas.StatusTerminated},
		{&schemas.WorkflowContinuedAsNew{}, schemas.StatusContinuedAsNew},
		{&schemas.WorkflowCancelRequested{}, schemas.StatusOpen},
		{&schemas.Unknown{Type: "Danced"}, schemas.StatusOpen},
		{&schemas.ChildStarted{}, schemas.StatusOpen},
		{&schemas.ActivityStarted{ScheduledEventID: 99}, schemas.StatusOpen},
		{&schemas.ActivityInterrupted{ScheduledEventID: 99}, schemas.StatusOpen},
		{&schemas.ActivityCancelRequested{ScheduledEventID: 99}, schemas.StatusOpen},
		{&schemas.ActivitySuccess{ScheduledEventID: 99}, schemas.StatusOpen},
		{&schemas.TimerExpired{TimerID: "nobody's"}, schemas.StatusOpen},
	} {
		t.Run(string(tt.a.EventType()), func(t *testing.T) {
			c, s := Config{}.Defaults(), New("order-1", "run-1")
			s.Step(&c, Start{Request: &schemas.StartRequest{WorkflowID: "order-1", Run: "run-1", Type: "order"}}, 1)
			before := s.NextDue(&c)
			s.Apply(schemas.Event{ID: 3, Time: 2, Attributes: tt.a})
			if s.LastID != 3 || s.LastTime != 2 || s.Status != tt.status || s.Closed() != tt.status.Closed() {
				t.Fatalf("got event %d of %d, status %s; want 3, 2, %s", s.LastID, s.LastTime, s.Status, tt.status)
			}
			if due := s.NextDue(&c); !s.Closed() && due != before {
				t.Fatalf("next due %d, want %d", due, before)
			}
			if _, asked := tt.a.(*schemas.WorkflowCancelRequested); s.CancelRequested != asked {
				t.Fatalf("cancel requested is %v, want %v", s.CancelRequested, asked)
			}
		})
	}
}

// An empty timer in a snapshot is one of its holes.
func TestTimersInASnapshot(t *testing.T) {
	w := begin(t)
	w.decide(&schemas.ScheduleTimer{TimerID: "T", StartToFireTimeout: schemas.Seconds(5)})
	s := w.restored()
	if d := cmp.Diff(w.s.Timers, s.Timers); d != "" || len(s.Timers) != 1 {
		t.Fatalf("(-before +restored):\n%s", d)
	}
	for _, body := range []string{`{"timers":{"T":null}}`, `{"timers":{"T":{}}}`} {
		if _, err := Restore([]byte(body)); !errors.Is(err, schemas.ErrMalformed) {
			t.Errorf("%s: got %v, want that the timer is empty", body, err)
		}
	}
}

// What an owner works with is in a snapshot or it is none.
func TestHolesInASnapshot(t *testing.T) {
	for _, body := range []string{
		`{"activities":{"5":null}}`, `{"activities":{"5":{}}}`, `{"children":{"5":null}}`, `{"children":{"5":{}}}`, `{"locks":{"=.L":null}}`,
		`{"locks":{"=.L":{"lock":"M"}}}`, `{"stateRequests":{"5":null}}`, `{"stateRequests":{"5":{"eventId":5}}}`, `{"externals":{"5":null}}`,
		`{"externals":{"5":{}}}`, `{"externals":{"5":{"signal":{},"cancel":{}}}}`, `{"lastId":3}`,
	} {
		if s, err := Restore([]byte(body)); !errors.Is(err, schemas.ErrMalformed) {
			t.Errorf("%s: got %+v, %v; want that it has a hole", body, s, err)
		}
	}
}
