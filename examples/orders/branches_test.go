package main

import (
	"context"
	"errors"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/schemas"
)

// An order above the limit waits for somebody.
var approvals = []branch{
	{
		name: "approved", order: large, script: func(s *scene) { s.open(); s.armed(); s.signal(signalApprove, yes) },
		status: schemas.StatusCompleted, goods: sold,
		want: []string{
			"TimerScheduled approval", "Signal approve", "Marker approved", "TimerCanceled approval", "TimerScheduled window",
			"TimerExpired window", "ChildScheduled", "Marker shipped",
		},
	},
	{
		name: "approved before it is asked", order: large, script: func(s *scene) { s.signal(signalApprove, yes); s.open() },
		status: schemas.StatusCompleted, goods: sold, want: []string{"Marker approved", "TimerScheduled window"}, never: []string{"TimerScheduled approval"},
	},
	{
		name: "rejected", order: large, script: func(s *scene) { s.open(); s.armed(); s.signal(signalApprove, no) },
		status: schemas.StatusFailed, reason: reasonRejected, goods: returned,
		want: []string{"TimerCanceled approval", "ActivityScheduled release", "WorkflowFailed"}, never: []string{"TimerScheduled window", "Child"},
	},
	{
		name: "nobody answers", order: large, status: schemas.StatusFailed, reason: reasonNoApproval, goods: returned,
		want: []string{"TimerExpired approval", "Marker trouble", "ActivitySuccess release"}, never: []string{"TimerScheduled window"},
	},
	{
		name: "an answer that is none", order: large,
		script: func(s *scene) {
			s.open()
			s.armed()
			s.signal(signalApprove, []byte("no JSON"))
			s.signal(signalApprove, yes)
		},
		status: schemas.StatusCompleted, goods: sold, want: []string{"Signal approve", "Signal approve", "Marker approved"},
	},
	{
		name: "approved without need", order: small, script: func(s *scene) { s.signal(signalApprove, no); s.open() },
		status: schemas.StatusCompleted, goods: sold, never: []string{"Marker approved", "Marker trouble"},
	},
}

// A customer may cancel until the window is over.
var cancels = []branch{
	{
		name: "S1-47/canceled in the window", order: small, script: func(s *scene) { s.open(); s.armed(); s.signal(signalCancel, nil) },
		status: schemas.StatusCanceled, goods: returned,
		want: []string{
			"TimerScheduled window", "Signal cancel", "DeciderScheduled", "DeciderStarted", "DeciderCompleted", "Marker canceled",
			"TimerCanceled window", "ActivityScheduled release", "ActivitySuccess release", "WorkflowCanceled",
		},
		never: []string{"TimerExpired", "Child"},
	},
	{
		name: "cancel requested in the window", order: small, script: func(s *scene) { s.open(); s.armed(); s.Sleep(59 * time.Minute); s.cancel() },
		status: schemas.StatusCanceled, goods: returned,
		want: []string{"WorkflowCancelRequested", "TimerCanceled window", "ActivitySuccess release", "WorkflowCanceled"}, never: []string{"TimerExpired", "Child"},
	},
	{
		name: "canceled while it waits for an approval", order: large, script: func(s *scene) { s.open(); s.armed(); s.signal(signalCancel, nil) },
		status: schemas.StatusCanceled, goods: returned, want: []string{"TimerCanceled approval", "WorkflowCanceled"}, never: []string{"TimerScheduled window"},
	},
	{
		name: "canceled while goods are reserved", order: small,
		script: func(s *scene) {
			s.Await(id, schemas.EventActivityScheduled)
			s.signal(signalCancel, nil)
			s.Sleep(time.Second)
			s.open()
		},
		status: schemas.StatusCanceled, goods: returned,
		want: []string{"Marker canceled", "ActivitySuccess reserve", "ActivityScheduled release", "WorkflowCanceled"}, never: []string{"TimerScheduled"},
	},
	{
		name: "canceled, and nothing was there", order: small, fail: map[string]error{actReserve: activity.Fail(reasonOutOfStock, nil)},
		script: func(s *scene) {
			s.Await(id, schemas.EventActivityScheduled)
			s.signal(signalCancel, nil)
			s.Sleep(time.Second)
			s.open()
		},
		status: schemas.StatusCanceled, goods: returned, want: []string{"ActivityFailed reserve", "WorkflowCanceled"}, never: []string{"ActivityScheduled release"},
	},
	{
		name: "canceled too late", order: small,
		script: func(s *scene) {
			s.shopWorker()
			s.Await(id, schemas.EventChildStarted)
			s.signal(signalCancel, nil)
			s.Await(id, schemas.EventSignal) // it comes by the stream, and the cancel straight to the owner
			s.cancel()
			s.cardDesk()
		},
		status: schemas.StatusCompleted, goods: sold, want: []string{"Marker window-over", "Signal cancel", "Marker cancel-too-late", "Marker shipped"},
	},
	{
		name: "canceled, and the goods cannot be put back", order: small, fail: map[string]error{actRelease: errors.New("the shelf is broken")},
		script: func(s *scene) { s.open(); s.armed(); s.signal(signalCancel, nil) },
		status: schemas.StatusCanceled, goods: kept, took: map[string]int{actRelease: 5}, alert: "release failed: the shelf is broken",
		want: []string{"ActivityFailed release", "ActivityScheduled alert", "WorkflowCanceled"},
	},
}

