package decider_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/schemas"
)

// ship charges the card and packs the goods in parallel, and sends them when both are done. It waits a day for payment.
func ship(ctx context.Context, t *decider.Task) ([]schemas.Decision, error) {
	v, err := t.View(ctx)
	if err != nil {
		return nil, err
	}
	charged, receipt, reason := v.Activity("charge")
	sent, _, _ := v.Activity("send")
	switch {
	case charged == 0:
		return []schemas.Decision{
			decider.Schedule("charge", "charge-card", v.Input(), decider.List("PCI")),
			decider.Schedule("pack", "pack-goods", v.Input()),
			decider.Timer("patience", 24*time.Hour),
		}, nil
	case charged == decider.ActivityFailed:
		return []schemas.Decision{decider.Fail(reason, nil)}, nil
	case v.Timer("patience") == decider.TimerFired && !charged.Closed():
		return []schemas.Decision{decider.Fail("not paid in time", nil)}, nil
	case !v.Done("charge", "pack"):
		return nil, nil // one branch is still open
	case sent == 0:
		return []schemas.Decision{decider.CancelTimer("patience"), decider.Schedule("send", "send-goods", receipt)}, nil
	case sent.Closed():
		return []schemas.Decision{decider.Complete(map[string]any{"receipt": receipt})}, nil
	}
	return nil, nil
}

// A decider is a function of its task, so a test needs no server.
func ExampleNewTask() {
	history := []schemas.Event{
		{ID: 1, Attributes: &schemas.WorkflowStarted{Input: schemas.Payload(`{"order":7}`)}},
		{ID: 2, Attributes: &schemas.DeciderScheduled{}},
		{ID: 3, Attributes: &schemas.DeciderStarted{ScheduledEventID: 2}},
	}
	t, err := decider.NewTask(schemas.DecisionTask{WorkflowID: "order-7", Run: "1", StartedID: 3, Events: history})
	if err != nil {
		log.Fatal(err)
	}
	decisions, err := ship(context.Background(), t)
	if err != nil {
		log.Fatal(err)
	}
	for _, d := range decisions {
		fmt.Println(d.Type())
	}
	// Output:
	// ScheduleActivity
	// ScheduleActivity
	// ScheduleTimer
}

// A worker answers what the broker asks. Here the broker is played by one request.
func Example() {
	ctx := context.Background()
	server, err := embedded.Start(ctx, embedded.Options{DontListen: true})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Shutdown()
	conn, err := natsconn.Dial(ctx, natsconn.Options{InProcess: server.Conn()})
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	ns := subject.Namespace("default")
	announced := make(chan natsconn.Msg, 1)
	if _, err := conn.Subscribe(ns.Announce("ship"), "", func(m natsconn.Msg) { announced <- m }); err != nil {
		log.Fatal(err)
	}

	w := decider.New(conn, &decider.Options{Identity: "shipper", StickyCache: -1})
	w.Register("ship", decider.Func(ship))
	ctx, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	<-announced

	reply, err := conn.Request(ctx, ns.Decide("ship"), nil, []byte(`{
		"namespace": "default", "workflowId": "order-7", "run": "1", "type": "ship", "token": "t", "attempt": 1,
		"previousStartedId": 0, "startedId": 3, "events": [
			{"id": 1, "type": "WorkflowStarted", "attributes": {"input": {"order": 7}}},
			{"id": 2, "type": "DeciderScheduled", "attributes": {}},
			{"id": 3, "type": "DeciderStarted", "attributes": {"scheduledEventId": 2}}
		]}`))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(reply.Data))
	stop()
	fmt.Println(<-done)
	// Output:
	// {"v":1,"token":"t","decisions":[{"type":"ScheduleActivity","attributes":{"activityId":"charge","activityType":"charge-card","input":{"order":7},"list":"PCI"}},{"type":"ScheduleActivity","attributes":{"activityId":"pack","activityType":"pack-goods","input":{"order":7}}},{"type":"ScheduleTimer","attributes":{"timerId":"patience","startToFireTimeout":86400}}],"identity":"shipper"}
	// <nil>
}
