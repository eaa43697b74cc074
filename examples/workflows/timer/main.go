// Command timer orders a pizza. If it takes too long, the guest gets a mail, and the pizza all the
// same. Run it beside "drover dev":
//
//	go run ./examples/workflows/timer
//
// and in another terminal order a pizza that is quick, and one that is not:
//
//	drover start order-pizza --input 2 --wait
//	drover start order-pizza --input 20 --wait
package main

import (
	"context"
	"log"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/contract"
	"github.com/droverhq/drover/decider/workflow"
)

var (
	Bake       = contract.Activity[int, string]("bake") // takes the seconds that it needs
	Mail       = contract.Activity[string, struct{}]("mail")
	OrderPizza = contract.Workflow[int, string]("order-pizza")
)

// patience is how long the guest waits without a word.
const patience = 10 * time.Second

// orderPizza is the workflow. A timer that is open when it returns ends with it.
func orderPizza(ctx workflow.Context, seconds int) (string, error) {
	pizza := workflow.Start(ctx, Bake, seconds)
	tooLong := workflow.Timer(ctx, patience)
	if _, err := workflow.First(ctx, pizza, tooLong); err != nil {
		return "", err
	}
	if !pizza.Ready() {
		if _, err := workflow.Call(ctx, Mail, "It is in the oven."); err != nil {
			return "", err
		}
	}
	return pizza.Get(ctx)
}

// bake is an activity.
func bake(ctx context.Context, seconds int) (string, error) {
	select {
	case <-time.After(time.Duration(seconds) * time.Second):
		return "pizza", nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// mail is an activity.
func mail(_ context.Context, text string) (struct{}, error) {
	log.Printf("mail to the guest: %s", text)
	return struct{}{}, nil
}

func implement(w *drover.Worker) {
	workflow.Implement(w, OrderPizza, orderPizza, nil)
	activity.Implement(w, Bake, bake)
	activity.Implement(w, Mail, mail)
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
