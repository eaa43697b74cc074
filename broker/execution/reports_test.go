package execution

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/schemas"
)

func TestOutcomes(t *testing.T) { // S1-10, S1-11, S1-28, S1-40, S1-42
	detail := func(r *schemas.Report) {
		r.Reason, r.Details, r.Result = "no card", schemas.Text("d"), schemas.Text("r")
	}
	for _, tt := range []struct {
		kind schemas.ReportKind
		want string
		last schemas.Attributes
	}{
		{
			schemas.ReportSuccess, "ActivitySuccess A; DeciderScheduled",
			&schemas.ActivitySuccess{ScheduledEventID: 5, StartedEventID: 6, Result: schemas.Text("r")},
		},
		{
			schemas.ReportFailed, "ActivityFailed A no card; DeciderScheduled",
			&schemas.ActivityFailed{ScheduledEventID: 5, StartedEventID: 6, Reason: "no card", Details: schemas.Text("d")},
		},
		{ // nobody asked it to
			schemas.ReportCanceled, "ActivityFailed A canceled; DeciderScheduled",
			&schemas.ActivityFailed{ScheduledEventID: 5, StartedEventID: 6, Reason: "canceled", Details: schemas.Text("d")},
		},
	} {
		for _, announced := range []bool{true, false} {
			name, began := string(tt.kind), ""
			if !announced { // the start is in the outcome
				name, began = name+" without started", "ActivityStarted A; "
			}
			t.Run(name, func(t *testing.T) {
				w := decided(t, activity("A"))
				if announced {
					w.report("A", schemas.ReportStarted)
				}
				w.since()
				w.report("A", tt.kind, detail)
				w.follows(began + tt.want)
				if diff := cmp.Diff(tt.last, w.events[len(w.events)-2].Attributes); diff != "" {
					t.Fatal(diff)
				}
				if n := len(w.s.Activities); n != 0 || w.s.ActivityByID("A") != nil {
					t.Fatalf("%d activities are open, want none", n)
				}
			})
		}
	}
}

// What is reported of a started activity is the delivery; the first report of a start counts.
func TestStarted(t *testing.T) { // S1-10, P-7
	w := decided(t, activity("A"))
	delivery := func(nonce string, seq uint64) func(*schemas.Report) {
		return func(r *schemas.Report) { r.Identity, r.Nonce, r.TaskSequence = "worker-"+nonce, nonce, seq }
	}
	w.report("A", schemas.ReportStarted, delivery("n1", 41))
	w.report("A", schemas.ReportStarted, delivery("n1", 41))
	w.report("A", schemas.ReportStarted, delivery("n2", 42))
	w.follows("ActivityStarted A")
	want := &schemas.ActivityStarted{ScheduledEventID: 5, Attempt: 1, Identity: "worker-n1", TaskSequence: 41, Nonce: "n1"}
	if diff := cmp.Diff(want, last[*schemas.ActivityStarted](w)); diff != "" {
		t.Fatal(diff)
	}
}

// The announcement of a start goes by the inbox, and the outcome straight to the owner: it may come first, and the next attempt
// have begun.
func TestAnnouncementThatItsOutcomeHasOvertaken(t *testing.T) {
	a := activity("A")
	a.Retry = &schemas.RetryPolicy{InitialInterval: schemas.Seconds(1)}
	w := decided(t, a)
	w.report("A", schemas.ReportFailed)
	w.since()
	effects := w.report("A", schemas.ReportStarted, func(r *schemas.Report) { r.Token = "run-1.5.1" })
	w.follows("")
	if len(effects) != 0 {
		t.Errorf("got %v, want that nothing comes of it", effects)
	}
}

