package execution

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/schemas"
)

// ask puts the question of a worker that holds a task: may this delivery run?
func (w *world) ask(token string, seq uint64, nonce string, redelivered bool) schemas.Permission {
	w.t.Helper()
	effects := w.do(Report{Report: &schemas.Report{
		Kind: schemas.ReportBegin, Token: token, TaskSequence: seq, Nonce: nonce, Redelivered: redelivered, Identity: "worker-" + nonce, ReplyTo: "inbox-" + nonce,
	}})
	answers := of[Permit](effects)
	if len(effects) != 1 || len(answers) != 1 {
		w.t.Fatalf("got effects %v, want one permission", effects)
	}
	p := answers[0]
	if p.To != "inbox-"+nonce || p.Permission.Nonce != nonce {
		w.t.Fatalf("the answer goes to %q for nonce %q, want the one who asked, %q", p.To, p.Permission.Nonce, nonce)
	}
	if !p.Permission.Go && p.Permission.Reason == "" {
		w.t.Fatal("a refusal gives no reason")
	}
	p.Permission.Reason, p.Permission.Nonce = "", ""
	return p.Permission
}

func allow(attempt int) schemas.Permission {
	return schemas.Permission{Go: true, Attempt: attempt, Token: Token("run-1", 5, attempt)}
}

var drop, leave = schemas.Permission{}, schemas.Permission{Leave: true}

func asTheFirst(w *world) { w.ask(firstToken, 7, "n1", false) }

const firstToken, secondToken = "run-1.5.1", "run-1.5.2"

// begins is the truth table of P-7. The activity began with the delivery of message 7 under the nonce n1, unless told
// otherwise.
var begins = []struct {
	name          string
	before        func(*world)
	token         string
	seq           uint64
	nonce         string
	redelivered   bool
	want          schemas.Permission
	follows       string
	notIdempotent *schemas.Permission // if the answer is another one for it
	instead       string
}{
	{
		"first delivery", func(*world) {}, firstToken, 7, "n1", false,
		allow(1), "ActivityStarted A", nil, "",
	},
	{
		"a redelivery nobody began with", func(*world) {}, firstToken, 7, "n1", true,
		allow(1), "ActivityStarted A", nil, "",
	},
	{
		"the same question again", asTheFirst, firstToken, 7, "n1", false,
		allow(1), "", nil, "",
	},
	{
		"the same question again, redelivered", asTheFirst, firstToken, 7, "n1", true,
		allow(1), "", nil, "",
	},
	{
		"another copy of the task", asTheFirst, firstToken, 8, "n2", false,
		drop, "", nil, "",
	},
	{
		"another copy of the task, redelivered", asTheFirst, firstToken, 8, "n2", true,
		drop, "", nil, "",
	},
	{
		"another copy of the task with the same nonce", asTheFirst, firstToken, 8, "n1", false,
		drop, "", nil, "",
	},
	{
		"the same message to another worker, but not redelivered: the server has lost count", asTheFirst, firstToken, 7, "n2", false,
		leave, "", nil, "",
	},
	{
		"redelivered to another worker", asTheFirst, firstToken, 7, "n2", true,
		allow(2), "ActivityInterrupted A; ActivityStarted A 2", &drop, "ActivityInterrupted A; ActivityFailed A interrupted; DeciderScheduled",
	},
	{
		"the first worker once more, which was taken for lost", func(w *world) { asTheFirst(w); w.ask(firstToken, 7, "n2", true) }, firstToken, 7, "n1", true,
		leave, "", &drop, "",
	},
	{
		"redelivered after a start in passing", func(w *world) {
			w.report("A", schemas.ReportStarted, func(r *schemas.Report) { r.TaskSequence, r.Nonce = 7, "n1" })
		}, firstToken, 7, "n2", true,
		allow(2), "ActivityInterrupted A; ActivityStarted A 2", &drop, "ActivityInterrupted A; ActivityFailed A interrupted; DeciderScheduled",
	},
	{
		"redelivered after a start that named no message", func(w *world) { w.report("A", schemas.ReportStarted) }, firstToken, 7, "n2", true,
		drop, "", nil, "",
	},
	{
		"asked without a message after a start without one", func(w *world) { w.report("A", schemas.ReportStarted) }, firstToken, 0, "", true,
		drop, "", nil, "",
	},
	{
		"closed", func(w *world) { asTheFirst(w); w.report("A", schemas.ReportSuccess) }, firstToken, 7, "n2", true,
		drop, "", nil, "",
	},
	{
		"closed, asked by the first", func(w *world) { asTheFirst(w); w.report("A", schemas.ReportFailed) }, firstToken, 7, "n1", false,
		drop, "", nil, "",
	},
	{
		"an attempt that is not the current one", func(*world) {}, secondToken, 7, "n1", false,
		drop, "", nil, "",
	},
	{
		"another run", func(*world) {}, "run-0.5.1", 7, "n1", false,
		drop, "", nil, "",
	},
	{
		"never scheduled", func(*world) {}, "run-1.4.1", 7, "n1", false,
		drop, "", nil, "",
	},
}

func TestBegin(t *testing.T) { // P-7
	for _, tt := range begins {
		for _, notIdempotent := range []bool{false, true} {
			name := tt.name
			if notIdempotent {
				name += ", not idempotent"
				if tt.notIdempotent != nil {
					tt.want, tt.follows = *tt.notIdempotent, tt.instead
				}
			}
			t.Run(name, func(t *testing.T) {
				w := decided(t, &schemas.ScheduleActivity{ActivityID: "A", ActivityType: "work", NotIdempotent: notIdempotent})
				tt.before(w)
				w.since()
				if diff := cmp.Diff(tt.want, w.ask(tt.token, tt.seq, tt.nonce, tt.redelivered)); diff != "" {
					t.Fatal(diff)
				}
				w.follows(tt.follows)
			})
		}
	}
}

