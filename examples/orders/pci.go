package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
)

// The card worker is a process of its own, as rules for cards demand: on servers of its own, with credentials of its own
// (nats.conf) that let it take work from the list "PCI", report on it and send heartbeats, and nothing else. It can start
// nothing, read no history, and see no other list.

// Identity and inbox of the card worker, to which its credentials are cut. With an inbox among those of all others it
// could listen to the answers that others get.
const (
	pciIdentity = "pci-1"
	pciInbox    = "_INBOX_PCI"
)

// Tokens of cards that the pretended bank knows.
const (
	cardGood  = "tok-good"
	cardBroke = "tok-broke" // is declined
	cardFlaky = "tok-flaky" // the bank is reached at the second try
)

// pciWorker runs the card worker until ctx ends or stdin does, as it does when the program that started it is gone.
func pciWorker(ctx context.Context, o *options, stdin io.Reader, stdout io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	client, err := connectPCI(ctx, o.nats, o.nkey)
	if err != nil {
		return err
	}
	defer client.Close()
	if err := confined(ctx, client, stdout); err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, stdin) // however it ends, the starter is gone
		cancel()
	}()
	w := client.Activities(&activity.Options{Lists: []string{listPCI}, Identity: pciIdentity})
	activity.Register(w, actCharge, charge)
	activity.Register(w, actRefund, refund)
	return w.Run(ctx)
}

func connectPCI(ctx context.Context, url, nkey string) (*drover.Client, error) {
	return drover.Connect(ctx, &drover.Options{URL: url, NKeyFile: nkey, Name: pciIdentity, InboxPrefix: pciInbox})
}

// confined says what becomes of a question that is none of a card worker's business.
func confined(ctx context.Context, client *drover.Client, stdout io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	_, err := client.Run("order-1", "").Describe(ctx)
	switch {
	case errors.Is(err, drover.ErrPermission):
		fmt.Fprintln(stdout, "the card worker works on the list PCI; it may not look at orders")
	case err == nil, errors.Is(err, drover.ErrNotFound):
		fmt.Fprintln(stdout, "the card worker works on the list PCI; with these credentials it might look at orders too")
	default:
		return err
	}
	return nil
}

// charge takes the money. The bank may not be asked twice: the activity is scheduled as not idempotent, so that it runs once
// for each attempt that the history knows of. The bank gets the idempotency key all the same.
func charge(ctx context.Context, p payment) (receipt, error) {
	info := activity.Info(ctx)
	if err := activity.Heartbeat(ctx, "asking the bank"); err != nil {
		return receipt{}, err
	}
	switch {
	case p.Card == cardFlaky && info.Attempt == 1:
		return receipt{}, activity.Fail(reasonBank, "the line is dead; nothing was charged")
	case p.Card != cardGood && p.Card != cardFlaky:
		return receipt{}, activity.Fail(reasonDeclined, nil)
	}
	return receipt{Number: "C-" + number(info)}, nil
}

// refund gives the money back; the bank does that once for an order, however often it is asked.
func refund(ctx context.Context, _ payment) (receipt, error) {
	return receipt{Number: "R-" + number(activity.Info(ctx))}, nil
}

// number is what the pretended bank makes of an order: the same for every try.
func number(info activity.TaskInfo) string {
	return strings.TrimSuffix(info.WorkflowID, paymentSuffix)
}
