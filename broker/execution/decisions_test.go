package execution

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/schemas"
)

// One reply, one block: everything stands after its DeciderCompleted and names it; what is refused is refused by itself.
func TestDecisions(t *testing.T) { // S1-7, S1-9, S1-16, S1-17, S1-19, S1-20, S1-22, S1-23, S1-27
	long, control, notText := strings.Repeat("x", 300), "a\x00b", "\xff\xfe"
	work := func(id, typ, list string) *schemas.ScheduleActivity {
		return &schemas.ScheduleActivity{ActivityID: id, ActivityType: typ, List: list}
	}
	for _, tt := range []struct {
		name      string
		decisions []schemas.DecisionAttributes
		want      string // after DeciderCompleted
	}{
		{"none", nil, ""}, // S1-38
		{"an activity", list(activity("A")), "ActivityScheduled A"},
		{"a timer", list(timer("T", 5)), "TimerScheduled T"},
		{"a timer of no time", list(timer("T", 0)), "TimerScheduled T"},
		{"a marker wakes nobody", list(&schemas.RecordMarker{MarkerName: "m"}), "Marker m"},
		{"replay points wake nobody", list(&schemas.SetReplayPoint{Name: "1", Only: true}, &schemas.ResetReplayPoints{}), "ReplayPointSet 1; ReplayPointsReset"},
		{"a replay point without a name", list(&schemas.SetReplayPoint{}), "MarkerFailed INVALID_ATTRIBUTES; DeciderScheduled"},
		{"a long replay point", list(&schemas.SetReplayPoint{Name: long}), "MarkerFailed INVALID_ATTRIBUTES; DeciderScheduled"},
		{"a replay point before the end", list(&schemas.SetReplayPoint{Name: "end"}, &schemas.CompleteWorkflow{}), "ReplayPointSet end; WorkflowSuccess"},
		{"attributes", list(&schemas.SetAttributes{Attributes: map[string]string{"a": "b"}}), "AttributesSet"},
		{"in their order", list(timer("T", 5), activity("A"), &schemas.RecordMarker{MarkerName: "m"}, timer("S", 1)), "TimerScheduled T; ActivityScheduled A; Marker m; TimerScheduled S"},
		{"an id in use", list(activity("A"), activity("A"), activity("B")), "ActivityScheduled A; ActivityScheduleFailed A ACTIVITY_ID_ALREADY_IN_USE; ActivityScheduled B; DeciderScheduled"},
		{"a timer's id in use", list(timer("T", 5), timer("T", 6)), "TimerScheduled T; TimerScheduleFailed T TIMER_ID_ALREADY_IN_USE; DeciderScheduled"},
		{"a timer's id free again", list(timer("T", 5), &schemas.CancelTimer{TimerID: "T"}, timer("T", 6)), "TimerScheduled T; TimerCanceled T; TimerScheduled T"},
		{"an activity's id free again", list(activity("A"), &schemas.RequestCancelActivity{ActivityID: "A"}, activity("A")), "ActivityScheduled A; ActivityCancelRequested A; ActivityCanceled A; ActivityScheduled A; DeciderScheduled"},
		{"an activity and a timer of one name", list(activity("A"), timer("A", 5)), "ActivityScheduled A; TimerScheduled A"},
		{"no activity id", list(work("", "work", "")), "ActivityScheduleFailed  INVALID_ATTRIBUTES; DeciderScheduled"},
		{"a long activity id", list(work(long, "work", "")), "ActivityScheduleFailed " + long + " INVALID_ATTRIBUTES; DeciderScheduled"},
		{"a control character", list(work(control, "work", "")), "ActivityScheduleFailed " + control + " INVALID_ATTRIBUTES; DeciderScheduled"},
		{"an id that is no text", list(work(notText, "work", "")), "ActivityScheduleFailed " + notText + " INVALID_ATTRIBUTES; DeciderScheduled"},
		{"no activity type", list(work("A", "", "")), "ActivityScheduleFailed A INVALID_ATTRIBUTES; DeciderScheduled"},
		{"a list with a dot", list(work("A", "work", "a.b")), "ActivityScheduleFailed A INVALID_ATTRIBUTES; DeciderScheduled"},
		{"a retry without end", list(&schemas.ScheduleActivity{ActivityID: "A", ActivityType: "work", Retry: &schemas.RetryPolicy{BackoffCoefficient: math.Inf(1)}}), "ActivityScheduleFailed A INVALID_ATTRIBUTES; DeciderScheduled"},
		{"a retry with a coefficient beyond the limit", list(&schemas.ScheduleActivity{ActivityID: "A", ActivityType: "work", Retry: &schemas.RetryPolicy{BackoffCoefficient: 1000.5}}), "ActivityScheduleFailed A INVALID_ATTRIBUTES; DeciderScheduled"},
		{"a retry with a coefficient at the limit", list(&schemas.ScheduleActivity{ActivityID: "A", ActivityType: "work", Retry: &schemas.RetryPolicy{BackoffCoefficient: 1000}}), "ActivityScheduled A"},
		{"a retry that comes sooner each time", list(&schemas.ScheduleActivity{ActivityID: "A", ActivityType: "work", Retry: &schemas.RetryPolicy{BackoffCoefficient: 0.5}}), "ActivityScheduleFailed A INVALID_ATTRIBUTES; DeciderScheduled"},
		{"a retry with fewer attempts than none", list(&schemas.ScheduleActivity{ActivityID: "A", ActivityType: "work", Retry: &schemas.RetryPolicy{MaximumAttempts: -1}}), "ActivityScheduleFailed A INVALID_ATTRIBUTES; DeciderScheduled"},
		{"a retry that goes back", list(&schemas.ScheduleActivity{ActivityID: "A", ActivityType: "work", Retry: &schemas.RetryPolicy{BackoffCoefficient: -1}}), "ActivityScheduleFailed A INVALID_ATTRIBUTES; DeciderScheduled"},
		{"a retry that is no number", list(&schemas.ScheduleActivity{ActivityID: "A", ActivityType: "work", Retry: &schemas.RetryPolicy{BackoffCoefficient: math.NaN()}}), "ActivityScheduleFailed A INVALID_ATTRIBUTES; DeciderScheduled"},
		{"a limit that is negative", list(&schemas.ScheduleActivity{ActivityID: "A", ActivityType: "work", HeartbeatTimeout: -2}), "ActivityScheduleFailed A INVALID_ATTRIBUTES; DeciderScheduled"},
		{"a retry before its failure", list(&schemas.ScheduleActivity{ActivityID: "A", ActivityType: "work", Retry: &schemas.RetryPolicy{InitialInterval: -2}}), "ActivityScheduleFailed A INVALID_ATTRIBUTES; DeciderScheduled"},
		{"a lease that is over", list(&schemas.AcquireLock{Lock: "l", Lease: -2}), "LockRefused l INVALID_ATTRIBUTES; DeciderScheduled"},
		{"a child that is over", list(&schemas.StartChild{WorkflowID: "c", WorkflowType: "w", ExecutionStartToCloseTimeout: -2}), "ChildStartFailed; DeciderScheduled"},
		{"a continuation that is over", list(&schemas.ContinueAsNew{ActivityDefaults: &schemas.ActivityDefaults{StartToCloseTimeout: -2}}), "WorkflowCloseFailed INVALID_ATTRIBUTES; DeciderScheduled"},
		{"no timer id", list(timer("", 5)), "TimerScheduleFailed  INVALID_ATTRIBUTES; DeciderScheduled"},
		{"a long timer id", list(timer(long, 5)), "TimerScheduleFailed " + long + " INVALID_ATTRIBUTES; DeciderScheduled"},
		{"a control character in a timer", list(timer(control, 5)), "TimerScheduleFailed " + control + " INVALID_ATTRIBUTES; DeciderScheduled"},
		{"a timer without limit", list(&schemas.ScheduleTimer{TimerID: "T", StartToFireTimeout: schemas.Unlimited}), "TimerScheduleFailed T INVALID_ATTRIBUTES; DeciderScheduled"},
		{"no marker name", list(&schemas.RecordMarker{}), "MarkerFailed INVALID_ATTRIBUTES; DeciderScheduled"},
		{"a long marker name", list(&schemas.RecordMarker{MarkerName: long}), "MarkerFailed INVALID_ATTRIBUTES; DeciderScheduled"},
		{"a timer that never was", list(&schemas.CancelTimer{TimerID: "T"}), "TimerCancelFailed T TIMER_ID_UNKNOWN; DeciderScheduled"},
		{"a timer canceled twice", list(timer("T", 5), &schemas.CancelTimer{TimerID: "T"}, &schemas.CancelTimer{TimerID: "T"}), "TimerScheduled T; TimerCanceled T; TimerCancelFailed T TIMER_ID_UNKNOWN; DeciderScheduled"},
		{"refusals do not stop the rest", list(timer("", 1), activity("A"), &schemas.CancelTimer{TimerID: "T"}, timer("T", 1)), "TimerScheduleFailed  INVALID_ATTRIBUTES; ActivityScheduled A; TimerCancelFailed T TIMER_ID_UNKNOWN; TimerScheduled T; DeciderScheduled"},
		{"success", list(&schemas.CompleteWorkflow{}), "WorkflowSuccess"},
		{"failure", list(&schemas.FailWorkflow{Reason: "broke"}), "WorkflowFailed broke"},
		{"canceled", list(&schemas.CancelWorkflow{}), "WorkflowCanceled"},
		{"success with open work", list(&schemas.RecordMarker{MarkerName: "m"}, &schemas.CompleteWorkflow{}), "Marker m; WorkflowSuccess"},
		{"a refusal before the close", list(&schemas.CancelTimer{TimerID: "T"}, &schemas.CompleteWorkflow{}), "TimerCancelFailed T TIMER_ID_UNKNOWN; WorkflowCloseFailed UNHANDLED_DECISION; DeciderScheduled"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := decided(t, tt.decisions...)
			w.mark = 4
			w.follows(tt.want)
			for _, e := range w.events[4:] {
				if got, names := completedBy(e.Attributes); names && got != 4 {
					t.Fatalf("event %d names DeciderCompleted %d, want 4", e.ID, got)
				}
			}
		})
	}
}

