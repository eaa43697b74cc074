// Package fleet runs a whole Drover in a test's own process: an embedded server on a random loopback port, a broker and
// a timer worker. Examples are tested against it as users run them, by URL. Only tests may import it.
//
// Invariant: whatever Start began has ended when the test has.
package fleet

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/post"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/timers"
)

const node = "test"

// Start serves the namespace "default" until the test ends, and returns the address of NATS.
func Start(t *testing.T) (url string) {
	t.Helper()
	server, err := embedded.Start(t.Context(), embedded.Options{Port: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Shutdown)
	dial := func(ctx context.Context, name string) (*post.Conn, error) {
		return post.Dial(ctx, post.Options{InProcess: server.Conn(), Name: name})
	}
	conn, err := dial(t.Context(), node)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	space, err := topology.Ensure(t.Context(), conn, topology.Options{Memory: true})
	if err != nil {
		t.Fatal(err)
	}
	held, err := claims.Open(conn, space.Name.BucketClaims(), claims.Options{Node: node})
	if err != nil {
		t.Fatal(err)
	}
	b, err := broker.New(dial, broker.Options{Partitions: space.Partitions, Claims: held, Node: node})
	if err != nil {
		t.Fatal(err)
	}
	ring := timers.New(conn, &timers.Options{Partitions: space.Partitions, Claims: held})

	// The test's own context ends before its cleanups run; the roles outlive the workers under test.
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var wg sync.WaitGroup
	for name, role := range map[string]func(context.Context) error{"broker": b.Run, "timers": ring.Run} {
		wg.Go(func() {
			if err := role(ctx); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
	awaitPartitions(t, b, space.Partitions)
	return server.ClientURL()
}

// awaitPartitions waits until somebody answers for every workflow id. Drover's own clients wait by themselves; those
// that are played with plain NATS need not.
func awaitPartitions(t *testing.T, b *broker.Broker, want int) {
	t.Helper()
	tick, limit := time.NewTicker(time.Millisecond), time.After(30*time.Second)
	defer tick.Stop()
	for len(b.Owned()) < want {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("the broker owns partitions %v after 30 s, want %d of them", b.Owned(), want)
		}
	}
}
