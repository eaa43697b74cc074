package main

import (
	"errors"

	"github.com/droverhq/drover/contract"
	"github.com/droverhq/drover/decider/workflow"
)

// deliver is the workflow of an order. It reserves the goods, waits for somebody who approves a
// large order, and for the customer to change their mind, who may cancel it at any time; then it is
// paid and shipped. Whatever ends it before, what was done is undone, the last thing first.
func deliver(ctx workflow.Context, o Order) (r Receipt, err error) {
	saga := workflow.NewSaga(ctx)
	defer saga.UndoOn(&err)
	saga.Add(func(ctx workflow.Context) error { // also if the call below ends without an answer
		_, err := workflow.Call(ctx, Release, o)
		return err
	})
	if _, err := workflow.Call(ctx, Reserve, o); err != nil {
		return r, err
	}
	if o.Amount > o.Limit {
		if err := approved(ctx, o); err != nil {
			return r, err
		}
	}
	if err := workflow.Sleep(ctx, o.Window.Std()); err != nil {
		return r, err
	}
	p := Payment{Order: ctx.Info().WorkflowID, Amount: o.Amount, Card: o.Card}
	paying := workflow.WithoutCancel(ctx) // so that it is known whether it was paid
	if r, err = workflow.Call(paying, Pay, p, contract.WorkflowID(paymentOf(p.Order))); err != nil {
		return r, err
	}
	saga.Add(func(ctx workflow.Context) error {
		_, err := workflow.Call(ctx, Refund, p)
		return err
	})
	_, err = workflow.Call(ctx, Ship, o)
	return r, err
}

// approved waits for an answer. One that comes after the time is over does not count.
func approved(ctx workflow.Context, o Order) error {
	inTime, stop := workflow.WithTimeout(ctx, o.Patience.Std())
	defer stop()
	a, err := workflow.Signals(ctx, Approve).Receive(inTime)
	if errors.Is(err, workflow.ErrTimeout) {
		return NotApproved
	}
	if err == nil && !a.OK {
		return Rejected.With(a)
	}
	return err
}

// pay is the workflow of a payment, which other workflows may start, too.
func pay(ctx workflow.Context, p Payment) (Receipt, error) {
	return workflow.Call(ctx, Charge, p)
}

// paymentOf is the workflow id of an order's payment.
func paymentOf(order string) string { return order + "-payment" }
