package execution

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/schemas"
)

// lose has the worker of the current attempt of A lost: its message comes to another one, which asks, or the master asks for it.
func (w *world) lose(byMaster bool) {
	w.t.Helper()
	a := w.activity("A")
	kind := schemas.ReportBegin
	if byMaster {
		kind = schemas.ReportLost
	}
	w.report("A", kind, func(r *schemas.Report) {
		r.Nonce, r.Redelivered, r.TaskSequence, r.ReplyTo, r.Identity = fmt.Sprintf("n%d", a.Attempt+1), true, a.TaskSequence, "inbox", fmt.Sprintf("w-%d", a.Attempt+1)
	})
}

// begin begins the current attempt of A, if it has not begun.
func (w *world) begin() {
	w.t.Helper()
	if a := w.activity("A"); a.Started == 0 {
		w.report("A", schemas.ReportStarted, func(r *schemas.Report) {
			r.Nonce, r.TaskSequence, r.Identity = fmt.Sprintf("n%d", a.Attempt), 41, fmt.Sprintf("w-%d", a.Attempt)
		})
	}
}

// lastAttempt is the number of the last attempt that has begun.
func (w *world) lastAttempt() (n int) {
	for _, e := range w.events {
		if a, ok := e.Attributes.(*schemas.ActivityStarted); ok {
			n = a.Attempt
		}
	}
	return n
}

// An activity whose worker is lost each time ends, whatever its retry policy, and what does not count has no part in that.
func TestInterruptionsHaveALimit(t *testing.T) { // R5
	lost := func(n int, byMaster bool) func(*world) {
		return func(w *world) {
			for range n {
				if w.begin(); w.s.ActivityByID("A") != nil {
					w.lose(byMaster)
				}
			}
		}
	}
	returned := func(n int) func(*world) {
		return func(w *world) {
			for range n {
				w.begin()
				nonce := w.activity("A").Nonce
				w.report("A", schemas.ReportReturned, func(r *schemas.Report) { r.Nonce, r.TaskSequence = nonce, 41 })
			}
		}
	}
	beat := func(w *world) {
		w.begin()
		w.s.Beat(&schemas.Heartbeat{Token: Token("run-1", 5, w.activity("A").Attempt)}, "", w.now)
	}
	failed := func(w *world) {
		w.begin()
		w.report("A", schemas.ReportFailed)
		w.after(w.activity("A").NotBefore.Sub(w.now))
		w.do(AlarmFired{})
	}
	all := func(fs ...func(*world)) func(*world) {
		return func(w *world) {
			for _, f := range fs {
				f(w)
			}
		}
	}
	policy := &schemas.RetryPolicy{MaximumAttempts: 2}
	const ended = -1
	for _, tt := range []struct {
		name  string
		most  int
		retry *schemas.RetryPolicy
		do    func(*world)
		row   int // how many losses there are in a row; ended if the activity has failed
	}{
		{"nine losses", 0, nil, lost(9, false), 9},
		{"ten losses", 0, nil, lost(10, false), ended},
		{"ten losses that the master finds", 0, nil, lost(10, true), ended},
		{"ten losses by both ways", 0, nil, all(lost(4, true), lost(6, false)), ended},
		{"losses are no attempts of the policy", 0, policy, lost(9, false), 9},
		{"ten losses with a policy", 0, policy, lost(10, false), ended},
		{"a limit of its own", 3, nil, lost(2, false), 2},
		{"its own limit is reached", 3, nil, lost(3, false), ended},
		{"its own limit is one", 1, nil, lost(1, true), ended},
		{"no limit", schemas.UnlimitedInterruptions, nil, lost(50, false), 50},
		{"tasks given back", 1, nil, returned(30), 0},
		{"tasks given back between losses", 0, nil, all(lost(5, false), returned(20), lost(4, false)), 9},
		{"the row goes on after those", 0, nil, all(lost(5, false), returned(20), lost(5, false)), ended},
		{"a heartbeat begins a new row", 0, nil, all(lost(9, false), beat, lost(9, false)), 9},
		{"a heartbeat of one that is given back does as well", 0, nil, all(lost(9, true), beat, returned(1), lost(9, true)), 9},
		{"a heartbeat before each loss", 2, nil, all(beat, lost(1, true), beat, lost(1, true), beat, lost(1, true)), 1},
		{"a failure that is reported begins a new row", 0, policy, all(lost(9, true), failed, lost(9, true)), 9},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := activity("A")
			a.MaximumInterruptions, a.Retry = tt.most, tt.retry
			w := decided(t, a)
			tt.do(w)
			act := w.s.ActivityByID("A")
			if tt.row == ended {
				if act != nil {
					t.Fatalf("it goes on with attempt %d, want that it has failed", act.Attempt)
				}
				last[*schemas.DeciderScheduled](w)
				f, ok := w.events[len(w.events)-2].Attributes.(*schemas.ActivityFailed)
				if !ok || f.Reason != schemas.ReasonInterrupted || !strings.Contains(string(f.Details), fmt.Sprintf("attempt %d of worker", w.lastAttempt())) {
					t.Fatalf("it ended with %+v %s, want the reason %q and which workers were lost", f, f.Details, schemas.ReasonInterrupted)
				}
				return
			}
			if act == nil || act.Interruptions != tt.row {
				t.Fatalf("the activity is %+v, want it open with %d losses in a row", act, tt.row)
			}
			if got := w.restored().ActivityByID("A"); got.Interruptions != act.Interruptions || got.Interrupted != act.Interrupted {
				t.Fatalf("the next owner counts %d and %d, want %d and %d", got.Interruptions, got.Interrupted, act.Interruptions, act.Interrupted)
			}
		})
	}
}