func list(d ...schemas.DecisionAttributes) []schemas.DecisionAttributes { return d }

// completedBy reads the field that all events of a decision have, by its name on the wire.
func completedBy(a schemas.Attributes) (int64, bool) {
	var fields struct {
		DeciderCompletedEventID *int64 `json:"deciderCompletedEventId"`
	}
	b, err := schemas.MarshalJSON(a)
	if err != nil || schemas.Unmarshal(b, &fields) != nil || fields.DeciderCompletedEventID == nil {
		return 0, false
	}
	return *fields.DeciderCompletedEventID, true
}

func TestListUndefined(t *testing.T) { // S1-9, S1-48
	w := begin(t, func(q *schemas.StartRequest) { q.ActivityDefaults = nil })
	w.decide(activity("A"))
	w.follows("DeciderStarted; DeciderCompleted; ActivityScheduleFailed A DEFAULT_TASK_LIST_UNDEFINED; DeciderScheduled")
	if e := w.events[4].Attributes.(*schemas.ActivityScheduleFailed); e.Details == "" || e.ActivityType != "work" {
		t.Fatalf("got %+v, want the type and what to do", e)
	}
}

func TestOpenLimits(t *testing.T) {
	w := begin(t)
	w.c.OpenActivities, w.c.OpenTimers = 2, 1
	w.decide(activity("A"), activity("B"), activity("C"), timer("T", 5), timer("S", 5))
	w.follows("DeciderStarted; DeciderCompleted; ActivityScheduled A; ActivityScheduled B; ActivityScheduleFailed C OPEN_ACTIVITIES_LIMIT_EXCEEDED; " +
		"TimerScheduled T; TimerScheduleFailed S OPEN_TIMERS_LIMIT_EXCEEDED; DeciderScheduled")
	w.report("A", schemas.ReportSuccess)
	w.decide(activity("C"), &schemas.CancelTimer{TimerID: "T"}, timer("S", 5))
	w.follows("ActivityStarted A; ActivitySuccess A; DeciderStarted; DeciderCompleted; ActivityScheduled C; TimerCanceled T; TimerScheduled S")
	if c := (Config{}.Defaults()); c.OpenActivities != 1000 || c.OpenTimers != 1000 {
		t.Fatalf("got %d and %d by default, want 1,000 each", c.OpenActivities, c.OpenTimers)
	}
}