// An outcome that brings its start says how long ago the work began.
func TestElapsed(t *testing.T) {
	for _, tt := range []struct {
		name    string
		elapsed schemas.Duration
		ago     time.Duration // of ActivityStarted
	}{
		{"not told", 0, 0},
		{"three seconds", seconds(3), 3 * sec},
		{"longer than the activity is scheduled", seconds(60), 10 * sec}, // the history does not go back
		{"nonsense", schemas.Unlimited, 0},
		{"endless", 1<<63 - 1, 10 * sec},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := decided(t, activity("A"))
			w.after(10 * sec)
			w.report("A", schemas.ReportSuccess, func(r *schemas.Report) { r.Elapsed = tt.elapsed })
			w.follows("ActivityStarted A; ActivitySuccess A; DeciderScheduled")
			started, success := w.events[5], w.events[6]
			if got := success.Time.Sub(started.Time); got != tt.ago || success.Time != w.now {
				t.Fatalf("it ran %s and ended %s ago; want %s and now", got, w.now.Sub(success.Time), tt.ago)
			}
		})
	}
}

// What comes too late, for another attempt, or for another run leaves no trace in the history.
func TestReportsThatAreRefused(t *testing.T) { // S1-28, S1-39
	token := func(s string) func(*schemas.Report) { return func(r *schemas.Report) { r.Token = s } }
	outcomes := []schemas.ReportKind{schemas.ReportSuccess, schemas.ReportFailed, schemas.ReportCanceled}
	for _, tt := range []struct {
		name   string
		kinds  []schemas.ReportKind
		change func(*schemas.Report)
		reason string
	}{
		{"another attempt", outcomes, token("run-1.5.2"), DeadStaleToken},
		{"an attempt before the first", outcomes, token("run-1.5.0"), DeadStaleToken},
		{"another attempt started", []schemas.ReportKind{schemas.ReportStarted}, token("run-1.5.2"), DeadStaleToken},
		{"another run", outcomes, token("run-0.5.1"), DeadStaleToken},
		{"no such activity", outcomes, token("run-1.4.1"), DeadClosedActivity},
		{"no token", outcomes, token(""), DeadStaleToken},
		{"half a token", outcomes, token("run-1.5"), DeadStaleToken},
		{"a token with text for a number", outcomes, token("run-1.five.1"), DeadStaleToken},
		{"a token without run", outcomes, token(".5.1"), DeadStaleToken},
		{"no kind", []schemas.ReportKind{""}, token("run-1.5.1"), DeadInvalid},
		{"a kind that is none", []schemas.ReportKind{"Success", "heartbeat", "timedOut", "interrupted", "ActivitySuccess"}, token("run-1.5.1"), DeadInvalid},
	} {
		for _, kind := range tt.kinds {
			t.Run(tt.name+" "+string(kind), func(t *testing.T) {
				for _, started := range []bool{false, true} {
					w := decided(t, activity("A"))
					if started {
						w.report("A", schemas.ReportStarted)
					}
					w.since()
					w.refused(w.report("A", kind, tt.change), tt.reason)
					w.follows("")
				}
			})
		}
	}
}

func TestReportsAfterTheClose(t *testing.T) { // S1-13, S1-39
	for _, how := range []func(*world){
		func(w *world) { w.report("A", schemas.ReportSuccess) },
		func(w *world) { w.report("A", schemas.ReportFailed) },
		func(w *world) { w.after(time.Hour); w.do(AlarmFired{}) },
	} {
		w := working(t, schemas.ScheduleActivity{})
		token := Token("run-1", w.activity("A").ScheduledID, 1)
		how(w)
		w.since()
		for _, kind := range []schemas.ReportKind{schemas.ReportSuccess, schemas.ReportFailed, schemas.ReportCanceled} {
			w.refused(w.do(Report{Report: &schemas.Report{Kind: kind, Token: token}}), DeadClosedActivity)
		}
		if effects := w.do(Report{Report: &schemas.Report{Kind: schemas.ReportStarted, Token: token}}); len(effects) != 0 {
			t.Fatalf("got %v; a start that is told twice, or late, is no news", effects)
		}
		w.follows("")
		// The id is free again, and the old token is not the new one's.
		w.decide(activity("A"))
		w.refused(w.do(Report{Report: &schemas.Report{Kind: schemas.ReportSuccess, Token: token}}), DeadClosedActivity)
	}
}