// The child either took the money, or did not, or it is unclear.
var payments = []branch{
	{
		name: "declined", order: changed(small, func(o *order) { o.Card = cardBroke }), status: schemas.StatusFailed, reason: reasonDeclined, goods: returned,
		took: map[string]int{actCharge: 1}, want: []string{"ChildFailed", "Marker trouble", "ActivitySuccess release"}, never: []string{"ActivityScheduled refund"},
	},
	{
		name: "the bank is reached at the second try", order: changed(small, func(o *order) { o.Card = cardFlaky }),
		status: schemas.StatusCompleted, goods: sold, took: map[string]int{actCharge: 2}, want: []string{"ChildSuccess", "Marker paid"},
	},
	{
		name: "the bank is not reached", order: small, fail: map[string]error{actCharge: activity.Fail(reasonBank, nil)},
		status: schemas.StatusFailed, reason: reasonBank, goods: returned, took: map[string]int{actCharge: 5},
		alert: "it cannot be delivered: bank-unreachable", want: []string{"ChildFailed", "ActivitySuccess release", "ActivityScheduled alert", "WorkflowFailed"},
	},
	{
		name: "nobody is at the card desk", order: small, script: func(s *scene) { s.shopWorker() },
		status: schemas.StatusFailed, reason: reasonNoCardDesk, goods: returned, alert: "it cannot be delivered: no-card-worker",
	},
	{
		name: "the bank does not answer", order: small, fail: map[string]error{actCharge: errSlow},
		status: schemas.StatusFailed, reason: reasonUnclear, goods: kept, took: map[string]int{actCharge: 1},
		alert: "it cannot be delivered: payment-unclear", never: []string{"ActivityScheduled release", "ActivityScheduled refund"},
	},
	{
		name: "the card worker is lost", order: small, script: loseCardWorker,
		status: schemas.StatusFailed, reason: reasonUnclear, goods: kept, took: map[string]int{actCharge: 0},
		alert: "it cannot be delivered: payment-unclear", never: []string{"ActivityScheduled release", "ActivityScheduled refund"},
	},
	{
		name: "somebody ends the payment", order: small, script: func(s *scene) {
			s.shopWorker()
			s.Await(id, schemas.EventChildStarted)
			if err := s.Client.Run(paymentOf(id), "").Terminate(s.t.Context(), nil); err != nil {
				s.t.Fatal(err)
			}
		},
		status: schemas.StatusFailed, reason: reasonUnclear, goods: kept, alert: "it cannot be delivered: payment-unclear",
		want: []string{"ChildTerminated", "ActivityScheduled alert", "WorkflowFailed"}, never: []string{"ActivityScheduled release"},
	},
	{
		name: "there is such a payment already", order: small, script: occupyPayment,
		status: schemas.StatusFailed, reason: reasonUnclear, goods: kept, alert: "it cannot be delivered: payment-unclear",
		want: []string{"ChildStartFailed", "ActivityScheduled alert", "WorkflowFailed"},
	},
}