// A reply that is unusable as a whole leaves nothing but DeciderFailed, which names the decision by its place, from 1.
func TestReplyRefusedAsAWhole(t *testing.T) { // S1-27, S1-29, S1-30
	nowhere := func(name string) schemas.DecisionAttributes {
		return &schemas.UnknownDecision{Type: schemas.DecisionType(name)}
	}
	marker := &schemas.RecordMarker{MarkerName: "m"}
	type refusal struct {
		name      string
		decisions []schemas.DecisionAttributes
		place     string
	}
	tests := []refusal{
		{"unknown", list(marker, nowhere("Dance")), `decision 2: "Dance"`},
		{"no type", list(nowhere("")), "decision 1 "},
		{"nothing", list(marker, marker, nil), "decision 3 "},
		{"close not last", list(marker, &schemas.CompleteWorkflow{}, marker), "decision 2: CompleteWorkflow must be the last"},
		{"two closes", list(&schemas.FailWorkflow{}, &schemas.CompleteWorkflow{}), "decision 1: FailWorkflow must be the last"},
		{"close beside an activity", list(marker, activity("A"), &schemas.CompleteWorkflow{}), "decision 2: ScheduleActivity"},
		{"close beside a timer", list(timer("T", 1), marker, &schemas.CancelWorkflow{}), "decision 1: ScheduleTimer"},
	}
	for _, event := range schemas.EventTypes() { // a decider schedules and ends, it does not write events
		tests = append(tests, refusal{"event " + string(event), list(activity("A"), nowhere(string(event))), `decision 2: "` + string(event)})
	}
	for _, typ := range schemas.DecisionTypes() {
		a := decisionOf(t, typ)
		if !supported(a) {
			tests = append(tests, refusal{"not yet " + string(typ), list(a), "decision 1: "})
		}
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := begin(t)
			w.do(Taken{})
			w.effects = nil
			w.answer(tt.decisions...)
			w.follows("DeciderStarted; DeciderFailed INVALID_DECISION; DeciderScheduled")
			if got := w.events[3].Attributes.(*schemas.DeciderFailed); !strings.HasPrefix(got.Reason, tt.place) || got.StartedEventID != 3 || got.ScheduledEventID != 2 {
				t.Fatalf("got %+v, want a reason that begins with %q", got, tt.place)
			}
			if len(w.effects) != 0 || len(w.s.Activities)+len(w.s.Timers) != 0 {
				t.Fatalf("the refused reply had effects: %v", w.effects)
			}
		})
	}
}