func TestToken(t *testing.T) {
	for _, run := range []string{"01JBD3W8Q2", "run.with.dots", "a", "läuft"} {
		token := Token(run, 1234, 7)
		gotRun, id, attempt, err := ParseToken(token)
		if err != nil || gotRun != run || id != 1234 || attempt != 7 {
			t.Fatalf("%s: got %s %d %d, %v", token, gotRun, id, attempt, err)
		}
	}
	for _, bad := range []string{"", ".", "..", "run", "run.1", "run.1.", "run..1", ".1.1", "run.1.x", "run.99999999999999999999.1", "run.1.1 "} {
		if _, _, _, err := ParseToken(bad); err == nil || !strings.Contains(err.Error(), "token") {
			t.Fatalf("%q: got error %v, want one about the token", bad, err)
		}
	}
}

// A heartbeat writes no event and wakes nobody: it moves the deadline and leaves its details for the timeout.
func TestHeartbeat(t *testing.T) { // S1-12, S1-13, S1-32
	w := working(t, schemas.ScheduleActivity{HeartbeatTimeout: seconds(10)})
	token := Token("run-1", w.activity("A").ScheduledID, 1)
	beat := func(details string) schemas.BeatAnswer {
		return w.s.Beat(&schemas.Heartbeat{Token: token, Details: schemas.Text(details)}, "", w.now)
	}
	w.after(9 * sec)
	if got := beat("one"); got != (schemas.BeatAnswer{}) {
		t.Fatalf("got %+v, want nothing to tell", got)
	}
	w.after(9 * sec)
	w.do(AlarmFired{})
	if got := beat("two"); got != (schemas.BeatAnswer{}) {
		t.Fatalf("got %+v, want nothing to tell", got)
	}
	before := w.now
	w.now -= schemas.Timestamp(5 * sec)
	beat("two") // overtaken on its way: the deadline does not go back
	w.now = before
	w.rings(10*sec, "ActivityTimedOut A HEARTBEAT; DeciderScheduled")
	if got := w.events[len(w.events)-2].Attributes.(*schemas.ActivityTimedOut).Details; string(got) != "two" {
		t.Fatalf("got details %q, want those of the last heartbeat", got)
	}
	if got := beat("three"); !got.Gone || got.Reason == "" {
		t.Fatalf("got %+v, want gone", got)
	}
}

func TestHeartbeatAnswers(t *testing.T) { // S1-15, S1-39
	w := working(t, schemas.ScheduleActivity{HeartbeatTimeout: seconds(10)})
	beat := func(token string) schemas.BeatAnswer { return w.s.Beat(&schemas.Heartbeat{Token: token}, "", w.now) }
	for _, token := range []string{"", "nonsense", "run-0.5.1", "run-1.5.2", "run-1.4.1"} {
		if got := beat(token); !got.Gone || got.Reason == "" {
			t.Fatalf("token %q: got %+v, want gone with a reason", token, got)
		}
	}
	if w.activity("A").LastBeat != 0 {
		t.Fatal("a stranger's heartbeat counts")
	}
	w.do(Signal{Name: "x"})
	w.decide(&schemas.RequestCancelActivity{ActivityID: "A"})
	if got := beat("run-1.5.1"); got != (schemas.BeatAnswer{CancelRequested: true}) {
		t.Fatalf("got %+v, want the cancel request", got)
	}
	w.do(Signal{Name: "y"})
	w.decide(&schemas.CompleteWorkflow{})
	if got := beat("run-1.5.1"); !got.Gone {
		t.Fatalf("got %+v, want gone: the workflow is closed", got)
	}
}

