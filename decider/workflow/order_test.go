package workflow_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/contract"
	"github.com/droverhq/drover/decider/workflow"
	"github.com/droverhq/drover/drovertest"
)

type order struct {
	Card  string
	Items []string
}

var (
	charge  = contract.Activity[string, int]("charge", contract.List("shop"))
	ship    = contract.Activity[string, string]("ship", contract.List("shop"))
	approve = contract.Signal[string]("approve")
	process = contract.Workflow[order, string]("order", approve)
)

func processOrder(ctx workflow.Context, o order) (string, error) {
	receipt, err := workflow.Call(ctx, charge, o.Card)
	if err != nil {
		return "", err
	}
	by := "nobody"
	err = workflow.Select(ctx,
		workflow.Receive(workflow.Signals(ctx, approve), func(s string, _ error) { by = s }),
		workflow.On(workflow.Timer(ctx, 24*time.Hour), func(struct{}, error) {}),
	)
	if err != nil {
		return "", err
	}
	shipped, err := workflow.Map(ctx, o.Items, 0, func(ctx workflow.Context, item string) (string, error) {
		return workflow.Call(ctx, ship, item)
	})
	return fmt.Sprint(receipt, " ", by, " ", shipped), err
}

func TestOrder(t *testing.T) {
	for _, tc := range []struct {
		name string
		o    order
		sign bool
		want string
		kept int
	}{
		{"approved", order{"visa", []string{"a", "b"}}, true, "7 boss [a! b!]", 0},
		{"not kept", order{"visa", []string{"a", "b", "c"}}, true, "7 boss [a! b! c!]", -1},
		{"not approved", order{"visa", []string{"a"}}, false, "7 nobody [a!]", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
				deciders := e.Client.Deciders(nil)
				workflow.Implement(deciders, process, processOrder, &workflow.Options{Kept: tc.kept})
				activities := e.Client.Activities(&activity.Options{Lists: []string{"shop"}})
				activity.Register(activities, "charge", func(_ context.Context, card string) (int, error) { return 7, nil })
				activity.Register(activities, "ship", func(_ context.Context, item string) (string, error) { return item + "!", nil })
				e.Go(deciders, activities)
				run, err := e.Client.Start(t.Context(), "order", tc.o, nil)
				if err != nil {
					t.Fatal(err)
				}
				if tc.sign {
					if err := run.Signal(t.Context(), "approve", "boss"); err != nil {
						t.Fatal(err)
					}
				}
				var got string
				e.Result(run, &got)
				if got != tc.want {
					t.Errorf("got %q, want %q", got, tc.want)
				}
			})
		})
	}
}
