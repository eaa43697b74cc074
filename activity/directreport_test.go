package activity_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/schemas"
)

// answering is an owner that answers what it is handed; nothing for "".
func (r *rig) answering(answer string) <-chan schemas.Report {
	r.t.Helper()
	got := make(chan schemas.Report, 10)
	if _, err := r.conn.Subscribe(ns.AllOutcomes(0), "", func(m natsconn.Msg) {
		var report schemas.Report
		err := schemas.Unmarshal(m.Data, &report)
		if err == nil && answer != "" {
			err = m.Respond(nil, []byte(answer))
		}
		if err != nil {
			r.t.Error(err)
		}
		got <- report
	}); err != nil {
		r.t.Fatal(err)
	}
	return got
}

// notTaken is the answer of an owner that does not take what it is handed.
const notTaken = `{"v":1,"error":{"code":"conflict","message":"not taken"}}`

// A task that must not run twice is asked for at its owner. If that does not say yes, or says nothing, the question goes into the inbox as the same.
func TestOwnerIsAsked(t *testing.T) { // P-7
	for _, tc := range []struct {
		name, answer string
		asksAfter    time.Duration // by the inbox; negative: it does not
	}{
		{"it says yes", `{"v":1,"sequence":7}`, -1},
		{"it does not", notTaken, 0},
		{"it says nothing", "", 2 * time.Second},
	} {
		for _, offered := range []bool{false, true} {
			name := tc.name + map[bool]string{false: " of a task on its list", true: " of an offer"}[offered]
			t.Run(name, func(t *testing.T) {
				bubble(t, func(t *testing.T, r *rig) {
					owner := r.answering(tc.answer)
					ran := 0
					w := r.worker()
					activity.Register(w, "work", ignoreIn(func(context.Context) (string, error) { ran++; return "done", nil }))
					r.start(w)
					time.Sleep(time.Second)
					want := schemas.Report{Kind: schemas.ReportBegin, Token: "RUN.5.1", Identity: "worker-1"}
					began := time.Now()
					if offered {
						r.offer(notIdempotent)
					} else {
						want.TaskSequence = r.dispatch(notIdempotent)
					}
					question := <-owner
					want.Nonce = question.Nonce
					if diff := cmp.Diff(want, question); diff != "" || question.Nonce == "" {
						t.Fatalf("question to the owner (-want +got):\n%s", diff)
					}
					if tc.asksAfter >= 0 {
						again := r.next(schemas.ReportBegin)
						want.ReplyTo = again.ReplyTo
						if diff := cmp.Diff(want, again.Report); diff != "" || again.ReplyTo == "" {
							t.Fatalf("question in the inbox (-want +got):\n%s", diff)
						}
						if took := time.Since(began); took < tc.asksAfter || took > tc.asksAfter+time.Second || ran != 0 {
							t.Fatalf("asked after %v, want %v; it ran %d times", took, tc.asksAfter, ran)
						}
						r.answer(again.ReplyTo, schemas.Permission{Nonce: again.Nonce, Go: true})
					}
					outcome := <-owner
					if outcome.Kind != schemas.ReportSuccess || outcome.Nonce != "" || outcome.Elapsed <= 0 {
						t.Fatalf("got %+v, want the success of an attempt whose start is known, and how long it took", outcome)
					}
					if tc.asksAfter >= 0 { // nor is that taken
						r.next(schemas.ReportSuccess)
					}
					r.settled("PCI")
					r.quiet(time.Minute)
					if ran != 1 {
						t.Fatalf("it ran %d times", ran)
					}
				})
			})
		}
	}
}

// What somebody may have in hand, or may have done, is asked for after what that one has put into the inbox.
func TestOwnerIsNotAskedBeforeTheInbox(t *testing.T) { // P-7
	old := func(t *schemas.ActivityTask) {
		t.Token, t.ScheduledAt = "RUN.6.1", schemas.At(time.Now().Add(-time.Hour))
	}
	for name, put := range map[string]struct{ before, later func(r *rig) }{
		"redelivered": {before: func(r *rig) { r.dispatch(notIdempotent); r.loseDelivery("PCI") }},
		"stale":       {later: func(r *rig) { r.offer(notIdempotent, old) }},
		"after another owner": {later: func(r *rig) {
			if err := r.conn.Publish(ns.Owned(0), nil, nil); err != nil {
				r.t.Fatal(err)
			}
			time.Sleep(time.Second)
			r.dispatch(notIdempotent, old)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				owner := r.answering(`{"v":1,"sequence":7}`)
				if put.before != nil {
					put.before(r)
				}
				r.hearing()
				if put.later != nil {
					r.offer() // by which it knows the clock of the server
					<-owner
					time.Sleep(time.Second) // until it has heard that its outcome is taken
					put.later(r)
				}
				q := r.next(schemas.ReportBegin)
				r.answer(q.ReplyTo, schemas.Permission{Nonce: q.Nonce, Go: true})
				if got := <-owner; got.Kind != schemas.ReportSuccess {
					t.Fatalf("the owner was handed %+v, want the outcome alone", got)
				}
				r.settled("PCI")
			})
		})
	}
}

// A worker whose drain is out of time while its owner is asked gives the task back, and asks no more.
func TestDrainWhileTheOwnerIsAsked(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		owner := r.answering("")
		w := r.worker(func(o *activity.Options) { o.DrainTimeout = 100 * time.Millisecond })
		activity.Register(w, "work", ignoreIn(func(context.Context) (string, error) { t.Error("it ran"); return "", nil }))
		stop := r.start(w)
		time.Sleep(time.Second)
		r.dispatch(notIdempotent)
		<-owner
		_ = stop() // its error is that of TestDrainWhileTasksAreAskedFor
		r.next(schemas.ReportReturned)
		r.quiet(time.Minute)
		r.remain("PCI", 1)
	})
}
