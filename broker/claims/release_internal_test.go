package claims

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/post"
	"github.com/nats-io/nats.go/jetstream"
)

// Whoever gives a claim back has no lease any more from then on, though the key may be freed much later.
func TestReleaseEndsTheLeaseFirst(t *testing.T) { // P-16
	synctest.Test(t, func(t *testing.T) {
		c, err := Open(new(post.Conn), "b", Options{Node: "n"})
		if err != nil {
			t.Fatal(err)
		}
		l := c.lease(Master, c.nonce(), 1, now(), time.Now())
		l.stop = func() {} // a renewal that is under way, and is not over
		ctx, cancel := context.WithCancel(t.Context())
		released := make(chan error)
		go func() { released <- l.Release(ctx) }()
		synctest.Wait()
		if l.Valid() {
			t.Error("valid while the claim is given back")
		}
		cancel()
		<-released
	})
}

// A renewal that was stored without its holder's knowing does not keep a claim that is given back.
func TestReleaseBehindAnUnknownRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := embeddedtest.Serve(t, embedded.Options{DontListen: true})
		conn, err := post.Dial(t.Context(), post.Options{InProcess: s.Conn()})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_, err = conn.JetStream().CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "b", Storage: jetstream.MemoryStorage, LimitMarkerTTL: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		c, err := Open(conn, "b", Options{Node: "n"})
		if err != nil {
			t.Fatal(err)
		}
		l, err := c.TryAcquire(t.Context(), Master)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.write(t.Context(), Master, value{Nonce: l.nonce, Number: l.number}, l.revision.Load(), conn); err != nil {
			t.Fatal(err)
		}
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if e, err := c.read(t.Context(), Master); err != nil || !e.absent {
			t.Errorf("got %+v, %v; want that the key is free", e, err)
		}
	})
}

// A lease that has ended is replaced before it is forgotten: two of one process would not know each other.
func TestEndedLeaseForgetsNoOther(t *testing.T) { // P-16
	c, err := Open(new(post.Conn), "b", Options{Node: "n"})
	if err != nil {
		t.Fatal(err)
	}
	ended := c.lease(Master, c.nonce(), 1, now(), time.Now())
	c.leases[Master] = ended
	close(ended.done)
	if err := c.reserve(Master); err != nil {
		t.Fatal(err)
	}
	c.forget(ended)
	if err := c.reserve(Master); err == nil {
		t.Fatal("a key that is being taken may be taken by another caller")
	}
}
