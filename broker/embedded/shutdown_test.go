package embedded_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover/broker/embedded"
)

// The server tells those who pull that it ends, and sleeps with a lock of JetStream in its hand. Whoever waits for that lock
// keeps the clock of a bubble from moving on, and the server from waking up: on a busy machine a whole package of tests
// stood still now and then.
func TestShutdownAfterRequests(t *testing.T) {
	stuck := time.AfterFunc(30*time.Second, func() {
		panic("the clock of the bubble stands still: somebody waits for a lock of a server that sleeps")
	})
	defer stuck.Stop()
	inBubble(t, embedded.Options{}, func(t *testing.T, s *embedded.Server) {
		js := connect(t, s)
		tasks := makeStream(t, s, js, "TASKS")
		if _, err := tasks.CreateConsumer(t.Context(), jetstream.ConsumerConfig{Durable: "work", AckPolicy: jetstream.AckExplicitPolicy}); err != nil {
			t.Fatal(err)
		}
		told := make(chan *nats.Msg, 1)
		nc := js.Conn()
		if _, err := nc.ChanSubscribe("told", told); err != nil {
			t.Fatal(err)
		}
		if err := nc.PublishRequest("$JS.API.CONSUMER.MSG.NEXT.TASKS.work", "told", []byte(`{"expires":60000000000}`)); err != nil {
			t.Fatal(err)
		}
		for i := range 200 {
			name := fmt.Sprintf("c%d", i)
			body := fmt.Sprintf(`{"stream_name":"TASKS","config":{"name":"%s","ack_policy":"none","inactive_threshold":60000000000}}`, name)
			if err := nc.PublishRequest("$JS.API.CONSUMER.CREATE.TASKS."+name, "nobody", []byte(body)); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := nc.FlushWithContext(ctx); err != nil {
			t.Fatal(err)
		}
		s.Shutdown()
		if got := (<-told).Header.Get("Status"); got != "409" {
			t.Fatalf("whoever pulled was told %q, want 409: without such a request the server does not sleep", got)
		}
	})
}
