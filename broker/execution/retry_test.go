package execution

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/schemas"
)

func TestRetryIntervals(t *testing.T) {
	const longest = schemas.Duration(1 << 62)
	for _, tt := range []struct {
		name   string
		policy schemas.RetryPolicy
		want   []schemas.Duration
	}{
		{"defaults: doubled from one second", schemas.RetryPolicy{}, []schemas.Duration{seconds(1), seconds(2), seconds(4), seconds(8), seconds(16), seconds(32), seconds(64), seconds(100), seconds(100)}},
		{"initial", schemas.RetryPolicy{InitialInterval: seconds(0.5)}, []schemas.Duration{seconds(0.5), seconds(1), seconds(2)}},
		{"coefficient", schemas.RetryPolicy{BackoffCoefficient: 3}, []schemas.Duration{seconds(1), seconds(3), seconds(9), seconds(27)}},
		{"coefficient one", schemas.RetryPolicy{BackoffCoefficient: 1}, []schemas.Duration{seconds(1), seconds(1), seconds(1)}},
		{"a coefficient below one does not shrink", schemas.RetryPolicy{BackoffCoefficient: 0.1}, []schemas.Duration{seconds(1), seconds(1)}},
		{"cap", schemas.RetryPolicy{MaximumInterval: seconds(3)}, []schemas.Duration{seconds(1), seconds(2), seconds(3), seconds(3)}},
		{"a cap below the initial", schemas.RetryPolicy{InitialInterval: seconds(9), MaximumInterval: seconds(3)}, []schemas.Duration{seconds(3), seconds(3)}},
		{"no cap", schemas.RetryPolicy{MaximumInterval: schemas.Unlimited, BackoffCoefficient: 1000}, []schemas.Duration{seconds(1), seconds(1000), seconds(1e6)}},
		{"no initial", schemas.RetryPolicy{InitialInterval: schemas.Unlimited}, []schemas.Duration{seconds(1), seconds(2)}},
		{"nonsense", schemas.RetryPolicy{InitialInterval: -7, BackoffCoefficient: math.NaN(), MaximumInterval: -9}, []schemas.Duration{seconds(1), seconds(2)}},
		{"endless", schemas.RetryPolicy{InitialInterval: math.MaxInt64, BackoffCoefficient: math.Inf(1), MaximumInterval: math.MaxInt64}, []schemas.Duration{longest, longest}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []schemas.Duration
			for i := range tt.want {
				got = append(got, tt.policy.Pause(i+1))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Fatal(diff)
			}
			if d := tt.policy.Pause(10_000); d <= 0 {
				t.Fatalf("got %d ns after 10,000 attempts", d)
			}
		})
	}
}

// The decider is not asked before the last attempt has failed. S1-40: started counts rise, and the window shows them.
func TestRetry(t *testing.T) {
	w := decided(t, &schemas.ScheduleActivity{ActivityID: "A", ActivityType: "work", Retry: &schemas.RetryPolicy{MaximumAttempts: 3}})
	w.ask("run-1.5.1", 7, "n1", false)
	w.since()
	w.after(sec)
	failed := func(r *schemas.Report) { r.Reason, r.Details = "busy", schemas.Text("503") }
	if effects := w.report("A", schemas.ReportFailed, failed); len(effects) != 0 {
		t.Fatalf("got effects %v, want none before the interval is over", effects)
	}
	want := &schemas.ActivityRetryScheduled{ScheduledEventID: 5, StartedEventID: 6, Attempt: 1, Cause: "busy", Details: schemas.Text("503"), NextTime: w.now.Add(seconds(1))}
	if diff := cmp.Diff(want, last[*schemas.ActivityRetryScheduled](w)); diff != "" {
		t.Fatal(diff)
	}
	w.follows("ActivityRetryScheduled A busy")
	if a := w.activity("A"); a.Attempt != 2 || a.Started != 0 || a.Worker != "" || a.Nonce != "" || a.TaskSequence != 0 {
		t.Fatalf("got %+v, want attempt 2 of nobody yet", a)
	}
	if got := w.s.OpenEffects(w.now); len(got) != 0 {
		t.Fatalf("got %v, want nothing on the list yet", got)
	}
	if got := w.ask("run-1.5.2", 8, "n2", false); got.Go {
		t.Fatalf("got %+v, want no: its time has not come", got)
	}

	w.effects = nil
	w.rings(sec, "")
	if diff := cmp.Diff([]Effect{Dispatch{ScheduledID: 5}}, w.effects); diff != "" {
		t.Fatal(diff)
	}
	if diff := cmp.Diff([]Effect{Dispatch{ScheduledID: 5}}, w.s.OpenEffects(w.now)); diff != "" {
		t.Fatal(diff)
	}
	w.do(AlarmFired{}) // rings twice, dispatches once
	if n := len(of[Dispatch](w.effects)); n != 1 {
		t.Fatalf("dispatched %d times, want once", n)
	}
	w.refused(w.do(Report{Report: &schemas.Report{Kind: schemas.ReportFailed, Token: "run-1.5.1"}}), DeadStaleToken)
	w.report("A", schemas.ReportStarted)
	w.report("A", schemas.ReportFailed, failed)
	w.rest(2 * sec)
	w.report("A", schemas.ReportFailed, failed)
	w.follows("ActivityStarted A 2; ActivityRetryScheduled A busy; ActivityStarted A 3; ActivityFailed A busy; DeciderScheduled")
}

