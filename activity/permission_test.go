package activity_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
)

func notIdempotent(t *schemas.ActivityTask) { t.NotIdempotent = true }

func TestNotIdempotentAsksFirst(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		ran := make(chan int, 1)
		w := r.worker()
		activity.Register(w, "work", ignoreIn(func(ctx context.Context) (string, error) {
			ran <- activity.Info(ctx).Attempt
			time.Sleep(time.Minute)
			return "done", nil
		}))
		r.start(w)
		seq := r.dispatch(notIdempotent)
		q := r.next(schemas.ReportBegin)
		want := schemas.Report{
			Kind: schemas.ReportBegin, Token: "RUN.5.1", Identity: "worker-1", TaskSequence: seq, Nonce: q.Nonce, ReplyTo: q.ReplyTo,
		}
		if diff := cmp.Diff(want, q.Report); diff != "" || q.Nonce == "" || q.ReplyTo == "" {
			t.Fatalf("P-7: question (-want +got):\n%s", diff)
		}
		select {
		case <-ran:
			t.Fatal("it ran before it was permitted")
		case <-time.After(time.Second):
		}
		// An answer to another question does not count.
		r.answer(q.ReplyTo, schemas.Permission{Nonce: q.Nonce + "x", Go: true})
		select {
		case <-ran:
			t.Fatal("it ran by the permission of another delivery")
		case <-time.After(time.Second):
		}
		r.answer(q.ReplyTo, schemas.Permission{Nonce: q.Nonce, Go: true, Attempt: 3, Token: "RUN.5.3"})
		if got := <-ran; got != 3 {
			t.Fatalf("got attempt %d, want 3, that of the permission", got)
		}
		got := r.next(schemas.ReportSuccess) // no started: the owner has written it
		if got.Token != "RUN.5.3" || got.Nonce != "" {
			t.Fatalf("got token %q and nonce %q, want the permission's token and no start", got.Token, got.Nonce)
		}
		r.settled("PCI")
	})
}

func TestDeniedTaskIsDropped(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		w := r.worker()
		activity.Register(w, "work", ignoreIn(func(context.Context) (string, error) {
			t.Error("it ran without permission")
			return "", nil
		}))
		r.start(w)
		r.dispatch(notIdempotent)
		q := r.next(schemas.ReportBegin)
		r.answer(q.ReplyTo, schemas.Permission{Nonce: q.Nonce, Reason: "closed"})
		r.settled("PCI")
		r.quiet(time.Minute)
	})
}

// P-7: a server that was killed delivers a task again without saying so. It is left to its lease, which the worker that has it
// keeps alive; once that is lost, the task comes back as what it is.
func TestTaskIsLeftToItsLease(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		w := r.worker()
		activity.Register(w, "work", ignoreIn(func(context.Context) (string, error) { return "done", nil }))
		r.start(w)
		seq := r.dispatch(notIdempotent)
		q := r.next(schemas.ReportBegin)
		r.answer(q.ReplyTo, schemas.Permission{Nonce: q.Nonce, Leave: true, Reason: "another delivery of this task is at work"})
		again := r.next(schemas.ReportBegin)
		if !again.Redelivered || again.TaskSequence != seq || again.Nonce == q.Nonce {
			t.Fatalf("got redelivered %v, sequence %d, nonce %q, want a redelivery of %d under another nonce", again.Redelivered, again.TaskSequence, again.Nonce, seq)
		}
		r.answer(again.ReplyTo, schemas.Permission{Nonce: again.Nonce, Go: true, Attempt: 2, Token: "RUN.5.2"})
		if got := r.next(schemas.ReportSuccess); got.Token != "RUN.5.2" {
			t.Fatalf("got token %q, want that of the next attempt", got.Token)
		}
		r.settled("PCI")
	})
}

func TestQuestionIsRepeatedWithItsNonce(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		w := r.worker()
		activity.Register(w, "work", ignoreIn(func(context.Context) (string, error) { return "done", nil }))
		r.start(w)
		r.dispatch(notIdempotent)
		first := r.next(schemas.ReportBegin)
		// Longer than AckWait: the lease must be kept, or the task would come a second time with another nonce.
		for i := range 10 {
			again := r.next(schemas.ReportBegin)
			if after := again.at.Sub(first.at); again.Nonce != first.Nonce || after != time.Duration(i+1)*5*time.Second {
				t.Fatalf("P-7: got nonce %q after %v, want %q every 5s", again.Nonce, after, first.Nonce)
			}
		}
		r.answer(first.ReplyTo, schemas.Permission{Nonce: first.Nonce, Go: true})
		r.answer(first.ReplyTo, schemas.Permission{Nonce: first.Nonce, Go: true})
		if got := r.next(schemas.ReportSuccess); got.Token != first.Token {
			t.Errorf("got token %q after a permission that gives none, want the task's", got.Token)
		}
		r.settled("PCI")
		r.quiet(time.Minute)
	})
}

