package execution

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/schemas"
)

func byOffer(r *schemas.Report) { r.Identity, r.Nonce, r.Offered = "w-1", "n1", true }

// asked is a world in which a worker is at activity A, which it was offered.
func asked(t *testing.T) *world {
	t.Helper()
	w := decided(t, activity("A"))
	w.report("A", schemas.ReportStarted, byOffer)
	w.since()
	return w
}

func question(r *schemas.Report) { r.ReplyTo, r.Nonce, r.TaskSequence = "inbox", "n2", 41 }

func (w *world) wantEffects(got []Effect, want ...Effect) {
	w.t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Fatalf("effects (-want +got):\n%s", diff)
	}
}

// Once the start of an offer is in the history a message tells of it, so that its worker is missed should it be lost.
func TestStartOfAnOfferIsStored(t *testing.T) { // P-7
	w := decided(t, activity("A"))
	stored := Dispatch{ScheduledID: 5, Store: true}
	w.wantEffects(w.report("A", schemas.ReportStarted, byOffer), stored)
	w.follows("ActivityStarted A")
	if got := last[*schemas.ActivityStarted](w); !got.Offered || got.Identity != "w-1" || got.TaskSequence != 0 {
		t.Fatalf("got %+v, want an offer to w-1", got)
	}
	w.wantEffects(w.report("A", schemas.ReportStarted, byOffer)) // announced again
	w.wantEffects(w.s.OpenEffects(w.now), stored)
	w.report("A", schemas.ReportSuccess)
	w.follows("ActivitySuccess A; DeciderScheduled")
}

// An offer that is over before its start was announced leaves nothing to do.
func TestOutcomeOfAnOffer(t *testing.T) {
	w := decided(t, activity("A"))
	w.wantEffects(w.report("A", schemas.ReportSuccess, func(r *schemas.Report) { r.Elapsed, r.Nonce, r.Offered = 1, "n1", true }))
	w.follows("ActivityStarted A; ActivitySuccess A; DeciderScheduled")
	if got, ok := w.events[5].Attributes.(*schemas.ActivityStarted); !ok || got.Offered {
		t.Fatalf("got %+v, want a start like any other", w.events[5].Attributes)
	}
}

// A worker that asks before it begins with an offer has no message either. Its owner puts one on the list if the attempt takes long, and so does the
// next one: until then nobody else has it.
func TestQuestionAboutAnOffer(t *testing.T) { // P-7
	for _, once := range []bool{false, true} {
		a := activity("A")
		a.NotIdempotent = once
		w := decided(t, a)
		if got := w.ask(firstToken, 0, "n1", false); !cmp.Equal(got, allow(1)) {
			t.Fatalf("got %+v, want yes", got)
		}
		w.follows("ActivityStarted A")
		if got := last[*schemas.ActivityStarted](w); !got.Offered || got.Identity != "worker-n1" || got.TaskSequence != 0 {
			t.Fatalf("got %+v, want the start of an offer", got)
		}
		if got := w.ask(firstToken, 0, "n1", false); !cmp.Equal(got, allow(1)) {
			t.Fatalf("got %+v for the question again, want yes", got)
		}
		w.wantEffects(w.s.OpenEffects(w.now), Dispatch{ScheduledID: 5, Store: true})
		inquiry := Inquire{ScheduledID: 5, Attempt: 1, Worker: "worker-n1", Token: firstToken}
		for _, seq := range []uint64{0, 41} { // another worker that was offered it, and who has its message
			got := w.report("A", schemas.ReportBegin, question, func(r *schemas.Report) { r.TaskSequence = seq })
			w.wantEffects(got, Permit{To: "inbox", Permission: schemas.Permission{Nonce: "n2", Leave: true, Reason: "the task was offered to a worker, who is being asked"}}, inquiry)
		}
		w.follows("")
		gone := w.do(Gone{Run: "run-1", ScheduledID: 5, Attempt: 1})
		if once {
			w.wantEffects(gone)
			w.follows("ActivityInterrupted A; ActivityFailed A interrupted; DeciderScheduled")
		} else {
			w.wantEffects(gone, Dispatch{ScheduledID: 5, Store: true})
			w.follows("ActivityInterrupted A")
		}
	}
}

// The owner itself says yes, and nothing else, to a question that did not come by way of the inbox.
func TestGrants(t *testing.T) { // P-7
	mayRunTwice := func(a *schemas.ScheduleActivity) { a.NotIdempotent = false }
	limited := func(a *schemas.ScheduleActivity) {
		a.StartDelay, a.ScheduleToCloseTimeout = schemas.Seconds(10), schemas.Seconds(60)
	}
	at := func(d time.Duration) func(*world) { return func(w *world) { w.after(d) } }
	for _, tt := range []struct {
		name   string
		edit   func(*schemas.ScheduleActivity)
		before func(*world)
		token  string
		want   bool
	}{
		{"the attempt waits", nil, nil, firstToken, true},
		{"somebody may be at it who has not asked", mayRunTwice, nil, firstToken, false},
		{"another run", nil, nil, "run-0.5.1", false},
		{"another event", nil, nil, "run-1.4.1", false},
		{"another attempt", nil, nil, secondToken, false},
		{"no token", nil, nil, "run-1", false},
		{"it has begun", nil, asTheFirst, firstToken, false},
		{"before its time", limited, at(9 * time.Second), firstToken, false},
		{"in its time", limited, at(11 * time.Second), firstToken, true},
		{"after its time", limited, at(61 * time.Second), firstToken, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := activity("A")
			a.NotIdempotent = true
			if tt.edit != nil {
				tt.edit(a)
			}
			w := decided(t, a)
			if tt.before != nil {
				tt.before(w)
			}
			m := Report{Report: &schemas.Report{Kind: schemas.ReportBegin, Token: tt.token, Nonce: "n9"}, List: a.List}
			if got := w.s.Grants(m, w.now); got != tt.want {
				t.Errorf("got %t, want %t", got, tt.want)
			}
			if m.List = "other"; w.s.Grants(m, w.now) {
				t.Error("it is granted to whoever has another list")
			}
		})
	}
}

