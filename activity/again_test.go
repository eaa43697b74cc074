package activity_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
)

// again is a worker whose function takes a while, and counts.
type again struct {
	*rig
	conn  *natsconn.Conn // the worker's
	takes time.Duration
	ran   int
	first schemas.Timestamp // when the task was scheduled
}

func newAgain(r *rig, takes time.Duration) *again {
	a := &again{rig: r, conn: r.dial(), takes: takes}
	w := r.workerOn(a.conn)
	activity.Register(w, "work", ignoreIn(func(context.Context) (string, error) {
		a.ran++
		time.Sleep(a.takes)
		return "done", nil
	}))
	r.start(w)
	return a
}

// beginAgain is one that has the task in hand, and has said so.
func beginAgain(r *rig, takes time.Duration) *again {
	a := newAgain(r, takes)
	a.give()
	time.Sleep(time.Second)
	r.next(schemas.ReportStarted)
	return a
}

// over checks that the task is off its list for good, and was done once.
func (a *again) over() {
	a.t.Helper()
	a.settled("PCI")
	a.quiet(time.Minute)
	if a.ran != 1 {
		a.t.Errorf("it ran %d times, want once", a.ran)
	}
}

// give puts the task on its list, and the same again later on.
func (a *again) give() {
	a.dispatch(func(t *schemas.ActivityTask) {
		if a.first == 0 {
			a.first = t.ScheduledAt
		}
		t.ScheduledAt = a.first
	})
	time.Sleep(10 * time.Millisecond)
}

// owned says what the next owner of a partition does.
func (a *again) owned(p int) {
	a.t.Helper()
	if err := a.rig.conn.Publish(ns.Owned(p), nil, nil); err != nil {
		a.t.Fatal(err)
	}
	time.Sleep(10 * time.Millisecond)
}

func (a *again) reconnect() {
	a.t.Helper()
	if err := a.conn.NATS().ForceReconnect(); err != nil {
		a.t.Fatal(err)
	}
	time.Sleep(time.Second)
}

// What is repeated when an owner has died asks first, and so does nothing of what came later or concerns others (ADR 0049).
func TestRepeatedTasksAskFirst(t *testing.T) { // P-7
	for _, tc := range []struct {
		name string
		dies func(a *again)
		asks bool
	}{
		{"a partition has a new owner", func(a *again) { a.owned(0) }, true},
		{"the connection was lost", (*again).reconnect, true},
		{"both", func(a *again) { a.owned(0); a.reconnect() }, true},
		{"others have one since, and before", func(a *again) { a.owned(1); a.owned(0); a.owned(1) }, true},
		{"long ago", func(a *again) { a.owned(0); a.reconnect(); time.Sleep(11 * time.Second) }, false},
		{"another partition has a new owner", func(a *again) { a.owned(1) }, false},
		{"the task is younger", func(a *again) { a.owned(0); a.first = 0 }, false},
		{"nothing has happened", func(*again) {}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				a := newAgain(r, 0)
				a.give()
				r.next(schemas.ReportSuccess)
				tc.dies(a)
				a.give()
				if !tc.asks {
					r.next(schemas.ReportSuccess)
					r.settled("PCI")
					return
				}
				q := r.next(schemas.ReportBegin)
				if q.Redelivered {
					t.Error("the question says that the message was delivered before")
				}
				r.answer(q.ReplyTo, schemas.Permission{Nonce: q.Nonce, Reason: "closed"})
				a.over()
			})
		})
	}
}

// A task that is in hand already is left to that attempt, and stays on its list until its owner says that it is closed.
func TestTaskInHandIsNotBegunAgain(t *testing.T) { // P-7
	bubble(t, func(t *testing.T, r *rig) {
		a := beginAgain(r, 5*time.Second)
		a.owned(0)
		a.give()
		r.remain("PCI", 2)
		q := r.next(schemas.ReportBegin)
		if !q.Redelivered {
			t.Error("it asks at once, want it to wait for the attempt in hand first")
		}
		r.answer(q.ReplyTo, schemas.Permission{Nonce: q.Nonce, Reason: "another delivery of this task is at work"})
		r.next(schemas.ReportSuccess)
		a.over()
	})
}

