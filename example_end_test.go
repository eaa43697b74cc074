package drover_test

import (
	"errors"
	"fmt"
	"log"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/schemas"
)

// The first signal begins the run, later ones find it, and nobody has to know which is which.
func ExampleClient_SignalWithStart() {
	ctx, c := exampleClient()
	defer c.Close()
	run, err := c.SignalWithStart(ctx, "gate", nil, "open", "sesame", &drover.StartOptions{ID: "cave"})
	if err != nil {
		log.Fatal(err)
	}
	var said string
	if err := run.Result(ctx, &said); err != nil {
		log.Fatal(err)
	}
	fmt.Println(run.Started(), said)
	// Output: true sesame
}

func ExampleRun_Terminate() {
	ctx, c := exampleClient()
	defer c.Close()
	run, err := c.Start(ctx, "gate", nil, &drover.StartOptions{ID: "stuck gate"})
	if err != nil {
		log.Fatal(err)
	}
	if err := run.Terminate(ctx, &drover.TerminateOptions{Reason: "nobody comes"}); err != nil {
		log.Fatal(err)
	}
	err = run.Result(ctx, nil)
	if ended, ok := errors.AsType[*drover.WorkflowError](err); ok {
		fmt.Println(ended.Status, "because", ended.Reason)
	}
	open, _, err := c.Count(ctx, drover.ListOptions{WorkflowID: "stuck gate", Status: schemas.StatusOpen})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(open, "open")
	// Output:
	// terminated because nobody comes
	// 0 open
}
