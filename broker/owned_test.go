package broker_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/droverhq/drover"
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
		conn := f.dial(f.server.Conn())
		defer conn.Close()
		c, err := drover.Connect(t.Context(), &drover.Options{Conn: conn})
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
		if n := owned.Load(); n != 2 {
			t.Errorf("heard %d times that the partition is served, want it once from each broker", n)
		}
	})
}
