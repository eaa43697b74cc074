package otherlanguages_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/drovertest"
	"github.com/droverhq/drover/schemas"
)

// A worker that is told to leave a task does not acknowledge it: the message is all that tells of the loss of the worker that is at it.
func TestTaskIsLeft(t *testing.T) { // P-7
	for _, l := range languages(t) {
		t.Run(l.name, func(t *testing.T) {
			for tries := 1; !testTaskIsLeft(t, l); tries++ {
				if tries == 5 {
					t.Fatal("the worker in Go is never offered the task before its message comes")
				}
			}
		})
	}
}

// testTaskIsLeft reports false if the message of the task has reached the worker in Go before the offer: then there is nothing to leave.
func testTaskIsLeft(t *testing.T, l language) bool {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	e := drovertest.Start(t, nil)
	deciders := e.Client.Deciders(nil)
	deciders.Register("shelf", decider.Func(func(ctx context.Context, task *decider.Task) ([]schemas.Decision, error) {
		run, err := task.View(ctx)
		if err != nil {
			return nil, err
		}
		charge := func(item string) ([]schemas.Decision, error) {
			return []schemas.Decision{decider.Schedule(item, "charge", item, decider.List("billing"))}, nil
		}
		switch {
		case run.Counts("quick").Scheduled == 0:
			return charge("quick")
		case run.Done("slow"):
			return []schemas.Decision{decider.Complete(nil)}, nil
		case len(run.Signals("slow")) > 0 && run.Counts("slow").Scheduled == 0: // what has been quick is offered, to a worker in Go
			return charge("slow")
		}
		return nil, nil
	}))
	paid := make(chan struct{})
	pay := sync.OnceFunc(func() { close(paid) })
	defer pay()
	own := e.Client.Activities(&activity.Options{Lists: []string{"billing"}, Concurrency: 1})
	activity.Register(own, "charge", func(ctx context.Context, item string) (string, error) {
		if item == "slow" {
			select {
			case <-paid:
			case <-ctx.Done():
				return "", ctx.Err()
			}
		}
		return item, nil
	})
	e.Go(deciders, own)

	nc, err := nats.Connect(e.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	said := listen(ctx, t, nc, "_INBOX.>", "$JS.ACK.>", "$JS.API.CONSUMER.MSG.NEXT.*.workers")
	run, err := e.Client.Start(ctx, "shelf", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	said.until(func(m *nats.Msg) bool { return string(m.Data) == "+ACK" })                           // the quick one is done,
	said.until(func(m *nats.Msg) bool { return strings.Contains(string(m.Data), "idle_heartbeat") }) // and the worker idle
	if err := run.Signal(ctx, "slow", nil); err != nil {
		t.Fatal(err)
	}
	l.worker(t, e.URL(), "activity")
	left := false
	said.until(func(m *nats.Msg) bool {
		var p schemas.Permission
		left = strings.HasPrefix(m.Subject, "_INBOX.") && json.Unmarshal(m.Data, &p) == nil && p.Leave
		return left || string(m.Data) == "+WPI"
	})
	if left {
		said.until(func(m *nats.Msg) bool {
			if string(m.Data) == "+ACK" {
				t.Fatal("a task that was to be left is acknowledged")
			}
			return strings.HasPrefix(m.Subject, "$JS.API.") // it asks for the next one
		})
	}
	pay()
	if err := run.Result(ctx, nil); err != nil {
		t.Fatal(err)
	}
	return left
}

// said is what clients and server have said, in the order in which the server got it.
type said struct {
	t   *testing.T
	ctx context.Context
	all chan *nats.Msg
}

func listen(ctx context.Context, t *testing.T, nc *nats.Conn, subjects ...string) *said {
	t.Helper()
	s := &said{t, ctx, make(chan *nats.Msg, 10_000)}
	for _, subject := range subjects {
		if _, err := nc.ChanSubscribe(subject, s.all); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// until waits for what is wanted.
func (s *said) until(wanted func(m *nats.Msg) bool) {
	s.t.Helper()
	for {
		select {
		case m := <-s.all:
			if wanted(m) {
				return
			}
		case <-s.ctx.Done():
			s.t.Fatal("it was not said")
		}
	}
}