// An activity that has not started is canceled at once; a running one learns of it by its heartbeat and may agree or not.
func TestCancelActivity(t *testing.T) { // S1-15, S1-42
	cancel := &schemas.RequestCancelActivity{ActivityID: "A"}
	t.Run("not started", func(t *testing.T) {
		w := decided(t, activity("A"))
		w.do(Signal{Name: "x"})
		w.decide(cancel)
		w.follows("Signal x; DeciderScheduled; DeciderStarted; DeciderCompleted; ActivityCancelRequested A; ActivityCanceled A; DeciderScheduled")
		want := &schemas.ActivityCanceled{ScheduledEventID: 5, LatestCancelRequestedEventID: 10}
		if diff := cmp.Diff(want, w.events[10].Attributes); diff != "" {
			t.Fatal(diff)
		}
		w.refused(w.do(Report{Report: &schemas.Report{Kind: schemas.ReportSuccess, Token: "run-1.5.1"}}), DeadClosedActivity)
	})
	t.Run("scheduled and canceled in one reply", func(t *testing.T) {
		w := decided(t, activity("A"), cancel)
		w.want("WorkflowStarted", "DeciderScheduled", "DeciderStarted", "DeciderCompleted", "ActivityScheduled A",
			"ActivityCancelRequested A", "ActivityCanceled A", "DeciderScheduled")
	})
	for _, tt := range []struct {
		kind schemas.ReportKind
		want string
	}{
		{schemas.ReportCanceled, "ActivityCanceled A; DeciderScheduled"},
		{schemas.ReportSuccess, "ActivitySuccess A; DeciderScheduled"},
		{schemas.ReportFailed, "ActivityFailed A failed; DeciderScheduled"},
	} {
		t.Run("running, then "+string(tt.kind), func(t *testing.T) {
			w := working(t, schemas.ScheduleActivity{Retry: &schemas.RetryPolicy{}}) // a canceled activity is not retried
			w.do(Signal{Name: "x"})
			w.decide(cancel)
			w.do(Signal{Name: "y"})
			w.decide(cancel)
			w.follows("Signal x; DeciderScheduled; DeciderStarted; DeciderCompleted; ActivityCancelRequested A; " +
				"Signal y; DeciderScheduled; DeciderStarted; DeciderCompleted; ActivityCancelRequested A")
			requested := w.s.LastID
			w.report("A", tt.kind)
			w.follows(tt.want)
			if e, ok := w.events[len(w.events)-2].Attributes.(*schemas.ActivityCanceled); ok && (e.LatestCancelRequestedEventID != requested || e.StartedEventID != 6) {
				t.Fatalf("got %+v, want the latest request %d and the start 6", e, requested)
			}
		})
	}
	for name, again := range map[string]func(*world) bool{
		"its task comes again": func(w *world) bool { return w.ask(firstToken, 7, "n2", true).Go },
		"no worker is left": func(w *world) bool {
			answers := of[Permit](w.report("A", schemas.ReportLost, func(r *schemas.Report) { r.TaskSequence, r.Redelivered = 7, true }))
			return len(answers) != 1 || answers[0].Permission.Done != schemas.LostGone
		},
	} {
		t.Run("running, and its worker is lost: "+name, func(t *testing.T) {
			w := decided(t, activity("A"))
			asTheFirst(w)
			w.do(Signal{Name: "x"})
			w.decide(cancel)
			w.since()
			if again(w) {
				t.Error("the task is given to another worker")
			}
			w.follows("ActivityInterrupted A; ActivityCanceled A; DeciderScheduled")
			if e, ok := w.events[len(w.events)-2].Attributes.(*schemas.ActivityCanceled); !ok || e.StartedEventID != 6 || e.LatestCancelRequestedEventID == 0 {
				t.Errorf("got %+v, want the start 6 and the request", w.events[len(w.events)-2].Attributes)
			}
		})
	}
	t.Run("unknown", func(t *testing.T) {
		w := decided(t, cancel)
		w.want("WorkflowStarted", "DeciderScheduled", "DeciderStarted", "DeciderCompleted",
			"ActivityCancelFailed A ACTIVITY_ID_UNKNOWN", "DeciderScheduled")
	})
}
