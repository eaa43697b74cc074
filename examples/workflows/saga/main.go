// Command saga books a trip: hotel, flight and car. If one of them cannot be had, those that were
// booked before are canceled, the last one first. Run it beside "drover dev":
//
//	go run ./examples/workflows/saga
//
// and in another terminal travel to Rome, and to Venice, where nobody rents out cars:
//
//	drover start book-trip --input '"Rome"' --wait
//	drover start book-trip --input '"Venice"' --id venice --wait
//	drover history venice
package main

import (
	"context"
	"log"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/contract"
	"github.com/droverhq/drover/decider/workflow"
)

// Item is a part of a trip.
type Item struct {
	What string `json:"what"` // hotel, flight or car
	City string `json:"city"`
}

var (
	Book     = contract.Activity[Item, string]("book") // returns the number of the booking
	Unbook   = contract.Activity[string, struct{}]("unbook")
	SoldOut  = contract.Fault[Item]("sold-out")
	BookTrip = contract.Workflow[string, []string]("book-trip")
)

// bookTrip is the workflow. It returns the numbers of the bookings.
func bookTrip(ctx workflow.Context, city string) (bookings []string, err error) {
	saga := workflow.NewSaga(ctx)
	defer saga.UndoOn(&err)
	for _, what := range []string{"hotel", "flight", "car"} {
		booking, err := workflow.Call(ctx, Book, Item{What: what, City: city})
		if err != nil {
			return nil, err
		}
		saga.Add(func(ctx workflow.Context) error {
			_, err := workflow.Call(ctx, Unbook, booking)
			return err
		})
		bookings = append(bookings, booking)
	}
	return bookings, nil
}

// book is an activity.
func book(_ context.Context, i Item) (string, error) {
	if i.What == "car" && i.City == "Venice" {
		return "", SoldOut.With(i)
	}
	return i.What + "-4711", nil
}

// unbook is an activity.
func unbook(_ context.Context, booking string) (struct{}, error) {
	log.Printf("canceled: %s", booking)
	return struct{}{}, nil
}

func implement(w *drover.Worker) {
	workflow.Implement(w, BookTrip, bookTrip, nil)
	activity.Implement(w, Book, book)
	activity.Implement(w, Unbook, unbook)
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
