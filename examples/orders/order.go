package main

import (
	"context"
	"time"

	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/schemas"
)

// decideOrder is asked whenever something has happened to an order. It reads what that was (story.go), notes the steps that
// are new, and says what is to happen next: forward, or back out.
func decideOrder(ctx context.Context, t *decider.Task) ([]schemas.Decision, error) {
	s, err := readStory(ctx, t)
	if err != nil {
		return nil, err
	}
	decisions := s.index()
	if s.is(stepTrouble) || s.is(stepCanceled) {
		return append(decisions, s.backOut()...), nil
	}
	return append(decisions, s.goOn()...), nil
}

// goOn is the way of an order that goes well. Each answer is the first thing on it that is not done yet.
func (s *story) goOn() []schemas.Decision {
	switch {
	case !s.asked(actReserve):
		return one(s.schedule(actReserve, s.order))
	case !s.is(stepReserved):
		return nil
	case s.order.Amount > s.order.Limit && !s.is(stepApproved):
		if s.Timer(timerApproval) == 0 {
			return one(decider.Timer(timerApproval, s.order.Patience.Std()))
		}
		return nil // an approval or the timer will wake us
	case s.Timer(timerWindow) == 0:
		return append(s.closeTimer(timerApproval), decider.Timer(timerWindow, s.order.Window.Std()))
	case !s.is(stepDue):
		return nil // the customer may still cancel
	case s.payment.Status == 0:
		return one(s.startPayment())
	case !s.is(stepPaid):
		return nil
	case !s.asked(actShip):
		return one(s.schedule(actShip, s.order))
	case !s.is(stepShipped):
		return nil
	}
	return one(decider.Complete(decode[receipt](s.payment.Result)))
}

// backOut undoes what was done, tells a human if that is called for, and ends the order. Nothing is undone that may not be
// there, and nothing that is unclear: whether an order was paid is for a human to find out, and until then its goods stay
// reserved.
func (s *story) backOut() []schemas.Decision {
	decisions := append(s.closeTimer(timerApproval), s.closeTimer(timerWindow)...)
	undo := func(act string, input any) {
		if !s.asked(act) {
			decisions = append(decisions, s.schedule(act, input))
		}
	}
	switch status, _, reason := s.Activity(actReserve); {
	case status.Open():
		return decisions // what it takes off the shelf can be put back when it is off
	case status == 0, reason == reasonOutOfStock, s.trouble() == reasonUnclear:
	default:
		undo(actRelease, s.order)
	}
	if s.is(stepPaid) {
		undo(actRefund, s.charge())
	}
	if len(s.Open()) > 0 || begins(decisions) {
		return decisions
	}
	if why := s.alarming(); why != "" && !s.asked(actAlert) {
		return append(decisions, s.schedule(actAlert, alarm{Order: s.id, Text: why}))
	}
	if s.is(stepTrouble) {
		return append(decisions, decider.Fail(s.trouble(), nil))
	}
	return append(decisions, decider.Cancel(nil))
}

// patience is how often the broker tries an activity of the shop, and for how long. All of them may be repeated: they are
// told the order's id and do nothing the second time.
var patience = schemas.RetryPolicy{
	InitialInterval: schemas.Seconds(0.2), BackoffCoefficient: 2, MaximumAttempts: 5,
	NonRetryable: []string{reasonOutOfStock, reasonNoAddress, reasonNoSuchGoods},
}

func (s *story) schedule(act string, input any) schemas.Decision {
	list := listShop
	if act == actRefund {
		list = listPCI
	}
	return decider.Schedule(act, act, input, decider.List(list), decider.Retry(patience),
		decider.StartToClose(time.Minute), decider.ScheduleToClose(time.Hour))
}

// startPayment starts the child.
func (s *story) startPayment() schemas.Decision {
	return decider.StartChild(paymentOf(s.id), typePayment, s.charge(), decider.ExecutionStartToClose(time.Hour))
}

// paymentOf is the workflow id of an order's payment.
func paymentOf(order string) string { return order + paymentSuffix }

func (s *story) charge() payment {
	return payment{Order: s.id, Amount: s.order.Amount, Card: s.order.Card}
}

// closeTimer takes a timer back if it is armed.
func (s *story) closeTimer(id string) []schemas.Decision {
	if s.Timer(id) != decider.TimerOpen {
		return nil
	}
	return one(decider.CancelTimer(id))
}

func one(d schemas.Decision) []schemas.Decision { return []schemas.Decision{d} }

// begins tells whether the decisions begin work that has to be waited for.
func begins(decisions []schemas.Decision) bool {
	for _, d := range decisions {
		if d.Type() == schemas.DecideScheduleActivity {
			return true
		}
	}
	return false
}
