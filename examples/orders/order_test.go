package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/drovertest"
	"github.com/droverhq/drover/schemas"
)

// scene is one order in virtual time, with the workers of the shop and of the card desk.
type scene struct {
	*drovertest.Env
	t    *testing.T
	shop *shop
	run  *drover.TypedRun[Receipt]
	stop func() // ends the worker of the shop
}

const id = "order-1"

// open begins the work of the shop.
func (s *scene) open() { s.stop = s.Go(s.shop.worker(s.Client)) }

// cards begins the work of the card desk, which takes money by a function.
func (s *scene) cards(charge func(context.Context, Payment) (Receipt, error)) {
	w := s.Client.Activities(&activity.Options{Lists: []string{listPCI}})
	activity.Implement(w, Charge, charge)
	activity.Implement(w, Refund, refund)
	s.Go(w)
}

func (s *scene) answer(a Approval) {
	s.t.Helper()
	if err := drover.Signal(s.t.Context(), s.run, Approve, a); err != nil {
		s.t.Fatal(err)
	}
	s.Await(id, schemas.EventSignal)
}

func (s *scene) cancel() {
	s.t.Helper()
	if err := s.run.Cancel(s.t.Context(), "the customer has called"); err != nil {
		s.t.Fatal(err)
	}
}

// A small order and a large one.
var (
	small = Order{
		Item: "kettle", Amount: 24_90, Card: cardGood, Address: "1 Mill Lane",
		Limit: 500_00, Patience: schemas.Duration(72 * time.Hour), Window: schemas.Duration(time.Hour),
	}
	large = changed(small, func(o *Order) { o.Item, o.Amount = "grand piano", 90_000_00 })
)

func changed(o Order, change func(*Order)) Order { change(&o); return o }

var yes = Approval{By: "Ada", OK: true}

// branches are the ways that an order may go.
var branches = []struct {
	name   string
	order  Order
	script func(s *scene)                                  // after the start
	charge func(context.Context, Payment) (Receipt, error) // nil: the usual one
	slow   time.Duration                                   // how long it takes to put goods back
	err    error                                           // nil: it is shipped
	did    string                                          // the activities that succeeded, and the child
}{
	{name: "small", order: small, did: "reserve paid ship"},
	{
		name: "approved", order: large, did: "reserve paid ship",
		script: func(s *scene) { s.Await(id, schemas.EventTimerScheduled); s.answer(yes) },
	},
	{
		name: "approved before it was asked", order: large, did: "reserve paid ship",
		script: func(s *scene) { s.answer(yes) },
	},
	{
		name: "rejected", order: large, err: Rejected, did: "reserve release",
		script: func(s *scene) { s.Await(id, schemas.EventTimerScheduled); s.answer(Approval{By: "Ada"}) },
	},
	{name: "nobody answers", order: large, err: NotApproved, did: "reserve release"},
	{
		// The workflow sees both at once, in the order in which they came.
		name: "approved in time, and nobody was there", order: large, did: "reserve paid ship",
		script: func(s *scene) {
			s.Await(id, schemas.EventTimerScheduled)
			s.stop()
			s.answer(yes)
			s.Await(id, schemas.EventTimerExpired)
			s.open()
		},
	},
	{
		name: "approved late, and nobody was there", order: large, err: NotApproved, did: "reserve release",
		script: func(s *scene) {
			s.Await(id, schemas.EventTimerScheduled)
			s.stop()
			s.Await(id, schemas.EventTimerExpired)
			s.answer(yes)
			s.open()
		},
	},
	{
		name: "approved late, while it is undone", order: large, slow: time.Minute, err: NotApproved, did: "reserve release",
		script: func(s *scene) {
			s.Await(id, schemas.EventTimerExpired)
			s.Sleep(30 * time.Second)
			s.answer(yes)
		},
	},
	{
		name: "canceled in time", order: small, err: errCanceled, did: "reserve release",
		script: func(s *scene) { s.Await(id, schemas.EventTimerScheduled); s.cancel() },
	},
	{
		name: "canceled before an answer", order: large, err: errCanceled, did: "reserve release",
		script: func(s *scene) { s.Await(id, schemas.EventTimerScheduled); s.cancel() },
	},
	{
		name: "canceled while it is paid", order: small, err: errCanceled, did: "reserve paid refund release",
		charge: func(ctx context.Context, p Payment) (Receipt, error) {
			time.Sleep(time.Minute)
			return charge(ctx, p)
		},
		script: func(s *scene) {
			s.Await(id, schemas.EventChildStarted)
			s.Sleep(30 * time.Second)
			s.cancel()
		},
	},
	{
		name: "the bank is reached at the second try", did: "reserve paid ship",
		order: changed(small, func(o *Order) { o.Card = cardFlaky }),
	},
	{
		name: "declined", err: Declined, did: "reserve release",
		order: changed(small, func(o *Order) { o.Card = cardBroke }),
	},
	{
		name: "no address", err: NoAddress, did: "reserve paid refund release",
		order: changed(small, func(o *Order) { o.Address = "" }),
	},
	{name: "no such goods", order: Order{Item: "unicorn"}, err: NoSuchGoods, did: "release"},
	{
		name: "the server crashes in between", order: small, did: "reserve paid ship",
		script: func(s *scene) { s.Await(id, schemas.EventTimerScheduled); s.Crash(2 * time.Hour) },
	},
}

