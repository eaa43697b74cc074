package activity_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/schemas"
)

// Example runs a worker. The task comes from a line of code here; in life the broker sends it, and reads the report.
func Example() {
	if err := example(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output: success: "HELLO"
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
	_, err = topology.Ensure(ctx, conn, topology.Options{Partitions: 1, Memory: true})
	if err == nil {
		err = topology.EnsureList(ctx, conn, ns, "text", topology.ListOptions{})
	}
	if err != nil {
		return err
	}

	w := activity.New(conn, &activity.Options{Lists: []string{"text"}})
	activity.Register(w, "shout", func(_ context.Context, text string) (string, error) {
		if text == "" {
			return "", activity.Fail("no-text", nil)
		}
		return strings.ToUpper(text), nil
	})
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()

	reports := make(chan schemas.Report, 1)
	reader, err := conn.Read(ctx, ns.StreamIn(0), natsconn.ReadOptions{}, func(m natsconn.Stored) {
		var r schemas.Report
		if schemas.Unmarshal(m.Data, &r) == nil {
			reports <- r
		}
	})
	if err != nil {
		stop()
		return errors.Join(err, <-ended)
	}
	defer func() { reader.Close(); <-reader.Done() }()
	task, err := json.Marshal(schemas.ActivityTask{
		Type: "shout", Input: schemas.Payload(`"hello"`), Token: "t", Report: ns.ActOutcome(0, "w", "text"), List: "text",
	})
	if err == nil {
		_, err = conn.PublishSync(ctx, ns.Task("text", 0), nil, task)
	}
	if err == nil {
		r := <-reports
		fmt.Printf("%s: %s\n", r.Kind, r.Result)
	}
	stop()
	return errors.Join(err, <-ended)
}

func ExampleFinal() {
	err := activity.Final(activity.Fail("card-expired", "12/25")) // no other attempt will mend it
	fmt.Println(err)
	// Output: card-expired: 12/25
}

func ExampleFail() {
	err := fmt.Errorf("charge: %w", activity.Fail("card-declined", "code 51"))
	fmt.Println(err)
	// Output: charge: card-declined: code 51
}