// occupyPayment starts a workflow under the id of the payment.
func occupyPayment(s *scene) {
	w := s.Client.Deciders(nil)
	w.Register("other", decider.Func(func(context.Context, *decider.Task) ([]schemas.Decision, error) { return nil, nil }))
	s.Go(w)
	if _, err := s.Client.Start(s.t.Context(), "other", nil, &drover.StartOptions{ID: paymentOf(id)}); err != nil {
		s.t.Fatal(err)
	}
	s.open()
}

// loseCardWorker lets a card worker go in the middle of a charge. Another one does not charge again.
func loseCardWorker(s *scene) {
	s.shopWorker()
	busy := make(chan struct{})
	stop := s.worker(listPCI, func(w *activity.Worker) {
		activity.Register(w, actCharge, func(ctx context.Context, _ payment) (receipt, error) {
			close(busy)
			<-ctx.Done()
			return receipt{}, context.Cause(ctx)
		})
	})
	s.Await(id, schemas.EventChildStarted)
	s.Await(paymentOf(id), schemas.EventActivityStarted)
	<-busy
	stop()
	s.cardDesk()
}

// What fails after the payment is undone, and a human is told.
var shipments = []branch{
	{
		name: "no address", order: changed(small, func(o *order) { o.Address = "" }),
		status: schemas.StatusFailed, reason: reasonNoAddress, goods: returned, took: map[string]int{actShip: 1, actRefund: 1},
		alert: "it cannot be delivered: address-unknown",
		want: []string{
			"Marker paid", "ActivityFailed ship", "Marker trouble", "ActivityScheduled release", "ActivityScheduled refund",
			"ActivityScheduled alert", "Marker alerted", "WorkflowFailed address-unknown",
		},
	},
	{
		name: "the carrier does not answer", order: small, fail: map[string]error{actShip: errSlow},
		status: schemas.StatusFailed, reason: "ship timed out START_TO_CLOSE", goods: returned, took: map[string]int{actShip: 5, actRefund: 1},
		alert: "it cannot be delivered: ship timed out START_TO_CLOSE",
	},
	{
		name: "no refund either", order: changed(small, func(o *order) { o.Address = "" }), fail: map[string]error{actRefund: errors.New("the bank is closed")},
		status: schemas.StatusFailed, reason: reasonNoAddress, goods: returned, took: map[string]int{actRefund: 5},
		alert: "it cannot be delivered: address-unknown; refund failed: the bank is closed", never: []string{"Marker refunded"},
	},
	{
		name: "and no human listens", order: changed(small, func(o *order) { o.Address = "" }), fail: map[string]error{actAlert: errors.New("engaged")},
		status: schemas.StatusFailed, reason: reasonNoAddress, goods: returned, took: map[string]int{actAlert: 5}, want: []string{"ActivityFailed alert", "WorkflowFailed"},
	},
}

// What should not be ordered.
var oddities = []branch{
	{
		name: "out of stock", order: small, fail: map[string]error{actReserve: activity.Fail(reasonOutOfStock, nil)},
		status: schemas.StatusFailed, reason: reasonOutOfStock, goods: returned, took: map[string]int{actReserve: 1}, never: []string{"ActivityScheduled release", "TimerScheduled"},
	},
	{
		name: "no such goods", order: order{Item: "unicorn"}, status: schemas.StatusFailed, reason: reasonNoSuchGoods, goods: returned,
		alert: "it cannot be delivered: no-such-goods", took: map[string]int{actReserve: 1},
	},
	{
		name: "a window without end", order: changed(small, func(o *order) { o.Window = schemas.Unlimited }),
		status: schemas.StatusFailed, reason: "the order's times make no sense", goods: returned, alert: "it cannot be delivered: the order's times make no sense",
		never: []string{"Child"},
	},
}
