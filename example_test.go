package drover_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/schemas"
)

// A whole program: a decider, an activity and a client on one connection. The server runs elsewhere, for instance as
// "drover dev".
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := drover.Connect(ctx, &drover.Options{URL: exampleServer()})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	deciders := c.Deciders(nil)
	deciders.Register("greet", decider.Func(func(ctx context.Context, t *decider.Task) ([]schemas.Decision, error) {
		run, err := t.View(ctx)
		if err != nil {
			return nil, err
		}
		switch status, result, reason := run.Activity("hello"); {
		case status == decider.ActivitySucceeded:
			return []schemas.Decision{decider.Complete(result)}, nil
		case status.Closed():
			return []schemas.Decision{decider.Fail(reason, nil)}, nil
		case status.Open():
			return nil, nil
		}
		return []schemas.Decision{decider.Schedule("hello", "hello", run.Input(), decider.List("words"))}, nil
	}))
	activities := c.Activities(&activity.Options{Lists: []string{"words"}})
	activity.Register(activities, "hello", func(_ context.Context, name string) (string, error) {
		return "hello " + name, nil
	})
	go deciders.Run(ctx)
	go activities.Run(ctx)

	run, err := c.Start(ctx, "greet", "ox", nil)
	if err != nil {
		log.Fatal(err)
	}
	var greeting string
	if err := run.Result(ctx, &greeting); err != nil {
		log.Fatal(err)
	}
	fmt.Println(greeting)
	// Output: hello ox
}

func ExampleConnect() {
	// Without options: $NATS_URL, or else a server on this machine.
	_, err := drover.Connect(context.Background(), &drover.Options{URL: "nats://127.0.0.1:1"})
	fmt.Println(errors.Is(err, drover.ErrUnavailable))
	// Output: true
}

// A program that has a connection to NATS gives it to the client, and closes it itself.
func ExampleConnect_conn() {
	nc, err := nats.Connect(exampleServer(), nats.MaxReconnects(-1))
	if err != nil {
		log.Fatal(err)
	}
	defer nc.Close()
	c, err := drover.Connect(context.Background(), &drover.Options{Conn: nc})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	fmt.Println(c.NATS() == nc)
	// Output: true
}

// A start with a request id can be repeated after any accident: it finds the run that it began.
func ExampleClient_Start() {
	ctx, c := exampleClient()
	defer c.Close()

	options := &drover.StartOptions{ID: "order-1", RequestID: "cart-77", Timeout: time.Hour, Tags: []string{"eu"}}
	first, err := c.Start(ctx, "order", map[string]int{"amount": 12}, options)
	if err != nil {
		log.Fatal(err)
	}
	again, err := c.Start(ctx, "order", map[string]int{"amount": 12}, options)
	fmt.Println(again.RunID == first.RunID, err)

	_, err = c.Start(ctx, "order", nil, &drover.StartOptions{ID: "order-1"})
	var refused *drover.Error
	if errors.As(err, &refused) && errors.Is(err, drover.ErrAlreadyStarted) {
		fmt.Println("another order-1 is open:", refused.Run == first.RunID)
	}
	// Output:
	// true <nil>
	// another order-1 is open: true
}

func ExampleRun_Result() {
	ctx, c := exampleClient()
	defer c.Close()
	run, err := c.Start(ctx, "broken", nil, nil)
	if err != nil {
		log.Fatal(err)
	}
	err = run.Result(ctx, nil)
	var failure *drover.WorkflowError
	if errors.As(err, &failure) {
		fmt.Println(failure.Status, failure.Reason)
	}
	// Output: failed out-of-oxen
}

func ExampleRun_Wait() {
	ctx, c := exampleClient()
	defer c.Close()
	run, err := c.Start(ctx, "broken", nil, nil)
	if err != nil {
		log.Fatal(err)
	}
	end, err := run.Wait(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(end.Status, end.Reason)
	// Output: failed out-of-oxen
}

func ExampleRun_History() {
	ctx, c := exampleClient()
	defer c.Close()
	run, err := c.Start(ctx, "broken", nil, nil)
	if err != nil {
		log.Fatal(err)
	}
	// Follow goes on until the run has closed.
	for event, err := range run.History(ctx, drover.HistoryOptions{Follow: true}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(event.ID, event.Type())
	}
	// Output:
	// 1 WorkflowStarted
	// 2 DeciderScheduled
	// 3 DeciderStarted
	// 4 DeciderCompleted
	// 5 WorkflowFailed
}

func ExampleRun_Signal() {
	ctx, c := exampleClient()
	defer c.Close()
	if _, err := c.Start(ctx, "gate", nil, &drover.StartOptions{ID: "gate-1"}); err != nil {
		log.Fatal(err)
	}
	gate := c.Run("gate-1", "")
	if err := gate.Signal(ctx, "open", "the ox"); err != nil {
		log.Fatal(err)
	}
	var passed string
	if err := gate.Result(ctx, &passed); err != nil {
		log.Fatal(err)
	}
	fmt.Println(passed)
	// Output: the ox
}

func ExampleRun_Why() {
	ctx, c := exampleClient()
	defer c.Close()
	run, err := c.Start(ctx, "gate", nil, &drover.StartOptions{ID: "gate-2"})
	if err != nil {
		log.Fatal(err)
	}
	if err := run.Pause(ctx, "the gate is being painted"); err != nil {
		log.Fatal(err)
	}
	why, err := run.Why(ctx)
	if err != nil {
		log.Fatal(err)
	}
	// For instance: it is paused (the gate is being painted); go on with: drover resume gate-2
	fmt.Println(strings.Contains(why, "the gate is being painted"))
	// Output: true
}

func ExampleRun_Describe() {
	ctx, c := exampleClient()
	defer c.Close()
	run, err := c.Start(ctx, "gate", "wood", &drover.StartOptions{ID: "gate-3", Attributes: map[string]string{"colour": "green"}})
	if err != nil {
		log.Fatal(err)
	}
	now, err := run.Describe(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(now.Execution.Type, now.Execution.Status, now.Execution.Attributes["colour"], string(now.Input))
	// Output: gate open green "wood"
}

func ExampleRun_Pause() {
	ctx, c := exampleClient()
	defer c.Close()
	run, err := c.Start(ctx, "gate", nil, &drover.StartOptions{ID: "gate-4"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(run.Pause(ctx, "the gate is being painted"))
	now, err := run.Describe(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(now.Execution.Status)
	fmt.Println(run.Resume(ctx, "it is dry"))
	// Output:
	// <nil>
	// paused
	// <nil>
}

func ExampleClient_List() {
	ctx, c := exampleClient()
	defer c.Close()
	if _, err := c.Start(ctx, "stable", nil, &drover.StartOptions{ID: "stable-1"}); err != nil {
		log.Fatal(err)
	}
	for run, err := range c.List(ctx, drover.ListOptions{Status: schemas.StatusOpen, Prefix: "stable-"}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(run.WorkflowID, run.Type)
	}
	// Output: stable-1 stable
}

func ExampleClient_DeadLetters() {
	ctx, c := exampleClient()
	defer c.Close()
	for letter, err := range c.DeadLetters(ctx, drover.DeadOptions{Reason: "undecodable-task", Limit: 10}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(letter.Sequence, letter.Subject, letter.Details)
	}
	fmt.Println("that is all")
	// Output: that is all
}
