package natsconn

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover/internal/virtual"
)

// makeConsumers makes the work queue S with a consumer for each of the subjects s.high, s.mid and s.low.
func makeConsumers(t testing.TB, c *Conn) []string {
	t.Helper()
	stream(t, c, func(cfg *jetstream.StreamConfig) { cfg.Retention = jetstream.WorkQueuePolicy })
	names := []string{"high", "mid", "low"}
	for _, name := range names {
		_, err := c.JetStream().CreateConsumer(t.Context(), "S", jetstream.ConsumerConfig{
			Durable: name, FilterSubject: "s." + name, AckPolicy: jetstream.AckExplicitPolicy, AckWait: ackWait, MaxAckPending: -1,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return names
}

func pullConsumers(t testing.TB, c *Conn, limit int, names ...string) (*Puller, chan Task) {
	t.Helper()
	tasks := make(chan Task, 100)
	p, err := c.Pull(t.Context(), PullOptions{Stream: "S", Consumers: names, Max: limit}, func(task Task) { tasks <- task })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p, tasks
}

// A consumer that was found empty while all slots were taken is unknown again when one becomes free: it is asked before the
// consumers below, and nothing is pulled that has to be given back.
func TestConsumersForgetWhatWasEmpty(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		c := connect(t)
		names := makeConsumers(t, c)
		_, tasks := pullConsumers(t, c, 1, names...)
		time.Sleep(time.Second) // requests stand for all consumers
		put(t, c, "s.low", "long")
		long := <-tasks
		for range 10 { // meanwhile the requests for the others expire
			time.Sleep(ackWait - time.Second)
			if err := long.InProgress(); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range names {
			put(t, c, "s."+name, name)
		}
		synctest.Wait()
		finish(t, long)
		for _, name := range names {
			task := <-tasks
			if string(task.Data) != name || task.Delivered != 1 {
				t.Fatalf("got %q, delivery %d, want %q, delivered once", task.Data, task.Delivered, name)
			}
			time.Sleep(time.Second)
			finish(t, task)
		}
	})
}

func TestConsumersGoInOrder(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		c := connect(t)
		names := makeConsumers(t, c)
		for range 5 {
			for _, name := range names {
				put(t, c, "s."+name, name)
			}
		}
		// A publish is acknowledged before the consumers are told of it, and they answer a probe by what they were told: until
		// the server is idle a full consumer may count as empty, as if its messages were put a moment later.
		synctest.Wait()
		p, tasks := pullConsumers(t, c, 2, names...)
		var got []string
		for range 15 {
			task := <-tasks
			if p.Held() > 2 || task.Delivered != 1 {
				t.Fatalf("got %d held, delivery %d, want at most 2 at a time, each delivered once", p.Held(), task.Delivered)
			}
			time.Sleep(time.Second)
			got = append(got, string(task.Data))
			finish(t, task)
		}
		for i, g := range got {
			if g != names[i/5] {
				t.Fatalf("got %v, want the high ones first and the low ones last", got)
			}
		}
	})
}

// What waits for a slot when the puller is closed goes back at once.
func TestConsumersCloseGivesBack(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		c := connect(t)
		names := makeConsumers(t, c)
		p, tasks := pullConsumers(t, c, 1, names...)
		time.Sleep(time.Second) // requests stand for all consumers
		put(t, c, "s.low", "first")
		first := <-tasks
		put(t, c, "s.high", "second")
		synctest.Wait()
		p.Close()
		_, others := pullConsumers(t, c, 1, names...)
		began := time.Now()
		if got := <-others; string(got.Data) != "second" || time.Since(began) > time.Second/10 {
			t.Fatalf("got %q after %v, want the second at once", got.Data, time.Since(began))
		}
		if err := first.Ack(); err != nil {
			t.Fatal(err)
		}
	})
}

// A consumer that is missing, or that the user may not pull from, holds up no other.
func TestConsumersThatDoNotAnswer(t *testing.T) {
	o := serverOptions(t)
	o.Users = []*server.User{
		{Username: "root", Password: "p"},
		{Username: "worker", Password: "p", Permissions: &server.Permissions{
			Publish:   &server.SubjectPermission{Allow: []string{"$JS.API.CONSUMER.MSG.NEXT.S.mid", "$JS.API.CONSUMER.MSG.NEXT.S.none", "$JS.ACK.S.>"}},
			Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX.>"}},
		}},
	}
	virtual.Run(t, func(t *testing.T) {
		srv, stop := start(t, o)
		t.Cleanup(stop)
		root := dial(t, Options{InProcess: srv, User: "root", Password: "p"})
		makeConsumers(t, root)
		c := dial(t, Options{InProcess: srv, User: "worker", Password: "p"})
		_, tasks := pullConsumers(t, c, 1, "high", "none", "mid", "low")
		began := time.Now()
		for range 200 {
			put(t, root, "s.mid", "x")
			task := <-tasks
			finish(t, task)
		}
		if took := time.Since(began); took > time.Second {
			t.Fatalf("it took %v, want no waiting for the others", took)
		}
	})
}

// A probe that the server leaves without an answer, here because the consumer has handed out all it may, holds up the consumers
// below once and not again, also when its requests expire.
func TestConsumersDoNotWaitForASilentOne(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		c := connect(t)
		names := makeConsumers(t, c)
		_, err := c.JetStream().UpdateConsumer(t.Context(), "S", jetstream.ConsumerConfig{
			Durable: "high", FilterSubject: "s.high", AckPolicy: jetstream.AckExplicitPolicy, AckWait: time.Hour, MaxAckPending: 1,
		})
		if err != nil {
			t.Fatal(err)
		}
		_, others := pullConsumers(t, c, 1, "high")
		put(t, c, "s.high", "held")
		held := <-others
		put(t, c, "s.high", "waits")
		synctest.Wait()
		_, tasks := pullConsumers(t, c, 1, names...)
		var waited time.Duration
		for range 20 { // more than pullExpires
			began := time.Now()
			put(t, c, "s.mid", "mid")
			task := <-tasks
			waited += time.Since(began)
			if string(task.Data) != "mid" {
				t.Fatalf("got %q, want what is not held back", task.Data)
			}
			time.Sleep(2 * time.Second)
			finish(t, task)
		}
		if waited == 0 || waited > probePatience+pullHeartbeat {
			t.Fatalf("waited %v, want one wait for the silent band", waited)
		}
		if err := held.Ack(); err != nil {
			t.Fatal(err)
		}
		if task := <-tasks; string(task.Data) != "waits" || task.Delivered != 1 {
			t.Fatalf("got %q, delivery %d, want the one that waited", task.Data, task.Delivered)
		}
	})
}
