package drovertest_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/contract"
	"github.com/droverhq/drover/decider/workflow"
	"github.com/droverhq/drover/drovertest"
)

// The programs of the guides to testing and to versions. testdata/invoice.jsonl is of a run from
// before there were letters.
var (
	Mail    = contract.Activity[string, string]("mail")
	Letter  = contract.Activity[string, string]("letter")
	Paid    = contract.Signal[string]("paid")
	Invoice = contract.Workflow[string, string]("invoice", Paid)
)

func invoice(ctx workflow.Context, customer string) (string, error) {
	for reminders := 0; ; reminders++ {
		paid := false
		err := workflow.Select(ctx,
			workflow.Receive(workflow.Signals(ctx, Paid), func(string, error) { paid = true }),
			workflow.On(workflow.Timer(ctx, 14*24*time.Hour), func(struct{}, error) {}),
		)
		if err != nil || paid {
			return fmt.Sprint(reminders, " reminders"), err
		}
		remind := Mail
		if workflow.ChangedFrom(ctx, "letters") && reminders > 0 {
			remind = Letter
		}
		if _, err := workflow.Call(ctx, remind, customer); err != nil {
			return "", err
		}
	}
}

func implement(w *drover.Worker) { workflow.Implement(w, Invoice, invoice, nil) }

func TestInvoice(t *testing.T) {
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		w := e.Client.Worker(&drover.WorkerOptions{CheckOpen: 10})
		implement(w)
		mails, letters := 0, 0
		activity.Implement(w, Mail, func(context.Context, string) (string, error) {
			mails++
			return "", nil
		})
		activity.Implement(w, Letter, func(context.Context, string) (string, error) {
			letters++
			return "", nil
		})
		e.Go(w)
		run, err := drover.Start(t.Context(), e.Client, Invoice, "ann@example.org", nil)
		if err != nil {
			t.Fatal(err)
		}
		e.Sleep(30 * 24 * time.Hour) // nobody pays
		e.Restart(time.Hour)         // server, broker and timers are down
		if err := drover.Signal(t.Context(), run, Paid, "4711"); err != nil {
			t.Fatal(err)
		}
		got, err := drovertest.Result(e, run)
		if got != "2 reminders" || err != nil || mails != 1 || letters != 1 {
			t.Errorf("got %q, %v after %d mails and %d letters", got, err, mails, letters)
		}
	})
}

func TestOldInvoices(t *testing.T) {
	drovertest.Replay(t, "testdata/*.jsonl", implement)
}