func decisionOf(t *testing.T, typ schemas.DecisionType) schemas.DecisionAttributes {
	t.Helper()
	var d schemas.Decision
	if err := d.UnmarshalJSON([]byte(`{"type":"` + string(typ) + `"}`)); err != nil {
		t.Fatal(err)
	}
	return d.Attributes
}

// A close is refused if something came in that its decider has not seen, and the decider is asked again.
func TestUnhandledDecision(t *testing.T) { // S1-2, S1-3, S1-36, S1-42
	const refusedClose = "DeciderCompleted; WorkflowCloseFailed UNHANDLED_DECISION"
	began := []schemas.DecisionAttributes{
		&schemas.ScheduleActivity{ActivityID: "A", ActivityType: "work", StartToCloseTimeout: seconds(5), Retry: &schemas.RetryPolicy{MaximumAttempts: 2, NonRetryable: []string{"broke"}}},
		&schemas.ScheduleActivity{ActivityID: "B", ActivityType: "work", ScheduleToStartTimeout: seconds(8)}, timer("T", 7),
	}
	for _, tt := range []struct {
		name      string
		meanwhile func(*world)
		unhandled bool
	}{
		{"nothing", func(*world) {}, false},
		{"a signal", func(w *world) { w.do(Signal{Name: "x"}) }, true},
		{"a success", func(w *world) { w.report("B", schemas.ReportSuccess) }, true},
		{"a failure", func(w *world) { w.report("A", schemas.ReportFailed, func(r *schemas.Report) { r.Reason = "broke" }) }, true},
		{"a timer", func(w *world) { w.after(7 * sec); w.do(AlarmFired{}) }, true},
		{"a schedule-to-start timeout", func(w *world) { w.after(8 * sec); w.do(AlarmFired{}) }, true},
		{"a retry", func(w *world) { w.report("A", schemas.ReportFailed) }, false},
		{"a start", func(w *world) { w.report("B", schemas.ReportStarted) }, false},
		{"a heartbeat", func(w *world) { w.s.Beat(&schemas.Heartbeat{Token: Token("run-1", 5, 1)}, "", w.now) }, false},
		{"a pause", func(w *world) { w.do(Pause{Request: &schemas.ExecutionRequest{}}) }, false},
		{"a pause and a signal", func(w *world) { w.do(Pause{Request: &schemas.ExecutionRequest{}}); w.do(Signal{Name: "x"}) }, true},
		{"a pause and a resume", func(w *world) {
			w.do(Pause{Request: &schemas.ExecutionRequest{}})
			w.do(Resume{Request: &schemas.ExecutionRequest{}})
		}, true},
	} {
		for _, closing := range []schemas.DecisionAttributes{&schemas.CompleteWorkflow{}, &schemas.FailWorkflow{}, &schemas.CancelWorkflow{}} {
			t.Run(tt.name+" "+string(closing.DecisionType()), func(t *testing.T) {
				w := decided(t, began...)
				w.report("A", schemas.ReportStarted)
				w.do(Signal{Name: "go"})
				w.do(Taken{})
				tt.meanwhile(w)
				w.since()
				effects := w.answer(closing)
				got := w.since()
				if !tt.unhandled {
					if !w.s.Closed() || len(effects) != 1 || effects[0] != (Closed{}) {
						t.Fatalf("got %s and effects %v, want a close", got, effects)
					}
					return
				}
				if got != refusedClose || len(effects) != 0 {
					t.Fatalf("got %s and effects %v, want %s", got, effects, refusedClose)
				}
				if e := last[*schemas.WorkflowCloseFailed](w); e.Decision != closing.DecisionType() {
					t.Fatalf("got %+v, want the decision %s", e, closing.DecisionType())
				}
				if w.s.Paused != nil {
					w.do(Resume{Request: &schemas.ExecutionRequest{}})
				}
				w.decide(closing)
				if !w.s.Closed() {
					t.Fatalf("the run is still open: %s", w.since())
				}
			})
		}
	}
}

