package main

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	activity.Implement(w, Charge, charge)
	activity.Implement(w, Refund, refund)
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

// charge takes the money. It may be called again for an order, by an attempt that was believed lost
// and by the next one: the bank knows the order, and takes the money once.
func charge(ctx context.Context, p Payment) (Receipt, error) {
	switch {
	case p.Card == cardFlaky && activity.Info(ctx).Attempt == 1:
		return Receipt{}, errors.New("the bank cannot be reached")
	case p.Card != cardGood && p.Card != cardFlaky:
		return Receipt{}, Declined
	}
	return Receipt{Number: "C-" + p.Order}, nil
}

// refund gives the money back; the bank does that once for an order, however often it is asked.
func refund(_ context.Context, p Payment) (Receipt, error) {
	return Receipt{Number: "R-" + p.Order}, nil
}
