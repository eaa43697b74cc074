package drover_test

import (
	"errors"
	"fmt"
	"log"

	"github.com/droverhq/drover"
)

// A gate was shut by force. It is run again; "start" is what a decider without replay points can do.
func ExampleRun_Replay() {
	ctx, c := exampleClient()
	defer c.Close()
	run, err := c.Start(ctx, "gate", nil, &drover.StartOptions{ID: "shut gate"})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := run.Replay(ctx, nil); errors.Is(err, drover.ErrConflict) {
		fmt.Println("a run is replayed once it has ended")
	}
	if err := run.Terminate(ctx, nil); err != nil {
		log.Fatal(err)
	}
	again, err := run.Replay(ctx, &drover.ReplayOptions{From: "start", Reason: "somebody comes after all"})
	if err != nil {
		log.Fatal(err)
	}
	if err := again.Run.Signal(ctx, "open", "sesame"); err != nil {
		log.Fatal(err)
	}
	var said string
	if err := c.Run("shut gate", "").Result(ctx, &said); err != nil {
		log.Fatal(err)
	}
	d, err := again.Run.Describe(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, a := range d.Attempts {
		fmt.Println(a.Status)
	}
	fmt.Println(said)
	// Output:
	// a run is replayed once it has ended
	// terminated
	// completed
	// sesame
}