// What a decider has seen is no reason to refuse its close, even if it came while the run was paused.
func TestSeenWhilePaused(t *testing.T) { // S1-2, S1-37
	w := begin(t)
	w.do(Pause{Request: &schemas.ExecutionRequest{}})
	w.do(Signal{Name: "x"})
	w.do(Resume{Request: &schemas.ExecutionRequest{}})
	w.decide(&schemas.CompleteWorkflow{})
	w.follows("WorkflowPaused OPERATOR_INITIATED; Signal x; WorkflowResumed; DeciderStarted; DeciderCompleted; WorkflowSuccess")
}

// What stands beside a close that is refused is done all the same: a decider that says it again does it twice.
func TestBesideRefusedClose(t *testing.T) { // S1-37
	w := begin(t)
	w.do(Taken{})
	w.do(Signal{Name: "x"})
	w.answer(&schemas.SignalExternal{WorkflowID: "stats", SignalName: "sold"}, &schemas.CompleteWorkflow{})
	w.do(Taken{})
	w.answer(&schemas.SignalExternal{WorkflowID: "stats", SignalName: "sold"}, &schemas.CompleteWorkflow{})
	w.follows("DeciderStarted; Signal x; DeciderScheduled; DeciderCompleted; SignalExternalScheduled; WorkflowCloseFailed UNHANDLED_DECISION; " +
		"DeciderStarted; DeciderCompleted; SignalExternalScheduled; WorkflowSuccess")
}

