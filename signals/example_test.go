package signals_test

import (
	"context"
	"fmt"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/signals"
)

func Example() {
	if err := example(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// stored as signal 1
	// unknown-workflow: no workflow has the id order-7
}

func example(ctx context.Context) error {
	server, err := embedded.Start(ctx, embedded.Options{DontListen: true})
	if err != nil {
		return err
	}
	defer server.Shutdown()
	conn, err := natsconn.Dial(ctx, natsconn.Options{InProcess: server.Conn()})
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := topology.Ensure(ctx, conn, topology.Options{Memory: true}); err != nil {
		return err
	}

	seq, err := signals.PublishOnce(ctx, conn, "default", "order-7", "paid", "invoice-12", []byte(`{"cents":4200}`))
	if err != nil {
		return err
	}
	fmt.Println("stored as signal", seq)

	// The owner of the workflow would write this if order-7 was never started.
	place := signals.Place{Partition: "2", Stream: "signals", Incarnation: "0", Sequence: seq}
	letter := schemas.DeadLetter{Reason: "unknown-workflow", Details: "no workflow has the id order-7"}
	if err := signals.Bury(ctx, conn, "default", place, letter); err != nil {
		return err
	}
	for entry, err := range signals.DeadLetters(ctx, conn, "default", signals.DeadOptions{}) {
		if err != nil {
			return err
		}
		fmt.Printf("%s: %s\n", entry.Reason, entry.Details)
	}
	return nil
}