func TestRetryOrNot(t *testing.T) {
	const retried, given = "ActivityRetryScheduled A ", "ActivityFailed A "
	for _, tt := range []struct {
		name   string
		policy *schemas.RetryPolicy
		total  schemas.Duration
		reason string
		want   string
	}{
		{"absent by default", nil, 0, "busy", given + "busy; DeciderScheduled"},
		{"unlimited attempts", &schemas.RetryPolicy{}, 0, "busy", retried + "busy"},
		{"one attempt", &schemas.RetryPolicy{MaximumAttempts: 1}, 0, "busy", given + "busy; DeciderScheduled"},
		{"non-retryable", &schemas.RetryPolicy{NonRetryable: []string{"no card", "broke"}}, 0, "broke", given + "broke; DeciderScheduled"},
		{"another reason", &schemas.RetryPolicy{NonRetryable: []string{"no card", "broke"}}, 0, "busy", retried + "busy"},
		{"would begin after schedule-to-close", &schemas.RetryPolicy{}, seconds(1.5), "busy", given + "busy; DeciderScheduled"},
		{"would begin at schedule-to-close", &schemas.RetryPolicy{}, seconds(2), "busy", given + "busy; DeciderScheduled"},
		{"begins before schedule-to-close", &schemas.RetryPolicy{}, seconds(2.1), "busy", retried + "busy"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := working(t, schemas.ScheduleActivity{Retry: tt.policy, ScheduleToCloseTimeout: tt.total})
			w.after(sec)
			w.report("A", schemas.ReportFailed, func(r *schemas.Report) { r.Reason = tt.reason })
			w.follows(tt.want)
		})
	}
}

// A failure that its worker calls final ends the activity at any attempt, and counts once.
func TestFinalFailure(t *testing.T) {
	endless := &schemas.RetryPolicy{}
	final := func(r *schemas.Report) { r.Reason, r.Details, r.Final = "declined", schemas.Text("card 7"), true }
	t.Run("of an attempt that was not announced", func(t *testing.T) {
		w := decided(t, &schemas.ScheduleActivity{ActivityID: "A", ActivityType: "work", Retry: endless})
		a := w.activity("A")
		w.report("A", schemas.ReportFailed, final)
		w.follows("ActivityStarted A; ActivityFailed A declined; DeciderScheduled")
		want := &schemas.ActivityFailed{ScheduledEventID: 5, StartedEventID: 6, Reason: "declined", Details: schemas.Text("card 7"), Final: true}
		if diff := cmp.Diff(want, w.events[len(w.events)-2].Attributes); diff != "" {
			t.Fatal(diff)
		}
		again := &schemas.Report{Kind: schemas.ReportFailed, Token: Token(w.s.Run, a.ScheduledID, 1), Reason: "declined", Final: true}
		w.refused(w.do(Report{Report: again}), DeadClosedActivity)
	})
	t.Run("of a later attempt", func(t *testing.T) {
		w := working(t, schemas.ScheduleActivity{Retry: endless})
		w.report("A", schemas.ReportFailed, func(r *schemas.Report) { r.Reason = "busy" })
		w.rest(sec)
		w.since()
		w.report("A", schemas.ReportFailed, final)
		w.follows("ActivityStarted A 2; ActivityFailed A declined; DeciderScheduled")
	})
	t.Run("of an activity that is to end", func(t *testing.T) {
		w := working(t, schemas.ScheduleActivity{Retry: endless})
		w.do(Signal{Name: "stop"})
		w.decide(&schemas.RequestCancelActivity{ActivityID: "A"})
		w.since()
		w.report("A", schemas.ReportFailed, final)
		w.follows("ActivityFailed A declined; DeciderScheduled")
	})
}