// The decider that is refused gets to see what it had not, and the refusal.
func TestWindowAfterRefusedClose(t *testing.T) { // S1-37
	w := begin(t)
	w.do(Taken{})
	w.do(Signal{Name: "x"})
	w.answer(&schemas.CompleteWorkflow{})
	w.do(Taken{})
	w.follows("DeciderStarted; Signal x; DeciderScheduled; DeciderCompleted; WorkflowCloseFailed UNHANDLED_DECISION; DeciderStarted")
	if d := w.s.Decision; d.Previous != 3 || d.Started != 8 {
		t.Fatalf("the window is %d-%d, want 3-8", d.Previous, d.Started)
	}
}

// Each of these, and nothing else, is a reason to ask the decider.
func TestWhatWakes(t *testing.T) { // S1-5, S1-12, S1-22, S1-42
	start := []schemas.DecisionAttributes{
		&schemas.ScheduleActivity{ActivityID: "A", ActivityType: "work", HeartbeatTimeout: seconds(6), Retry: &schemas.RetryPolicy{MaximumAttempts: 2}},
		&schemas.ScheduleActivity{ActivityID: "B", ActivityType: "work", ScheduleToStartTimeout: seconds(8)}, timer("T", 5),
	}
	for _, tt := range []struct {
		name string
		do   func(*world)
		want string
	}{
		{"signal", func(w *world) { w.do(Signal{Name: "x"}) }, "Signal x; DeciderScheduled"},
		{"two signals", func(w *world) { w.do(Signal{Name: "x"}); w.do(Signal{Name: "y"}) }, "Signal x; DeciderScheduled; Signal y"},
		{"success", func(w *world) { w.report("A", schemas.ReportSuccess) }, "ActivitySuccess A; DeciderScheduled"},
		{"timer", func(w *world) { w.after(5 * sec); w.do(AlarmFired{}) }, "TimerExpired T; DeciderScheduled"},
		{"resume", func(w *world) {
			w.do(Pause{Request: &schemas.ExecutionRequest{}})
			w.do(Resume{Request: &schemas.ExecutionRequest{}})
		}, "WorkflowPaused OPERATOR_INITIATED; WorkflowResumed; DeciderScheduled"},
		{"not a start", func(w *world) { w.report("B", schemas.ReportStarted) }, "ActivityStarted B"},
		{"not a retry", func(w *world) { w.report("A", schemas.ReportFailed) }, "ActivityRetryScheduled A failed"},
		{"not an interrupt", func(w *world) { w.ask(Token("run-1", 5, 1), 3, "n", true) }, "ActivityInterrupted A; ActivityStarted A 2"},
		{"not a heartbeat", func(w *world) { w.s.Beat(&schemas.Heartbeat{Token: Token("run-1", 5, 1)}, "", w.now) }, ""},
		{"not a pause", func(w *world) { w.do(Pause{Request: &schemas.ExecutionRequest{}}) }, "WorkflowPaused OPERATOR_INITIATED"},
		{"not an early ring", func(w *world) { w.after(5*sec - 1); w.do(AlarmFired{}) }, ""},
		{"not a decider that nobody asked", func(w *world) { w.do(Taken{}) }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := decided(t, start...)
			w.report("A", schemas.ReportStarted, func(r *schemas.Report) { r.TaskSequence = 3 })
			w.since()
			tt.do(w)
			w.follows(tt.want)
		})
	}
}

