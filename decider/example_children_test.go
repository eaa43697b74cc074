package decider_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/schemas"
)

// travel books a flight and a room by workflows of their own. If one cannot be had, the other one is called off.
func travel(ctx context.Context, t *decider.Task) ([]schemas.Decision, error) {
	v, err := t.View(ctx)
	if err != nil {
		return nil, err
	}
	flight, room := v.Child("trip-7-flight"), v.Child("trip-7-room")
	switch {
	case flight.Status == 0:
		return []schemas.Decision{
			decider.StartChild("trip-7-flight", "book-flight", v.Input(), decider.ExecutionStartToClose(time.Hour)),
			decider.StartChild("trip-7-room", "book-room", v.Input(), decider.ExecutionStartToClose(time.Hour)),
		}, nil
	case v.ChildrenDone("trip-7-flight", "trip-7-room"):
		if flight.Status == decider.ChildSucceeded && room.Status == decider.ChildSucceeded {
			return []schemas.Decision{decider.Complete(map[string]any{"flight": flight.Result, "room": room.Result})}, nil
		}
		return []schemas.Decision{decider.Fail("flight "+flight.Status.String()+", room "+room.Status.String(), nil)}, nil
	}
	var decisions []schemas.Decision
	for _, id := range v.OpenChildren() {
		lost := flight.Status.Closed() && flight.Status != decider.ChildSucceeded || room.Status.Closed() && room.Status != decider.ChildSucceeded
		if lost && len(v.ExternalCancels(id)) == 0 {
			decisions = append(decisions, decider.CancelExternal(id))
		}
	}
	return decisions, nil
}

// Children are workflows of their own, which the parent starts, joins and calls off.
func ExampleStartChild() {
	history := []schemas.Attributes{
		&schemas.WorkflowStarted{Input: schemas.Payload(`{"to":"Rome"}`)},
		&schemas.DeciderScheduled{},
		&schemas.DeciderStarted{},
	}
	decide := func() {
		events := numbered(history)
		t, err := decider.NewTask(schemas.DecisionTask{WorkflowID: "trip-7", Run: "1", StartedID: int64(len(events)), Events: events})
		if err != nil {
			log.Fatal(err)
		}
		decisions, err := travel(context.Background(), t)
		if err != nil {
			log.Fatal(err)
		}
		for _, d := range decisions {
			body, err := d.MarshalJSON()
			if err != nil {
				log.Fatal(err)
			}
			fmt.Println(string(body))
		}
	}
	decide()
	history = append(history,
		&schemas.ChildScheduled{WorkflowID: "trip-7-flight", Run: "2"}, // event 4
		&schemas.ChildScheduled{WorkflowID: "trip-7-room", Run: "3"},
		&schemas.ChildFailed{ScheduledEventID: 4, Reason: "sold out"},
	)
	decide()
	history = append(history,
		&schemas.CancelExternalScheduled{WorkflowID: "trip-7-room"},
		&schemas.ChildCanceled{ScheduledEventID: 5},
	)
	decide()
	// Output:
	// {"type":"StartChild","attributes":{"workflowId":"trip-7-flight","workflowType":"book-flight","input":{"to":"Rome"},"executionStartToCloseTimeout":3600}}
	// {"type":"StartChild","attributes":{"workflowId":"trip-7-room","workflowType":"book-room","input":{"to":"Rome"},"executionStartToCloseTimeout":3600}}
	// {"type":"CancelExternal","attributes":{"workflowId":"trip-7-room"}}
	// {"type":"FailWorkflow","attributes":{"reason":"flight failed, room canceled"}}
}

// A workflow without end counts readings, and begins anew before its history is full.
func ExampleContinueAsNew() {
	meter := func(ctx context.Context, t *decider.Task) ([]schemas.Decision, error) {
		v, err := t.View(ctx)
		if err != nil || !t.SuggestContinueAsNew() {
			return nil, err
		}
		var before int
		if _, err := fmt.Sscan(string(v.Input()), &before); err != nil {
			return nil, err
		}
		return []schemas.Decision{decider.ContinueAsNew(before + len(v.Signals("reading")))}, nil
	}
	t, err := decider.NewTask(schemas.DecisionTask{
		WorkflowID: "meter", Run: "2", StartedID: 4, SuggestContinueAsNew: true,
		Events: numbered([]schemas.Attributes{
			&schemas.WorkflowStarted{Input: schemas.Payload("40"), ContinuedExecutionRun: "1"},
			&schemas.Signal{SignalName: "reading"},
			&schemas.Signal{SignalName: "reading"},
			&schemas.DeciderStarted{},
		}),
	})
	if err != nil {
		log.Fatal(err)
	}
	decisions, err := meter(context.Background(), t)
	if err != nil {
		log.Fatal(err)
	}
	body, err := decisions[0].MarshalJSON()
	fmt.Println(string(body), err)
	// Output: {"type":"ContinueAsNew","attributes":{"input":42}} <nil>
}