func TestRetryAfterTimeouts(t *testing.T) { // S1-32
	policy := &schemas.RetryPolicy{MaximumAttempts: 2}
	t.Run("start-to-close", func(t *testing.T) {
		w := working(t, schemas.ScheduleActivity{Retry: policy, StartToCloseTimeout: seconds(5)})
		w.rings(5*sec, "ActivityRetryScheduled A START_TO_CLOSE")
		w.rings(1*sec, "")
		w.report("A", schemas.ReportStarted)
		w.follows("ActivityStarted A 2")
		w.rings(5*sec, "ActivityTimedOut A START_TO_CLOSE; DeciderScheduled")
	})
	t.Run("heartbeat, with the details of the last", func(t *testing.T) {
		w := working(t, schemas.ScheduleActivity{Retry: policy, HeartbeatTimeout: seconds(5)})
		w.c.Details = 1 // those of one heartbeat always fit
		w.s.Beat(&schemas.Heartbeat{Token: "run-1.5.1", Details: schemas.Text("half")}, "", w.now)
		w.rings(5*sec, "ActivityRetryScheduled A HEARTBEAT")
		if got := last[*schemas.ActivityRetryScheduled](w).HeartbeatDetails; string(got) != "half" {
			t.Fatalf("got details %q for the next attempt, want the last heartbeat's", got)
		}
	})
	t.Run("an attempt that says nothing goes on from what was said before it", func(t *testing.T) {
		w := working(t, schemas.ScheduleActivity{Retry: &schemas.RetryPolicy{}, StartToCloseTimeout: seconds(5)})
		w.s.Beat(&schemas.Heartbeat{Token: "run-1.5.1", Details: schemas.Text("half")}, "", w.now)
		for range 3 {
			w.report("A", schemas.ReportFailed)
			w.after(time.Hour)
			w.do(AlarmFired{})
			if got := w.ask(Token("run-1", 5, w.activity("A").Attempt), 7, "n1", false); !got.Go || string(got.HeartbeatDetails) != "half" {
				t.Fatalf("attempt %d begins with %+v, want what the first one has said", w.activity("A").Attempt, got)
			}
		}
	})
	t.Run("two limits that ran out before a late ring cost one attempt", func(t *testing.T) {
		w := working(t, schemas.ScheduleActivity{Retry: &schemas.RetryPolicy{}, StartToCloseTimeout: seconds(5), HeartbeatTimeout: seconds(3)})
		w.after(time.Minute)
		w.do(AlarmFired{})
		w.follows("ActivityRetryScheduled A HEARTBEAT")
	})
	t.Run("a timeout may be non-retryable", func(t *testing.T) {
		w := working(t, schemas.ScheduleActivity{Retry: &schemas.RetryPolicy{NonRetryable: []string{"HEARTBEAT"}}, HeartbeatTimeout: seconds(5)})
		w.rings(5*sec, "ActivityTimedOut A HEARTBEAT; DeciderScheduled")
	})
	t.Run("schedule-to-close is never retried", func(t *testing.T) {
		w := working(t, schemas.ScheduleActivity{Retry: policy, ScheduleToCloseTimeout: seconds(5)})
		w.rings(5*sec, "ActivityTimedOut A SCHEDULE_TO_CLOSE; DeciderScheduled")
	})
	t.Run("schedule-to-close ends the wait for the next attempt", func(t *testing.T) {
		w := working(t, schemas.ScheduleActivity{Retry: &schemas.RetryPolicy{InitialInterval: seconds(3)}, ScheduleToCloseTimeout: seconds(5)})
		w.report("A", schemas.ReportFailed)
		w.after(3 * sec)
		w.do(AlarmFired{})
		w.follows("ActivityRetryScheduled A failed")
		w.rings(2*sec, "ActivityTimedOut A SCHEDULE_TO_CLOSE; DeciderScheduled")
		if got := w.events[len(w.events)-2].Attributes.(*schemas.ActivityTimedOut).StartedEventID; got != 0 {
			t.Fatalf("got start %d, want 0: no attempt was running", got)
		}
	})
	t.Run("schedule-to-start is never retried", func(t *testing.T) {
		w := decided(t, &schemas.ScheduleActivity{ActivityID: "A", ActivityType: "work", Retry: policy, ScheduleToStartTimeout: seconds(5)})
		w.rings(5*sec, "ActivityScheduledTimeout A; DeciderScheduled")
	})
	t.Run("schedule-to-start is met by the first start", func(t *testing.T) {
		w := working(t, schemas.ScheduleActivity{Retry: policy, ScheduleToStartTimeout: seconds(5)})
		w.report("A", schemas.ReportFailed)
		w.rest(time.Hour)
		w.follows("ActivityRetryScheduled A failed")
	})
	t.Run("canceled while it waits for the next attempt", func(t *testing.T) {
		w := working(t, schemas.ScheduleActivity{Retry: policy})
		w.report("A", schemas.ReportFailed)
		w.do(Signal{Name: "x"})
		w.decide(&schemas.RequestCancelActivity{ActivityID: "A"})
		w.rest(time.Hour)
		w.follows("ActivityRetryScheduled A failed; Signal x; DeciderScheduled; DeciderStarted; DeciderCompleted; ActivityCancelRequested A; ActivityCanceled A; DeciderScheduled")
	})
}

