package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/schemas"
)

// A payment is a workflow of its own, so that other workflows can take money too, and so that all there is to know about
// taking it is in one place: it is either done, or certainly not done, or it is unclear.

// notCharged are the reasons of a failed payment that took no money.
var notCharged = []string{reasonDeclined, reasonBank, reasonNoCardDesk}

// bankRetries says that the broker is to try again while the bank cannot be reached, and only then. A declined card stays
// declined. After a timeout nobody knows whether the money was taken: trying again might take it twice.
var bankRetries = schemas.RetryPolicy{
	InitialInterval: schemas.Seconds(0.2), BackoffCoefficient: 2, MaximumAttempts: 5,
	NonRetryable: []string{
		reasonDeclined, string(schemas.TimeoutStartToClose), string(schemas.TimeoutHeartbeat), string(schemas.TimeoutScheduleToStart),
	},
}

// cardDeskPatience is how long a charge waits for somebody on the list PCI.
const cardDeskPatience = 10 * time.Minute

// decidePayment charges the card, and translates what became of it.
func decidePayment(ctx context.Context, t *decider.Task) ([]schemas.Decision, error) {
	run, err := t.View(ctx)
	if err != nil {
		return nil, err
	}
	status, result, reason := run.Activity(actCharge)
	switch {
	case status == 0:
		return []schemas.Decision{decider.Schedule(actCharge, actCharge, run.Input(), decider.List(listPCI),
			decider.NotIdempotent(), decider.Retry(bankRetries),
			decider.ScheduleToStart(cardDeskPatience), decider.StartToClose(time.Minute), decider.Heartbeat(10*time.Second))}, nil
	case status.Open():
		return nil, nil
	case status == decider.ActivitySucceeded:
		return []schemas.Decision{decider.Complete(result)}, nil
	case status == decider.ActivityTimedOut && reason == string(schemas.TimeoutScheduleToStart):
		return []schemas.Decision{decider.Fail(reasonNoCardDesk, nil)}, nil // nobody took it, so nobody charged
	case status == decider.ActivityFailed && slices.Contains(notCharged, reason):
		return []schemas.Decision{decider.Fail(reason, nil)}, nil
	}
	return []schemas.Decision{decider.Fail(reasonUnclear, fmt.Sprintf("charge %v: %s", status, reason))}, nil
}
