package activity_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/schemas"
)

// offer offers a task as the owner of a workflow does, and returns where refusals come.
func (r *rig) offer(edit ...func(*schemas.ActivityTask)) <-chan string {
	r.t.Helper()
	t := task(edit...)
	body, err := json.Marshal(t)
	if err != nil {
		r.t.Fatal(err)
	}
	return r.offerBody(body)
}

func (r *rig) offerBody(body []byte) <-chan string {
	r.t.Helper()
	refusals := make(chan string, 8)
	inbox := r.conn.NATS().NewInbox()
	sub, err := r.conn.Subscribe(inbox, "", func(m natsconn.Msg) { refusals <- m.Header.Get("Status") + string(m.Data) })
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = sub.Close() })
	if err := r.conn.PublishReply(ns.Offer("PCI"), inbox, nil, body); err != nil {
		r.t.Fatal(err)
	}
	return refusals
}

// hearing starts a worker that does what it is offered at once, and waits until it hears.
func (r *rig) hearing() {
	r.t.Helper()
	w := r.worker()
	activity.Register(w, "work", ignoreIn(func(context.Context) (string, error) { return "done", nil }))
	r.start(w)
	time.Sleep(time.Second)
}

func TestOfferIsDone(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.hearing()
		refusals := r.offer()
		got := r.next(schemas.ReportSuccess)
		if got.Token != "RUN.5.1" || got.Elapsed <= 0 || got.TaskSequence != 0 || got.Nonce == "" || got.Offered {
			t.Fatalf("got %+v, want an outcome that carries its start", got)
		}
		r.quiet(time.Minute)
		if len(refusals) > 0 {
			t.Fatalf("it was refused (%q) and done", <-refusals)
		}
	})
}

// One slot, and it is taken: by an offer, by a task of the list.
func TestBusyWorkerRefusesOffers(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		w := r.worker(func(o *activity.Options) { o.Concurrency, o.StartedAfter = 1, time.Hour })
		activity.Register(w, "work", ignoreIn(func(context.Context) (string, error) { time.Sleep(time.Second); return "done", nil }))
		r.start(w)
		time.Sleep(time.Second)
		first := r.offer()
		if got := <-r.offer(); got != "busy" {
			t.Fatalf("got %q, want busy", got)
		}
		r.next(schemas.ReportSuccess)
		r.dispatch()
		time.Sleep(500 * time.Millisecond)
		if got := <-r.offer(); got != "busy" {
			t.Fatalf("got %q, want busy", got)
		}
		r.next(schemas.ReportSuccess)
		time.Sleep(100 * time.Millisecond)
		r.offer()
		r.next(schemas.ReportSuccess)
		if len(first) > 0 {
			t.Fatalf("the first offer was refused: %q", <-first)
		}
	})
}

// What is on the list was there before: a worker that does not know it to be empty takes no offer.
func TestOfferDoesNotOvertakeTheList(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		w := r.worker(func(o *activity.Options) { o.Concurrency, o.StartedAfter = 2, time.Hour })
		activity.Register(w, "work", ignoreIn(func(context.Context) (string, error) { time.Sleep(time.Second); return "done", nil }))
		for range 10 {
			r.dispatch()
		}
		r.start(w)
		time.Sleep(1500 * time.Millisecond)
		if got := <-r.offer(); got != "busy" {
			t.Fatalf("got %q, want busy", got)
		}
		for range 10 {
			r.next(schemas.ReportSuccess)
		}
	})
}

// The start of an offer that takes long is announced as such, and the worker answers for it while it is at it.
func TestLongOffer(t *testing.T) { // P-7
	bubble(t, func(t *testing.T, r *rig) {
		w := r.worker()
		activity.Register(w, "work", ignoreIn(func(context.Context) (string, error) { time.Sleep(time.Minute); return "done", nil }))
		r.start(w)
		holds := func(token string) bool {
			t.Helper()
			body, err := json.Marshal(&schemas.Control{V: 1, Kind: schemas.ControlHolds, Token: token})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			m, err := r.conn.Request(ctx, ns.Control("worker-1"), nil, body)
			if errors.Is(err, natsconn.ErrTimeout) {
				return false
			}
			var a schemas.ControlAnswer
			if err == nil {
				err = schemas.Unmarshal(m.Data, &a)
			}
			if err != nil || a.Node != "worker-1" {
				t.Fatalf("got %s, %v", m.Data, err)
			}
			return a.Holds
		}
		time.Sleep(time.Second)
		r.offer()
		if got := r.next(schemas.ReportStarted); !got.Offered || got.TaskSequence != 0 || got.Identity != "worker-1" {
			t.Fatalf("got %+v, want the start of an offer", got)
		}
		if !holds("RUN.5.1") || holds("RUN.5.2") {
			t.Fatal("the worker does not answer for what it is at, or for something else")
		}
		r.next(schemas.ReportSuccess)
		time.Sleep(time.Second)
		if holds("RUN.5.1") {
			t.Fatal("the worker answers for what it has done")
		}
	})
}