func TestRedeliveryAsksFirst(t *testing.T) {
	for _, permitted := range []bool{true, false} {
		name := "P-7/finished work is told to drop"
		if permitted {
			name = "P-7/lost work gets the next attempt"
		}
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				seq := r.dispatch()
				r.loseDelivery("PCI")
				ran := 0
				w := r.worker()
				activity.Register(w, "work", ignoreIn(func(context.Context) (string, error) { ran++; return "done", nil }))
				r.start(w)
				q := r.next(schemas.ReportBegin)
				if !q.Redelivered || q.TaskSequence != seq || q.Token != "RUN.5.1" {
					t.Fatalf("got redelivered %v, sequence %d, token %q, want true, %d and the task's", q.Redelivered, q.TaskSequence, q.Token, seq)
				}
				r.answer(q.ReplyTo, schemas.Permission{Nonce: q.Nonce, Go: permitted, Attempt: 2, Token: "RUN.5.2"})
				if permitted {
					if got := r.next(schemas.ReportSuccess); got.Token != "RUN.5.2" {
						t.Fatalf("got token %q, want that of the next attempt", got.Token)
					}
				}
				r.settled("PCI")
				r.quiet(time.Minute)
				if want := map[bool]int{true: 1}[permitted]; ran != want {
					t.Fatalf("it ran %d times, want %d", ran, want)
				}
			})
		})
	}
}

// loseDelivery takes a list's first task as a worker that dies at once would, and waits until its lease is over.
func (r *rig) loseDelivery(list string) {
	r.t.Helper()
	c, err := r.conn.JetStream().Consumer(r.t.Context(), ns.StreamTasks(list), subject.Consumer)
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err = c.Next(); err != nil {
		r.t.Fatal(err)
	}
	time.Sleep(ackWait + time.Second)
}

func TestQuestionThatIsNotStoredIsRepeated(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.remove(ns.StreamIn(0))
		questions := make(chan schemas.Report, 100)
		w := r.worker()
		activity.Register(w, "work", ignoreIn(func(context.Context) (string, error) { return "done", nil }))
		r.start(w)
		r.dispatch(notIdempotent)
		time.Sleep(3 * time.Second)
		r.inbox(questions)
		back := time.Now()
		q := <-questions
		if wait := time.Since(back); wait > time.Second {
			t.Errorf("it was asked %v after the return of the inbox, want it soon: nothing was stored whose answer is to come", wait)
		}
		r.answer(q.ReplyTo, schemas.Permission{Nonce: q.Nonce, Go: true})
		for q.Kind == schemas.ReportBegin {
			q = <-questions
		}
		if q.Kind != schemas.ReportSuccess {
			t.Fatalf("got %s, want success", q.Kind)
		}
		r.settled("PCI")
	})
}

// A drain that is out of time hands back what is still asked for, all of it: whoever waits for an answer has done nothing yet.
func TestDrainWhileTasksAreAskedFor(t *testing.T) {
	const tasks = 20
	bubble(t, func(t *testing.T, r *rig) {
		r.logger.AddHook(hook(func(e *logrus.Entry) {
			if e.Message == "the worker stops before the activity has ended; another worker gets the task" {
				for range 1000 { // a slow terminal, while those who ask hear that they wait in vain
					runtime.Gosched()
				}
			}
		}))
		w := r.worker(func(o *activity.Options) { o.DrainTimeout = time.Second })
		activity.Register(w, "work", ignoreIn(func(context.Context) (string, error) { return "done", nil }))
		stop := r.start(w)
		for n := range tasks {
			r.dispatch(notIdempotent, func(t *schemas.ActivityTask) { t.Token = fmt.Sprint("RUN.5.", n) })
			r.next(schemas.ReportBegin)
		}
		if err := stop(); !errors.Is(err, activity.ErrDrainTimeout) || !strings.Contains(err.Error(), "20 tasks") {
			t.Errorf("got %v, want ErrDrainTimeout and 20 tasks", err)
		}
		time.Sleep(time.Second)
		r.remain("PCI", tasks)
	})
}