// Whose time is over does not begin any more, though nobody has rung for it yet.
func TestBeginLaterTheEnd(t *testing.T) {
	w := decided(t, &schemas.ScheduleActivity{ActivityID: "A", ActivityType: "work", ScheduleToCloseTimeout: schemas.Seconds(60)})
	w.after(time.Minute)
	w.since()
	if got := w.ask(firstToken, 7, "n1", false); !cmp.Equal(got, drop) {
		t.Fatalf("got %+v, want a no", got)
	}
	w.follows("")
	w.now--
	if got := w.ask(firstToken, 7, "n1", false); !cmp.Equal(got, allow(1)) {
		t.Fatalf("got %+v before the end, want a yes", got)
	}
	w.since()
	w.now++
	if got := w.ask(firstToken, 7, "n2", true); !cmp.Equal(got, drop) { // neither does the next attempt, whose worker is the first one's heir
		t.Fatalf("got %+v for a redelivery, want a no", got)
	}
	w.follows("")
	w.do(AlarmFired{})
	w.follows("ActivityTimedOut A SCHEDULE_TO_CLOSE; DeciderScheduled")
}

func TestBeginAgainAndAgain(t *testing.T) { // P-7
	const token = "run-1.5.1" // the message does not change
	t.Run("idempotent: every lost worker costs an attempt", func(t *testing.T) {
		w := decided(t, activity("A"))
		for i, nonce := range []string{"n1", "n2", "n3"} {
			for range 2 { // and the answer may be lost as well
				if got := w.ask(token, 7, nonce, i > 0); !cmp.Equal(got, allow(i+1)) {
					t.Fatalf("%s: got %+v, want attempt %d", nonce, got, i+1)
				}
			}
		}
		w.refused(w.do(Report{Report: &schemas.Report{Kind: schemas.ReportSuccess, Token: "run-1.5.1"}}), DeadStaleToken)
		w.refused(w.do(Report{Report: &schemas.Report{Kind: schemas.ReportSuccess, Token: "run-1.5.2"}}), DeadStaleToken)
		w.do(Report{Report: &schemas.Report{Kind: schemas.ReportSuccess, Token: "run-1.5.3"}})
		w.follows("ActivityStarted A; ActivityInterrupted A; ActivityStarted A 2; ActivityInterrupted A; ActivityStarted A 3; ActivitySuccess A; DeciderScheduled")
		e := w.events[6].Attributes.(*schemas.ActivityInterrupted)
		if want := (&schemas.ActivityInterrupted{ScheduledEventID: 5, StartedEventID: 6, Attempt: 1, Identity: "worker-n1", Interruptions: 1}); !cmp.Equal(e, want) {
			t.Fatalf("got %+v, want %+v", e, want)
		}
	})
	t.Run("not idempotent: at most once", func(t *testing.T) {
		w := decided(t, &schemas.ScheduleActivity{ActivityID: "A", ActivityType: "work", NotIdempotent: true, Retry: &schemas.RetryPolicy{}})
		w.ask(token, 7, "n1", false)
		w.ask(token, 7, "n2", true)
		if got := w.ask(token, 7, "n3", true); got.Go {
			t.Fatalf("got %+v, want no", got)
		}
		w.follows("ActivityStarted A; ActivityInterrupted A; ActivityFailed A interrupted; DeciderScheduled")
		// The first worker was only slow: its success comes too late.
		w.refused(w.do(Report{Report: &schemas.Report{Kind: schemas.ReportSuccess, Token: token}}), DeadClosedActivity)
	})
	t.Run("the question comes after the success", func(t *testing.T) {
		w := decided(t, &schemas.ScheduleActivity{ActivityID: "A", ActivityType: "work", NotIdempotent: true})
		w.ask(token, 7, "n1", false)
		w.report("A", schemas.ReportSuccess)
		if got := w.ask(token, 7, "n2", true); got.Go {
			t.Fatalf("got %+v, want no: finished work is not thrown away", got)
		}
		w.follows("ActivityStarted A; ActivitySuccess A; DeciderScheduled")
	})
	t.Run("an interrupt starts the clock of the next attempt", func(t *testing.T) {
		w := decided(t, &schemas.ScheduleActivity{ActivityID: "A", ActivityType: "work", StartToCloseTimeout: seconds(30), HeartbeatTimeout: seconds(20)})
		w.ask(token, 7, "n1", false)
		w.after(15 * sec)
		w.s.Beat(&schemas.Heartbeat{Token: token}, "", w.now)
		w.after(14 * sec)
		w.ask(token, 7, "n2", true)
		if a := w.activity("A"); a.LastBeat != 0 || a.Worker != "worker-n2" {
			t.Fatalf("got %+v, want nothing of the first worker's", a)
		}
		if got := w.s.Beat(&schemas.Heartbeat{Token: token}, "", w.now); !got.Gone {
			t.Fatalf("got %+v: the first worker has lost its attempt", got)
		}
		w.since()
		w.rings(20*sec, "ActivityTimedOut A HEARTBEAT; DeciderScheduled")
	})
}

func TestBeginDelayed(t *testing.T) { // P-7
	w := decided(t, &schemas.ScheduleActivity{ActivityID: "A", ActivityType: "work", StartDelay: seconds(5)})
	if got := w.ask("run-1.5.1", 7, "n1", false); got.Go {
		t.Fatalf("got %+v, want no: its time has not come", got)
	}
	w.after(5 * sec)
	if got := w.ask("run-1.5.1", 7, "n1", false); !cmp.Equal(got, allow(1)) {
		t.Fatalf("got %+v, want go", got)
	}
	w.follows("ActivityStarted A")
}
