package broker_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker"
)

// Who waits for the answer of a broker that dies has that of the next one as soon as it serves the partition.
func TestAnswersOfADeadBroker(t *testing.T) { // P-5
	virtually(t, 1, func(t *testing.T, f *fleet) {
		var owned atomic.Int64
		if _, err := f.nc.Subscribe(ns.AllOwned(), func(m *nats.Msg) {
			if m.Subject != ns.Owned(0) || len(m.Data) != 0 {
				t.Errorf("got %q on %s, want nothing on %s", m.Data, m.Subject, ns.Owned(0))
			}
			owned.Add(1)
		}); err != nil {
			t.Fatal(err)
		}
		f.flush()
		first := f.node("a", nil)
		time.Sleep(time.Second) // it has the partition
		f.node("b", nil)
		f.decider("order", signaled)
		f.start(startO)
		c, err := drover.Connect(t.Context(), &drover.Options{Conn: f.post})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		began, result := time.Now(), make(chan error, 1)
		go func() { result <- c.Run("o", "").Result(t.Context(), nil) }()
		time.Sleep(time.Second) // the first one has the question
		first.wire.Kill()
		f.publish("drover.default.signal.o.go", "")
		if err := <-result; err != nil {
			t.Fatal(err)
		}
		// The second one finds out within half a second that the first one is gone. Without a word of it the question would go out again after seven.
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("told of the end %v behind the question, want it some two seconds behind", took)
		}
		if n := owned.Load(); n != 1 {
			t.Errorf("heard %d times that the partition has a new owner, want it once: the first one has nobody before it", n)
		}
	})
}

// A broker that has left in good order has answered everybody, and the next one says nothing. If that one dies before it has written anything
// itself, the next but one does.
func TestNewOwnersOfOrderlyOnes(t *testing.T) {
	for name, decides := range map[string]bool{"a decision is wanted": false, "none is": true} {
		t.Run(name, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) { newOwnersOfOrderlyOnes(t, f, decides) })
		})
	}
}

func newOwnersOfOrderlyOnes(t *testing.T, f *fleet, decides bool) {
	heard, err := f.nc.SubscribeSync(ns.AllOwned())
	if err != nil {
		t.Fatal(err)
	}
	f.flush()
	said := func() int {
		t.Helper()
		f.flush()
		n, _, err := heard.Pending()
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if decides {
		f.decider("order", signaled)
	}
	first := f.node("a", nil)
	f.start(startO)
	first.stop()
	second := f.node("b", nil, func(o *broker.Options) { o.CheckpointEvery = time.Hour })
	f.api("why", `{"workflowId":"o"}`)
	if n := said(); n != 0 {
		t.Fatalf("heard %d times of a new owner, want nothing of one behind an orderly one", n)
	}
	f.node("c", nil)
	second.wire.Kill()
	time.Sleep(2 * time.Second)
	f.api("why", `{"workflowId":"o"}`)
	if n := said(); n != 1 {
		t.Fatalf("heard %d times of a new owner, want it once", n)
	}
}