// Whoever is given the message of an offer is told to leave it, and the worker is asked, each time.
func TestWorkerOfAnOfferIsAsked(t *testing.T) { // P-7
	inquiry := Inquire{ScheduledID: 5, Attempt: 1, Worker: "w-1", Token: "run-1.5.1"}
	for _, redelivered := range []bool{false, true} {
		w := asked(t)
		got := w.report("A", schemas.ReportBegin, question, func(r *schemas.Report) { r.Redelivered = redelivered })
		w.wantEffects(got, Permit{To: "inbox", Permission: schemas.Permission{Nonce: "n2", Leave: true, Reason: "the task was offered to a worker, who is being asked"}}, inquiry)
		got = w.report("A", schemas.ReportLost, question, func(r *schemas.Report) { r.Redelivered = true })
		w.wantEffects(got, inquiry, Permit{To: "inbox", Permission: schemas.Permission{Nonce: "n2", Done: schemas.LostHeld}})
		w.follows("")
	}
}

// The worker of an offer that does not answer is lost: the attempt is interrupted, and the next one is on the list.
func TestWorkerOfAnOfferIsGone(t *testing.T) { // P-7, S3-14
	w := asked(t)
	for _, other := range []Gone{
		{Run: "run-0", ScheduledID: 5, Attempt: 1}, {Run: "run-1", ScheduledID: 4, Attempt: 1}, {Run: "run-1", ScheduledID: 5, Attempt: 2},
	} {
		w.wantEffects(w.do(other))
	}
	w.follows("")
	w.wantEffects(w.do(Gone{Run: "run-1", ScheduledID: 5, Attempt: 1}), Dispatch{ScheduledID: 5, Store: true})
	w.follows("ActivityInterrupted A")
	old := func(r *schemas.Report) { r.Token = "run-1.5.1" }
	w.wantEffects(w.report("A", schemas.ReportBegin, question, old), // the message of the first attempt
		Permit{To: "inbox", Permission: schemas.Permission{Nonce: "n2", Reason: "another delivery of this task is at work"}})
	w.refused(w.report("A", schemas.ReportSuccess, old), DeadStaleToken)
	w.wantEffects(w.do(Gone{Run: "run-1", ScheduledID: 5, Attempt: 1}))
	w.report("A", schemas.ReportStarted, byOffer)
	w.wantEffects(w.report("A", schemas.ReportBegin, question, old), // nobody is asked: it will never be anybody's again
		Permit{To: "inbox", Permission: schemas.Permission{Nonce: "n2", Reason: "another delivery of this task is at work"}})
	w.wantEffects(w.report("A", schemas.ReportLost, question, old), Permit{To: "inbox", Permission: schemas.Permission{Nonce: "n2", Done: schemas.LostGone}})
	w.report("A", schemas.ReportSuccess)
	w.follows("ActivityStarted A 2; ActivitySuccess A; DeciderScheduled")
}

// A worker that began with a message has a lease: word of its end is not believed.
func TestGoneIsAboutOffersOnly(t *testing.T) { // P-7
	w := decided(t, activity("A"))
	w.wantEffects(w.do(Gone{Run: "run-1", ScheduledID: 5, Attempt: 1}))
	w.report("A", schemas.ReportStarted, func(r *schemas.Report) { r.Identity, r.TaskSequence = "w-1", 41 })
	w.wantEffects(w.do(Gone{Run: "run-1", ScheduledID: 5, Attempt: 1}))
	w.wantEffects(w.report("A", schemas.ReportReturned))
	w.follows("ActivityStarted A")
}

// What a worker gives back goes to the list.
func TestOfferIsReturned(t *testing.T) {
	w := decided(t, activity("A"))
	stored := Dispatch{ScheduledID: 5, Store: true}
	w.wantEffects(w.report("A", schemas.ReportReturned), stored)
	w.follows("")
	w.report("A", schemas.ReportStarted, byOffer)
	w.wantEffects(w.report("A", schemas.ReportReturned, func(r *schemas.Report) { r.Token = "run-0.5.1" })) // of the run before
	w.wantEffects(w.report("A", schemas.ReportReturned), stored)
	w.follows("ActivityStarted A; ActivityInterrupted A")
	w.wantEffects(w.report("A", schemas.ReportReturned, func(r *schemas.Report) { r.Token = "run-1.5.1" })) // twice
	w.report("A", schemas.ReportSuccess)
	w.wantEffects(w.do(Report{Report: &schemas.Report{Kind: schemas.ReportReturned, Token: "run-1.5.2"}}))
	w.follows("ActivityStarted A 2; ActivitySuccess A; DeciderScheduled")
}