// At most one decider runs, and at most one is pending after it.
func TestOneDeciderAtATime(t *testing.T) { // S1-5, S1-6, S1-35, S1-36
	w := begin(t)
	w.do(Taken{Identity: "d1"})
	w.do(Taken{Identity: "d2"})
	w.do(Signal{Name: "x"})
	w.do(Taken{Identity: "d2"})
	w.do(Signal{Name: "y"})
	w.follows("DeciderStarted; Signal x; DeciderScheduled; Signal y")
	if got := w.events[2].Attributes.(*schemas.DeciderStarted); got.Identity != "d1" || got.ScheduledEventID != 2 {
		t.Fatalf("got %+v", got)
	}
	w.answer()
	w.refused(w.answer(activity("A")), DeadLateDecision) // answered twice
	w.do(Taken{})
	w.do(Signal{Name: "z"})
	w.follows("DeciderCompleted; DeciderStarted; Signal z; DeciderScheduled")
	if got := w.events[7].Attributes.(*schemas.DeciderStarted); got.ScheduledEventID != 5 {
		t.Fatalf("got %+v, want the DeciderScheduled of event 5", got)
	}
}

func TestWhatADecisionLeaves(t *testing.T) { // S1-7, P-11
	w := begin(t, func(q *schemas.StartRequest) { q.Attributes = map[string]string{"color": "red", "size": "1"} })
	began := w.s.Start.Attributes
	w.do(Taken{})
	w.do(Reply{Digest: "d1", Reply: &schemas.DecisionReply{Context: schemas.Text("c1"), Identity: "me", Decisions: []schemas.Decision{
		schemas.Decide(&schemas.SetAttributes{Attributes: map[string]string{"color": "", "shape": "round"}}),
	}}})
	want := &schemas.DeciderCompleted{ScheduledEventID: 2, StartedEventID: 3, ExecutionContext: schemas.Text("c1"), Identity: "me", ReplyDigest: "d1"}
	if diff := cmp.Diff(want, w.events[3].Attributes); diff != "" {
		t.Fatal(diff)
	}
	if w.s.Base != (schemas.DecisionBase{CompletedID: 4, Digest: "d1"}) || string(w.s.Context) != "c1" {
		t.Fatalf("got base %+v and context %s", w.s.Base, w.s.Context)
	}
	if diff := cmp.Diff(map[string]string{"size": "1", "shape": "round"}, w.s.Attributes); diff != "" {
		t.Fatal(diff)
	}
	if diff := cmp.Diff(map[string]string{"color": "red", "size": "1"}, began); diff != "" {
		t.Fatalf("the event has changed: %s", diff)
	}
	w.do(Signal{Name: "x"})
	w.do(Taken{})
	w.do(Refuse{Cause: schemas.CauseInvalidDecision})
	if string(w.s.Context) != "c1" || w.s.Base.CompletedID != 4 {
		t.Fatal("a failed decision has left something")
	}
}

func TestClosingEvents(t *testing.T) { // S1-2, S1-3, S1-44
	for _, tt := range []struct {
		decision schemas.DecisionAttributes
		want     schemas.Attributes
		status   schemas.Status
	}{
		{&schemas.CompleteWorkflow{Result: schemas.Text("r")}, &schemas.WorkflowSuccess{Result: schemas.Text("r"), DeciderCompletedEventID: 4}, schemas.StatusCompleted},
		{&schemas.FailWorkflow{Reason: "broke", Details: schemas.Text("d")}, &schemas.WorkflowFailed{Reason: "broke", Details: schemas.Text("d"), DeciderCompletedEventID: 4}, schemas.StatusFailed},
		{&schemas.CancelWorkflow{Details: schemas.Text("d")}, &schemas.WorkflowCanceled{Details: schemas.Text("d"), DeciderCompletedEventID: 4}, schemas.StatusCanceled},
	} {
		w := decided(t, tt.decision)
		if diff := cmp.Diff(tt.want, w.events[4].Attributes); diff != "" {
			t.Fatal(diff)
		}
		if w.s.Status != tt.status || w.s.Close == nil || w.s.Close.ID != 5 || len(of[Closed](w.effects)) != 1 {
			t.Fatalf("status %s, close %v, effects %v", w.s.Status, w.s.Close, w.effects)
		}
	}
}
