package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/schemas"
)

// shelf is what the shop has at first.
var shelf = map[string]int{"kettle": 10, "grand piano": 2}

// visit is an order, what its customer or the shop does about it, and how it should end.
type visit struct {
	id    string
	about string
	order Order
	// react is called when the order waits for the first time.
	react  func(context.Context, *drover.Run) error
	status schemas.Status
	reason string
	ships  bool
}

// visits are six customers. They wait for a short time where nobody comes.
func visits(prefix string) []visit {
	kettle := Order{
		Item: "kettle", Amount: 24_90, Card: cardGood, Address: "1 Mill Lane",
		Limit: 500_00, Patience: schemas.Seconds(60), Window: schemas.Seconds(0.3),
	}
	with := func(change func(*Order)) Order { o := kettle; change(&o); return o }
	piano := func(patience float64) Order {
		return with(func(o *Order) {
			o.Item, o.Amount, o.Patience = "grand piano", 90_000_00, schemas.Seconds(patience)
		})
	}
	all := []visit{
		{
			about: "goes well, at the bank's second try", status: schemas.StatusCompleted,
			order: with(func(o *Order) { o.Card = cardFlaky }), ships: true,
		},
		{
			about: "is canceled by the customer, in time", status: schemas.StatusCanceled,
			order: with(func(o *Order) { o.Window = schemas.Seconds(60) }),
			react: func(ctx context.Context, r *drover.Run) error {
				return r.Cancel(ctx, "the customer has called")
			},
		},
		{
			about: "is large, and is approved", status: schemas.StatusCompleted,
			order: piano(60), ships: true,
			react: func(ctx context.Context, r *drover.Run) error {
				return drover.Signal(ctx, r, Approve, Approval{By: "Ada", OK: true})
			},
		},
		{
			about: "is large, and nobody answers", status: schemas.StatusFailed,
			order: piano(0.3), reason: NotApproved.Reason(),
		},
		{
			about: "has a card that is declined", status: schemas.StatusFailed,
			order: with(func(o *Order) { o.Card = cardBroke }), reason: Declined.Reason(),
		},
		{
			about: "is paid and cannot be shipped", status: schemas.StatusFailed,
			order: with(func(o *Order) { o.Address = "" }), reason: NoAddress.Reason(),
		},
	}
	for i := range all {
		all[i].id = fmt.Sprintf("%s-%d", prefix, i+1)
	}
	return all
}

// serveCustomers places all orders, waits for their ends, and takes stock.
func serveCustomers(ctx context.Context, client *drover.Client, prefix string, s *shop, out *lines) error {
	began := time.Now()
	all := visits(prefix)
	ends := make([]string, len(all))
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i, v := range all {
		wg.Go(func() {
			if ends[i], errs[i] = v.pay(ctx, client, out); errs[i] != nil {
				errs[i] = fmt.Errorf("%s, which %s: %w", v.id, v.about, errs[i])
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	fmt.Fprintln(out)
	for i, v := range all {
		fmt.Fprintf(out, "%-10s %-36s %s\n", v.id, v.about, ends[i])
	}
	have := s.stock()
	fmt.Fprintf(out, "in stock: %d kettles and %d grand piano; shipped: %d; still reserved: %d\n",
		have.Shelf["kettle"], have.Shelf["grand piano"], len(have.Shipped), len(have.Reserved))
	if want := expected(all); !reflect.DeepEqual(have, want) {
		return fmt.Errorf("the stock is %+v, want %+v", have, want)
	}
	fmt.Fprintf(out, "%d orders in %.1f s, and all ended as they should\n", len(all), time.Since(began).Seconds())
	return nil
}

// expected is the stock after the visits: what was shipped is gone, and everything else is back.
func expected(all []visit) stock {
	want := stock{Shelf: maps.Clone(shelf)}
	for _, v := range all {
		if v.ships {
			want.Shelf[v.order.Item]--
			want.Shipped = append(want.Shipped, v.id)
		}
	}
	slices.Sort(want.Shipped)
	return want
}

// place starts the workflow of an order. Its payment is left alone if the order is ended by force: a
// charge that has begun must come to its own end.
func place(
	ctx context.Context, client *drover.Client, id string, o Order,
) (*drover.TypedRun[Receipt], error) {
	return drover.Start(ctx, client, Deliver, o, &drover.StartOptions{
		ID: id, Tags: []string{o.Item}, ChildPolicy: schemas.ChildAbandon,
	})
}

// pay places the order, prints its steps as they are taken, and does what its customer does.
func (v *visit) pay(ctx context.Context, client *drover.Client, out *lines) (string, error) {
	run, err := place(ctx, client, v.id, v.order)
	if err != nil {
		return "", err
	}
	var start schemas.Timestamp
	steps, waits := steps{}, 0
	for e, err := range run.History(ctx, drover.HistoryOptions{Follow: true}) {
		if err != nil {
			return "", err
		}
		if e.ID == 1 {
			start = e.Time
		}
		if text := steps.text(e); text != "" {
			fmt.Fprintf(out, "%6.3fs %-10s %s\n", e.Time.Sub(start).Seconds(), v.id, text)
		}
		if e.Type() != schemas.EventTimerScheduled {
			continue
		}
		if waits++; waits == 1 && v.react != nil {
			if err := v.react(ctx, run.Run); err != nil {
				return "", err
			}
		}
	}
	outcome, err := run.Wait(ctx)
	if err != nil {
		return "", err
	}
	end := ending(outcome.Status, outcome.Reason)
	if end != ending(v.status, v.reason) {
		return "", fmt.Errorf("it ended as %s, want %s", end, ending(v.status, v.reason))
	}
	return end, nil
}

// ending is how an order ended, in words.
func ending(status schemas.Status, reason string) string {
	if status != schemas.StatusFailed {
		return string(status)
	}
	return string(status) + ": " + reason
}

// steps are the names of activities, by the events that scheduled them.
type steps map[int64]string

// text is what an event says about an order; empty for those that are about deciders and workers.
func (s steps) text(e schemas.Event) string {
	switch a := e.Attributes.(type) {
	case *schemas.WorkflowStarted:
		o, err := Deliver.DecodeInput(a.Input)
		if err != nil {
			return err.Error()
		}
		return fmt.Sprintf("placed: %s for %d.%02d", o.Item, o.Amount/100, o.Amount%100)
	case *schemas.ActivityScheduled:
		s[e.ID] = a.ActivityType
	case *schemas.ActivitySuccess:
		return s[a.ScheduledEventID]
	case *schemas.ActivityFailed:
		return s[a.ScheduledEventID] + " failed: " + a.Reason
	case *schemas.TimerScheduled:
		return "waits"
	case *schemas.TimerExpired:
		return "has waited"
	case *schemas.Signal:
		return a.SignalName
	case *schemas.WorkflowCancelRequested:
		return "cancel requested"
	case *schemas.ChildSuccess:
		return "paid"
	case *schemas.ChildFailed:
		return "not paid: " + a.Reason
	case *schemas.WorkflowSuccess:
		return "completed"
	case *schemas.WorkflowFailed:
		return "failed: " + a.Reason
	case *schemas.WorkflowCanceled:
		return "canceled"
	}
	return ""
}