// errCanceled is the end of an order that was canceled.
var errCanceled = errors.New("canceled")

func TestBranches(t *testing.T) {
	for _, b := range branches {
		t.Run(b.name, func(t *testing.T) {
			drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
				s := &scene{Env: e, t: t, shop: newShop(shelf)}
				s.shop.slow = b.slow
				s.open()
				if b.charge == nil {
					b.charge = charge
				}
				s.cards(b.charge)
				var err error
				if s.run, err = place(t.Context(), e.Client, id, b.order); err != nil {
					t.Fatal(err)
				}
				if b.script != nil {
					b.script(s)
				}
				r, err := drovertest.Result(e, s.run)
				want := stock{Shelf: map[string]int{"kettle": 10, "grand piano": 2}}
				switch canceled := e.Wait(s.run.Run).Status == schemas.StatusCanceled; {
				case b.err == nil:
					want.Shelf[b.order.Item]--
					want.Shipped = []string{id}
					if err != nil || r.Number != "C-order-1" {
						t.Errorf("got %+v, %v; want the receipt", r, err)
					}
				case b.err == errCanceled && canceled, errors.Is(err, b.err):
				default:
					t.Errorf("got %v, want %v", err, b.err)
				}
				if diff := cmp.Diff(want, s.shop.stock()); diff != "" {
					t.Errorf("stock (-want +got):\n%s", diff)
				}
				if got := done(e.History(id)); got != b.did {
					t.Errorf("it did %q, want %q", got, b.did)
				}
			})
		})
	}
}

// done are the steps of an order that succeeded, in their order.
func done(h drovertest.History) string {
	var all []string
	steps := steps{}
	for _, e := range h {
		text := steps.text(e)
		if slices.Contains([]schemas.EventType{schemas.EventActivitySuccess, schemas.EventChildSuccess}, e.Type()) {
			all = append(all, text)
		}
	}
	return strings.Join(all, " ")
}

// A payment that has begun comes to its own end, also when its order is ended by force.
func TestPaymentOutlivesOrder(t *testing.T) {
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		s := &scene{Env: e, t: t, shop: newShop(shelf)}
		s.open()
		run, err := place(t.Context(), e.Client, id, small)
		if err != nil {
			t.Fatal(err)
		}
		e.Await(id, schemas.EventChildStarted)
		if err := run.Terminate(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		s.cards(charge)
		if paid := e.Wait(e.Client.Run(paymentOf(id), "")); paid.Status != schemas.StatusCompleted {
			t.Errorf("the payment is %s, want completed", paid.Status)
		}
	})
}
