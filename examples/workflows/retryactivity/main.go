// Command retryactivity prints a document on a printer that jams. The activity is tried again after
// each jam, and goes on after the page that its last heartbeat has told. Without paper no further
// attempt helps: that is a fault, which ends the activity at once. Run it beside "drover dev":
//
//	go run ./examples/workflows/retryactivity
//
// and in another terminal start it, first with enough paper and then without:
//
//	drover start print-document --input '{"pages": 7, "paper": 20}' --wait
//	drover start print-document --input '{"pages": 7, "paper": 5}' --wait
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/contract"
	"github.com/droverhq/drover/decider/workflow"
	"github.com/droverhq/drover/schemas"
)

// Document is what is printed, and how many sheets the printer has for it.
type Document struct {
	Pages int `json:"pages"`
	Paper int `json:"paper"`
}

var (
	Print = contract.Activity[Document, int]("print",
		contract.Heartbeat(time.Minute),
		contract.Retry(schemas.RetryPolicy{MaximumInterval: schemas.Duration(10 * time.Second)}))
	NoPaper       = contract.Fault[int]("no-paper") // its details are the page that is missing
	PrintDocument = contract.Workflow[Document, string]("print-document")
)

// jamAfter is how many pages the printer prints before it jams.
const jamAfter = 3

var errJam = errors.New("the printer jams")

// printDocument is the workflow. It sees no jam: only the end of the activity, whichever attempt
// brought it.
func printDocument(ctx workflow.Context, d Document) (string, error) {
	attempts, err := workflow.Call(ctx, Print, d)
	if page, ok := NoPaper.Details(err); ok {
		return fmt.Sprintf("no paper for page %d", page), nil
	}
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d pages in %d attempts", d.Pages, attempts), nil
}

// printPages is the activity: it begins after what earlier attempts have printed, and returns which
// attempt has printed the last page. A heartbeat stands for the work of a page.
func printPages(ctx context.Context, d Document) (int, error) {
	done, _, err := activity.Resume[int](ctx)
	if err != nil {
		return 0, err
	}
	for page := done + 1; page <= d.Pages; page++ {
		if page > d.Paper {
			return 0, NoPaper.With(page)
		}
		if page > done+jamAfter {
			return 0, errJam
		}
		if err := activity.Heartbeat(ctx, page); err != nil {
			return 0, err
		}
	}
	return activity.Info(ctx).Attempt, nil
}

func implement(w *drover.Worker) {
	workflow.Implement(w, PrintDocument, printDocument, nil)
	activity.Implement(w, Print, printPages)
}

func main() {
	ctx := context.Background()
	client, err := drover.Connect(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	w := client.Worker(nil)
	implement(w)
	if err := w.Run(ctx); err != nil {
		log.Fatal(err)
	}
}