func TestStartDelay(t *testing.T) {
	w := decided(t, &schemas.ScheduleActivity{ActivityID: "A", ActivityType: "work", StartDelay: seconds(5)}, activity("B"))
	if diff := cmp.Diff([]Effect{Dispatch{ScheduledID: 6}}, w.effects); diff != "" {
		t.Fatalf("only B goes to its list at once: %s", diff)
	}
	if diff := cmp.Diff([]Effect{Dispatch{ScheduledID: 6}}, w.s.OpenEffects(w.now)); diff != "" {
		t.Fatal(diff)
	}
	w.effects = nil
	w.rings(5*sec, "")
	if diff := cmp.Diff([]Effect{Dispatch{ScheduledID: 5}}, w.effects); diff != "" {
		t.Fatal(diff)
	}
	if diff := cmp.Diff([]Effect{Dispatch{ScheduledID: 5}, Dispatch{ScheduledID: 6}}, w.s.OpenEffects(w.now)); diff != "" {
		t.Fatal(diff)
	}
	w.s = fold(w.s, w.events) // a new owner does not know that the task is on its list
	if got := w.activity("A").NotBefore; got != w.now {
		t.Fatalf("got %s, want %s", got, w.now)
	}
	w.report("A", schemas.ReportStarted)
	if got := w.activity("A").NotBefore; got != 0 {
		t.Fatalf("got %s, want no delay any more", got)
	}
	w.report("A", schemas.ReportSuccess)
	w.follows("ActivityStarted A; ActivitySuccess A; DeciderScheduled")
}

// A retry policy is for failures that a worker reports. An attempt of an activity that must not run twice and has timed out
// may have done its work.
func TestNoRetryAfterATimeoutOfWhatMustNotRunTwice(t *testing.T) {
	policy := &schemas.RetryPolicy{InitialInterval: schemas.Seconds(1)}
	for timeout, a := range map[string]schemas.ScheduleActivity{
		"START_TO_CLOSE": {StartToCloseTimeout: schemas.Seconds(10)},
		"HEARTBEAT":      {HeartbeatTimeout: schemas.Seconds(10)},
	} {
		t.Run(timeout, func(t *testing.T) {
			a.NotIdempotent, a.Retry = true, policy
			w := working(t, a)
			w.after(10 * time.Second)
			w.do(AlarmFired{})
			w.follows("ActivityTimedOut A " + timeout + "; DeciderScheduled")
		})
	}
	t.Run("a reported failure is retried", func(t *testing.T) {
		w := working(t, schemas.ScheduleActivity{NotIdempotent: true, Retry: policy})
		w.report("A", schemas.ReportFailed)
		w.follows("ActivityRetryScheduled A failed")
	})
}
