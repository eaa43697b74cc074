package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover/broker/embedded"
)

// house is a NATS server with the streams of a tape.
func house(t *testing.T, tp *tape) (dial func() (*nats.Conn, error), js jetstream.JetStream) {
	t.Helper()
	s, err := embedded.Start(t.Context(), embedded.Options{DontListen: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Shutdown)
	dial = func() (*nats.Conn, error) { return nats.Connect("", nats.InProcessServer(s.Conn())) }
	nc, err := dial()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	if js, err = jetstream.New(nc); err != nil {
		t.Fatal(err)
	}
	for _, sp := range tp.Streams {
		sp.Config.Storage = jetstream.MemoryStorage
		if _, err := js.CreateStream(t.Context(), sp.Config); err != nil {
			t.Fatal(err)
		}
	}
	return dial, js
}

// stored is how many messages a stream holds, and the sequence of the last that it ever took.
type stored struct{ messages, last uint64 }

// playedAll has all parts of a tape played, and returns when the server has dealt with it: the streams are as wanted, by name.
func playedAll(t *testing.T, tp *tape, wanted map[string]stored) {
	t.Helper()
	dial, js := house(t, tp)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var movers []*mover
	for _, from := range []string{fromServer, fromWorker, fromLoad} {
		m := &mover{t: tp, from: from, dial: dial}
		defer m.close()
		if err := m.prepare(ctx); err != nil {
			t.Fatalf("%s: %v", from, err)
		}
		movers = append(movers, m)
	}
	if _, err := atOnce(ctx, 3, 3, func(ctx context.Context, i int) error { return movers[i].move(ctx) }); err != nil {
		t.Fatal(err)
	}
	for name, want := range wanted {
		s, err := js.Stream(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		// The acknowledgements have been sent; that the server has dealt with them is seen by asking.
		var got stored
		for got != want {
			info, err := s.Info(ctx)
			if err != nil {
				t.Fatalf("%s has %d messages, the last of them %d, want %d and %d: %v", name, got.messages, got.last, want.messages, want.last, err)
			}
			got = stored{info.State.Msgs, info.State.LastSeq}
		}
	}
}

// TestMoversMoveATape has all parts of a tape played: every message is stored, and every task acknowledged.
func TestMoversMoveATape(t *testing.T) {
	tp := testTape()
	tp.Streams[1].Config.Retention = jetstream.WorkQueuePolicy
	playedAll(t, tp, map[string]stored{"drover-default-in-1": {2, 2}, "drover-default-tasks-bench": {0, 2}})
}

func TestMoverSaysThatNothingWasStored(t *testing.T) {
	tp := testTape()
	dial, js := house(t, tp)
	if err := js.DeleteStream(t.Context(), "drover-default-in-1"); err != nil {
		t.Fatal(err)
	}
	m := &mover{t: tp, from: fromLoad, dial: dial}
	defer m.close()
	if err := m.prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := m.move(t.Context()); err == nil || !strings.Contains(err.Error(), "was not stored") {
		t.Fatalf("got %v, want an error about a message that was not stored", err)
	}
}
