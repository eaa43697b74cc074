package main

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/drovertest"
	"github.com/droverhq/drover/schemas"
)

// scene is one order in virtual time: the real deciders, shop and card desk, which fail where the test says so.
type scene struct {
	*drovertest.Env
	t    *testing.T
	shop *shop
	told *lines
	text bytes.Buffer // what humans were told
	run  *drover.Run

	mu   sync.Mutex
	fail map[string]error // of an activity type
	took map[string]int   // attempts of an activity type
}

const id = "order-1"

func (s *scene) deciders() {
	w := s.Client.Deciders(nil)
	w.Register(typeOrder, decider.Func(decideOrder))
	w.Register(typePayment, decider.Func(decidePayment))
	s.Go(w)
}

// worker runs activities until the test ends or stop is called.
func (s *scene) worker(list string, register func(*activity.Worker)) (stop func()) {
	w := s.Client.Activities(&activity.Options{Lists: []string{list}, DrainTimeout: time.Second, Identity: list})
	register(w)
	return s.Go(w)
}

func (s *scene) shopWorker() {
	s.worker(listShop, func(w *activity.Worker) {
		activity.Register(w, actReserve, failing(s, s.shop.reserve))
		activity.Register(w, actRelease, failing(s, s.shop.release))
		activity.Register(w, actShip, failing(s, s.shop.ship))
		activity.Register(w, actAlert, failing(s, s.shop.alert))
	})
}

func (s *scene) cardDesk() {
	s.worker(listPCI, func(w *activity.Worker) {
		activity.Register(w, actCharge, failing(s, charge))
		activity.Register(w, actRefund, failing(s, refund))
	})
}

// errSlow makes an activity take longer than it may.
var errSlow = errors.New("slow")

func failing[In, Out any](s *scene, fn func(context.Context, In) (Out, error)) func(context.Context, In) (Out, error) {
	return func(ctx context.Context, in In) (out Out, err error) {
		act := activity.Info(ctx).Type
		s.mu.Lock()
		s.took[act]++
		err = s.fail[act]
		s.mu.Unlock()
		switch {
		case errors.Is(err, errSlow):
			<-ctx.Done()
			return out, context.Cause(ctx)
		case err != nil:
			return out, err
		}
		return fn(ctx, in)
	}
}

func (s *scene) attempts(act string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.took[act]
}

func (s *scene) signal(name string, input any) {
	s.t.Helper()
	if err := s.run.Signal(s.t.Context(), name, input); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) cancel() {
	s.t.Helper()
	if err := s.run.Cancel(s.t.Context(), "called"); err != nil {
		s.t.Fatal(err)
	}
}

// armed waits until the order waits for a timer, which must be its first one.
func (s *scene) armed() { s.t.Helper(); s.Await(id, schemas.EventTimerScheduled) }

// play starts an order, lets the script do what it does and waits for the end.
func play(t *testing.T, o order, fail map[string]error, script func(s *scene)) (s *scene, out *drover.Outcome) {
	t.Helper()
	s = &scene{fail: fail, took: map[string]int{}}
	s.told = &lines{w: &s.text}
	s.shop = newShop(shelf, s.told)
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		s.Env, s.t = e, t
		s.deciders()
		var err error
		if s.run, err = place(t.Context(), e.Client, id, o); err != nil {
			t.Fatal(err)
		}
		if script == nil {
			s.open()
		} else {
			script(s)
		}
		out = e.Wait(s.run)
		s.history(t)
	})
	return s, out
}

func (s *scene) open() { s.shopWorker(); s.cardDesk() }

// history keeps the course of the order for later, and checks that every step has its marker and that each marker points to
// an event that was there before it.
func (s *scene) history(t *testing.T) {
	t.Helper()
	h := s.History(id)
	s.text.WriteString("\n" + h.String())
	seen := map[string]bool{}
	for _, e := range h {
		a, is := e.Attributes.(*schemas.Marker)
		if !is {
			continue
		}
		if at := decode[entry](a.Details); at.Event < 1 || at.Event >= e.ID || seen[a.MarkerName] {
			t.Errorf("marker %s of event %d points to event %d, and was seen before: %v", a.MarkerName, e.ID, at.Event, seen[a.MarkerName])
		}
		seen[a.MarkerName] = true
	}
}

// a small order and a large one.
var (
	small = order{
		Item: "kettle", Amount: 24_90, Card: cardGood, Address: "1 Mill Lane",
		Limit: 500_00, Patience: schemas.Duration(72 * time.Hour), Window: schemas.Duration(time.Hour),
	}
	large = changed(small, func(o *order) { o.Item, o.Amount = "grand piano", 90_000_00 })
)

func changed(o order, change func(*order)) order { change(&o); return o }

var (
	yes = approval{By: "Ada", OK: true}
	no  = approval{By: "Ada"}
)

// What the branches have in common: the beginning of a history up to the window, and the ends.
const (
	kept     = "reserved"
	returned = "returned"
	sold     = "sold"
)

// branch is a way that an order may go.
type branch struct {
	name   string
	order  order
	fail   map[string]error
	script func(s *scene)
	status schemas.Status
	reason string
	goods  string   // kept, returned or sold
	want   []string // events in this order, with others in between
	never  []string
	alert  string // what the human was told; empty: nothing
	took   map[string]int
}

func TestBranches(t *testing.T) {
	for _, b := range slices.Concat(approvals, cancels, payments, shipments, oddities) {
		t.Run(b.name, func(t *testing.T) {
			s, out := play(t, b.order, b.fail, b.script)
			text := s.text.String()
			if got, want := ending(out.Status, out.Reason), ending(b.status, b.reason); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			have, want := s.shop.stock(), stock{Shelf: map[string]int{"kettle": 10, "grand piano": 1}}
			switch b.goods {
			case kept:
				want.Reserved = []string{id}
			case sold:
				want.Shipped = []string{id}
			}
			if b.goods != returned {
				want.Shelf[b.order.Item]--
			}
			if diff := cmp.Diff(want, have); diff != "" {
				t.Errorf("stock (-want +got):\n%s", diff)
			}
			if _, told, is := strings.Cut(text, "ALERT   order-1    "); is != (b.alert != "") || !strings.HasPrefix(told, b.alert) {
				t.Errorf("got %q, want an alert %q", text, b.alert)
			}
			for act, n := range b.took {
				if got := s.attempts(act); got != n {
					t.Errorf("got %d attempts of %s, want %d", got, act, n)
				}
			}
			inOrder(t, text, b.want)
			for _, word := range b.never {
				if strings.Contains(text, " "+word) {
					t.Errorf("got %q, want none of it", word)
				}
			}
			if t.Failed() {
				t.Log(text)
			}
		})
	}
}

// inOrder looks for words, each after the one before it.
func inOrder(t *testing.T, text string, words []string) {
	t.Helper()
	for _, w := range words {
		_, after, found := strings.Cut(text, " "+w)
		if !found {
			t.Errorf("got no %q after those before it, want the order %q", w, words)
			return
		}
		text = after
	}
}