// A failure that a worker reports counts as an attempt of the policy, however many attempts were interrupted before it, and so does its pause.
func TestInterruptionsAreNoAttemptsOfThePolicy(t *testing.T) { // R5
	a := activity("A")
	a.Retry = &schemas.RetryPolicy{MaximumAttempts: 2, InitialInterval: schemas.Seconds(1)}
	w := decided(t, a)
	for range 3 {
		w.begin()
		w.lose(true)
	}
	w.begin()
	w.report("A", schemas.ReportFailed)
	if got := w.activity("A").NotBefore.Sub(w.now); got != time.Second {
		t.Fatalf("the next attempt is in %v, want the first pause of the policy, 1 s", got)
	}
	w.after(time.Second)
	w.do(AlarmFired{})
	w.begin()
	w.since()
	w.report("A", schemas.ReportFailed)
	w.follows("ActivityFailed A failed; DeciderScheduled")
}

// Who gives a task back must have it: what another worker says of the attempt interrupts nothing.
func TestWhoGivesBackHasTheTask(t *testing.T) { // R5
	for _, tt := range []struct {
		name   string
		change func(*schemas.Report)
		events string
	}{
		{"its worker", func(r *schemas.Report) {}, "ActivityInterrupted A"},
		{"its worker, which says no nonce", func(r *schemas.Report) { r.Nonce = "" }, "ActivityInterrupted A"},
		{"its worker, which has not heard of its permission", func(r *schemas.Report) { r.Token = "run-1.5.0" }, "ActivityInterrupted A"},
		{"another message", func(r *schemas.Report) { r.TaskSequence = 42 }, ""},
		{"another worker", func(r *schemas.Report) { r.Nonce = "n2" }, ""},
		{"another attempt", func(r *schemas.Report) { r.Nonce, r.Token = "", "run-1.5.2" }, ""},
		{"another run", func(r *schemas.Report) { r.Token = "run-0.5.1" }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := decided(t, activity("A"))
			w.wantEffects(w.report("A", schemas.ReportReturned, func(r *schemas.Report) { r.Nonce, r.TaskSequence = "n1", 41 })) // its message stands
			w.begin()
			w.since()
			got := w.report("A", schemas.ReportReturned, func(r *schemas.Report) { r.Nonce, r.TaskSequence = "n1", 41; tt.change(r) })
			w.follows(tt.events)
			if tt.events == "" {
				w.wantEffects(got)
				return
			}
			w.wantEffects(got, Dispatch{ScheduledID: 5, Store: true})
			if e := last[*schemas.ActivityInterrupted](w); !e.Returned || e.Interruptions != 0 {
				t.Fatalf("got %+v, want an interruption that does not count", e)
			}
			w.wantEffects(w.report("A", schemas.ReportLost, question, func(r *schemas.Report) { r.Token, r.Redelivered = firstToken, true }),
				Permit{To: "inbox", Permission: schemas.Permission{Nonce: "n2", Done: schemas.LostGone}}) // the message that was handed back
		})
	}
}
