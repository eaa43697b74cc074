package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/schemas"
)

// shelf is what the shop has at first.
var shelf = map[string]int{"kettle": 10, "grand piano": 1}

// visit is an order, what its customer does about it, and how it should end.
type visit struct {
	id     string
	about  string
	order  order
	timers map[string]func(context.Context, *drover.Run) error // what to do when a timer is armed
	status schemas.Status
	reason string
	ships  bool
}

// visits are six customers. Their windows are short where somebody waits for the end of one.
func visits(prefix string) []visit {
	kettle := order{
		Item: "kettle", Amount: 24_90, Card: cardGood, Address: "1 Mill Lane",
		Limit: 500_00, Patience: schemas.Seconds(60), Window: schemas.Seconds(0.3),
	}
	with := func(change func(*order)) order { o := kettle; change(&o); return o }
	unhurried := with(func(o *order) { o.Window = schemas.Seconds(60) })
	all := []visit{
		{
			about: "goes well, at the bank's second try", status: schemas.StatusCompleted, ships: true,
			order: with(func(o *order) { o.Card = cardFlaky }),
		},
		{
			about: "is canceled by the customer, in time", status: schemas.StatusCanceled, order: unhurried,
			timers: map[string]func(context.Context, *drover.Run) error{timerWindow: func(ctx context.Context, r *drover.Run) error {
				return r.Signal(ctx, signalCancel, nil)
			}},
		},
		{
			about: "is canceled by a cancel request", status: schemas.StatusCanceled, order: unhurried,
			timers: map[string]func(context.Context, *drover.Run) error{timerWindow: func(ctx context.Context, r *drover.Run) error {
				return r.Cancel(ctx, "the customer has called")
			}},
		},
		{
			about: "is large, and is approved", status: schemas.StatusCompleted, ships: true,
			order: with(func(o *order) { o.Item, o.Amount = "grand piano", 90_000_00 }),
			timers: map[string]func(context.Context, *drover.Run) error{timerApproval: func(ctx context.Context, r *drover.Run) error {
				return r.Signal(ctx, signalApprove, approval{By: "Ada", OK: true})
			}},
		},
		{
			about: "has a card that is declined", status: schemas.StatusFailed, reason: reasonDeclined,
			order: with(func(o *order) { o.Card = cardBroke }),
		},
		{
			about: "is paid and cannot be shipped", status: schemas.StatusFailed, reason: reasonNoAddress,
			order: with(func(o *order) { o.Address = "" }),
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
	fmt.Fprintf(out, "in stock: %d kettles and %d grand pianos; shipped: %d; still reserved: %d\n",
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

// place starts the workflow of an order. Its payment is left alone if the order is ended by force: a charge that has begun
// must come to its own end. That is for the order's child policy to say; the payment's own is about children of its own.
func place(ctx context.Context, client *drover.Client, id string, o order) (*drover.Run, error) {
	return client.Start(ctx, typeOrder, o, &drover.StartOptions{ID: id, Tags: []string{o.Item}, ChildPolicy: schemas.ChildAbandon})
}

// pay places the order, prints its steps as they are taken, and does what its customer does.
func (v *visit) pay(ctx context.Context, client *drover.Client, out *lines) (end string, err error) {
	run, err := place(ctx, client, v.id, v.order)
	if err != nil {
		return "", err
	}
	var start schemas.Timestamp
	say := func(e schemas.Event, step, note string) {
		line := fmt.Sprintf("%6.3fs %-10s %-16s %s", e.Time.Sub(start).Seconds(), v.id, step, note)
		fmt.Fprintln(out, strings.TrimRight(line, " "))
	}
	var last schemas.Event
	for e, err := range run.History(ctx, drover.HistoryOptions{Follow: true}) {
		if err != nil {
			return "", err
		}
		switch a := e.Attributes.(type) {
		case *schemas.WorkflowStarted:
			start = e.Time
			say(e, "placed", fmt.Sprintf("%s for %d.%02d", v.order.Item, v.order.Amount/100, v.order.Amount%100))
		case *schemas.Marker:
			at := decode[entry](a.Details)
			say(e, a.MarkerName, fmt.Sprintf("event %-3d %s", at.Event, at.Note))
		case *schemas.TimerScheduled:
			if react := v.timers[a.TimerID]; react != nil {
				if err := react(ctx, run); err != nil {
					return "", err
				}
			}
		}
		last = e
	}
	outcome, err := run.Wait(ctx)
	if err != nil {
		return "", err
	}
	say(last, string(outcome.Status), "")
	if end = ending(outcome.Status, outcome.Reason); end != ending(v.status, v.reason) {
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