// What the worker cannot do goes back to the owner; what nobody can read is left to it.
func TestOfferIsGivenBack(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		w := r.worker(func(o *activity.Options) { o.DrainTimeout = 2 * time.Second })
		activity.Register(w, "work", ignoreIn(func(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() }))
		stop := r.start(w)
		time.Sleep(time.Second)
		r.offer(func(t *schemas.ActivityTask) { t.Type, t.Token = "unknown", "RUN.6.1" })
		if got := r.next(schemas.ReportReturned); got.Token != "RUN.6.1" || got.Identity != "worker-1" {
			t.Fatalf("got %+v, want RUN.6.1, and by whom", got.Report)
		}
		r.offerBody([]byte("{"))
		r.quiet(time.Minute)
		if _, err := r.conn.LastBySubject(t.Context(), ns.StreamDead(), ns.AllDead()); !errors.Is(err, natsconn.ErrNotFound) {
			t.Fatalf("got %v, want no dead letter: that of its copy on the list is enough", err)
		}
		r.offer()
		r.next(schemas.ReportStarted)
		if err := stop(); !errors.Is(err, activity.ErrDrainTimeout) {
			t.Fatalf("got %v, want ErrDrainTimeout", err)
		}
		if got := r.next(schemas.ReportReturned); got.Token != "RUN.5.1" {
			t.Fatalf("got %s, want RUN.5.1", got.Token)
		}
		if got := <-r.offer(); got != "503" {
			t.Fatalf("got %q, want that nobody hears offers any more", got)
		}
	})
}

// A worker that stood still comes to its offers when their owner has put them on the list, and somebody else may have done them: it asks. Here
// the clock is one, so an offer that lay there for as long is one that was made then.
func TestStaleOfferAsks(t *testing.T) { // P-7
	for _, tc := range []struct {
		name                  string
		scheduled, dispatched time.Duration // ago
		idle                  time.Duration // before
		asks                  bool
	}{
		{"in time", 900 * time.Millisecond, 0, 0, false},
		{"lay there", 1100 * time.Millisecond, 0, 0, true},
		{"lay there for longer than clocks are remembered", time.Hour, 0, 10 * time.Minute, true},
		{"was given away late", time.Hour, 900 * time.Millisecond, 0, false},
		{"was given away late, and lay there", time.Hour, 1100 * time.Millisecond, 0, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				r.hearing()
				r.offer()
				r.next(schemas.ReportSuccess)
				time.Sleep(tc.idle)
				for _, token := range []string{"RUN.6.1", "RUN.7.1"} { // the first must not be what the second is judged by
					r.offer(func(task *schemas.ActivityTask) {
						task.Token, task.ScheduledAt = token, schemas.At(time.Now().Add(-tc.scheduled))
						if tc.dispatched > 0 {
							task.DispatchedAt = schemas.At(time.Now().Add(-tc.dispatched))
						}
					})
					if tc.asks {
						q := r.next(schemas.ReportBegin)
						r.answer(q.ReplyTo, schemas.Permission{Nonce: q.Nonce, Reason: "closed"})
						r.quiet(time.Second)
					} else {
						r.next(schemas.ReportSuccess)
					}
				}
			})
		})
	}
}

// A server whose clock was set back must not have each of its offers asked for.
func TestOffersOfAClockThatWasSetBack(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.hearing()
		r.offer()
		r.next(schemas.ReportSuccess)
		asked := 0
		for range 10 {
			time.Sleep(time.Minute)
			r.offer(func(task *schemas.ActivityTask) { task.ScheduledAt = schemas.At(time.Now().Add(-time.Hour)) })
			got := <-r.reports
			for got.Kind == schemas.ReportBegin {
				asked++
				r.answer(got.ReplyTo, schemas.Permission{Nonce: got.Nonce, Go: true})
				got = <-r.reports
			}
			if got.Kind != schemas.ReportSuccess {
				t.Fatalf("got %+v, want it done", got.Report)
			}
		}
		if asked == 0 || asked > 5 {
			t.Errorf("%d of 10 were asked for, want them to be until the clock is known anew", asked)
		}
	})
}