// The same message once more is left to the lease that the attempt in hand keeps: a server that has forgotten that it has delivered it says
// nothing about the worker, and a redelivery after that one would say that the worker is lost.
func TestMessageInHandIsNotGivenBack(t *testing.T) { // P-7
	for _, asked := range []bool{false, true} {
		t.Run(fmt.Sprintf("asked for %v", asked), func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				a := newAgain(r, 30*time.Second)
				a.dispatch(func(t *schemas.ActivityTask) { t.NotIdempotent = asked })
				kind := schemas.ReportStarted
				if asked {
					kind = schemas.ReportBegin
				}
				told := r.next(kind)
				if err := r.conn.JetStream().DeleteConsumer(t.Context(), ns.StreamTasks("PCI"), subject.Consumer); err != nil {
					t.Fatal(err)
				}
				a.owned(0)
				r.openList("PCI") // delivers it for the first time
				if asked {
					r.quiet(3 * time.Second) // it is repeated after five
					r.answer(told.ReplyTo, schemas.Permission{Nonce: told.Nonce, Go: true})
				}
				r.next(schemas.ReportSuccess)
				a.over()
				if n := r.logged(logrus.DebugLevel, "the task is in hand already"); n != 1 {
					t.Errorf("it came %d times while it was in hand, want once", n)
				}
			})
		})
	}
}

// An outcome that was handed to an owner who died goes to the inbox when the next one says so, not when the patience is over.
func TestOutcomeIsNotLeftWithTheDead(t *testing.T) { // P-7
	bubble(t, func(t *testing.T, r *rig) {
		beaten := make(chan struct{}, 1)
		came := func(natsconn.Msg) { beaten <- struct{}{} }
		if _, err := r.conn.Subscribe(ns.AllOutcomes(0), "", came); err != nil {
			t.Fatal(err)
		}
		a := newAgain(r, 0)
		a.give()
		<-beaten
		a.owned(1)
		r.quiet(200 * time.Millisecond)
		a.owned(0)
		began := time.Now()
		r.next(schemas.ReportSuccess)
		if took := time.Since(began); took > 100*time.Millisecond {
			t.Errorf("the inbox had it after %v, want at once", took)
		}
		r.settled("PCI")
	})
}

// What was offered goes on its list too when its owner leaves, and whoever gets it asks (ADR 0023). The worker that is at it asks when that is over:
// its question would be in the inbox before its outcome, and the next owner grant it.
func TestOfferInHandIsNotAskedFor(t *testing.T) { // P-7
	bubble(t, func(t *testing.T, r *rig) {
		a := newAgain(r, 100*time.Millisecond)
		time.Sleep(time.Second)
		r.offer()
		time.Sleep(10 * time.Millisecond)
		a.dispatch(func(t *schemas.ActivityTask) { t.NotIdempotent = true })
		r.next(schemas.ReportStarted)
		r.next(schemas.ReportSuccess)
		q := r.next(schemas.ReportBegin)
		if !q.Redelivered {
			t.Error("the question says that the message was not delivered before")
		}
		r.answer(q.ReplyTo, schemas.Permission{Nonce: q.Nonce, Reason: "the activity is closed"})
		a.over()
	})
}

// An offer that comes to its turn after the copy of it that its owner has put on the list is left to that one.
func TestOfferIsLeftToItsCopyThatAsks(t *testing.T) { // P-7
	bubble(t, func(t *testing.T, r *rig) {
		a := newAgain(r, 0)
		time.Sleep(time.Second)
		a.dispatch(func(t *schemas.ActivityTask) { t.NotIdempotent = true })
		q := r.next(schemas.ReportBegin)
		r.offer()
		r.quiet(time.Second)
		if a.ran != 0 {
			t.Fatalf("it ran %d times before the answer, want none", a.ran)
		}
		r.answer(q.ReplyTo, schemas.Permission{Nonce: q.Nonce, Go: true})
		r.next(schemas.ReportSuccess)
		a.over()
	})
}
