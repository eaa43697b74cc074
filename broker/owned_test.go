package broker_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/internal/cutwire"
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
		c, err := drover.Connect(t.Context(), &drover.Options{Conn: f.post.NATS()})
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
			t.Errorf("told of the end %v after the question, want it some two seconds after", took)
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

// heardOwned counts the words of new owners from now on.
func (f *fleet) heardOwned() func() int {
	f.t.Helper()
	heard, err := f.nc.SubscribeSync(ns.AllOwned())
	if err != nil {
		f.t.Fatal(err)
	}
	f.flush()
	return func() int {
		f.t.Helper()
		f.flush()
		n, _, err := heard.Pending()
		if err != nil {
			f.t.Fatal(err)
		}
		return n
	}
}

// One that leaves while a task is not on its list, for as long as an owner waits, has the next one repeat it, and what came after it: workers hear of
// that, to ask before they begin.
func TestNewOwnerTellsOfOpenEffects(t *testing.T) { // P-1
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.decider("order", one(""))
		said := f.heardOwned()
		first := f.node("a", every(ns.Task("main", 0), cutwire.Swallow))
		f.start(startO)
		began := time.Now()
		first.stop()
		if took := time.Since(began); took < 4*time.Second || took > 12*time.Second {
			t.Errorf("it left after %v, want some five seconds of patience with the server", took)
		}
		f.node("b", nil)
		f.api("why", `{"workflowId":"o"}`)
		if n := said(); n != 1 {
			t.Fatalf("heard %d times of a new owner, want it once", n)
		}
		if k := f.pull(); k.ActivityID != "a" {
			t.Fatalf("got %s, want the task", k.ActivityID)
		}
	})
}

func newOwnersOfOrderlyOnes(t *testing.T, f *fleet, decides bool) {
	said := f.heardOwned()
	if decides {
		f.decider("order", signaled)
	}
	first := f.node("a", nil)
	f.start(startO)
	first.stop()
	second := f.node("b", nil, func(o *broker.Options) { o.CheckpointEvery = time.Hour })
	f.api("why", `{"workflowId":"o"}`)
	if n := said(); n != 0 {
		t.Fatalf("heard %d times of a new owner, want nothing of one after an orderly one", n)
	}
	f.node("c", nil)
	second.wire.Kill()
	time.Sleep(2 * time.Second)
	f.api("why", `{"workflowId":"o"}`)
	if n := said(); n != 1 {
		t.Fatalf("heard %d times of a new owner, want it once", n)
	}
}
