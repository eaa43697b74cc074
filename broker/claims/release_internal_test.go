package claims

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/internal/virtual"
	"github.com/nats-io/nats.go/jetstream"
)

// Whoever gives a claim back has no lease any more from then on, though the key may be freed much later.
func TestReleaseEndsTheLeaseFirst(t *testing.T) { // P-16
	virtual.Run(t, func(t *testing.T) {
		c, err := Open(new(natsconn.Conn), "b", Options{Node: "n"})
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
		if err := <-released; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want %v", err, context.Canceled)
		}
	})
}

// unknownRenewal is a lease whose last renewal was stored a second ago without its holder's knowing.
func unknownRenewal(t *testing.T) (*Claims, *Lease) {
	t.Helper()
	s := embeddedtest.Serve(t, embedded.Options{DontListen: true})
	conn := embeddedtest.Connect(t, s)
	_, err := conn.JetStream().CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "b", Storage: jetstream.MemoryStorage, LimitMarkerTTL: time.Minute})
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
	time.Sleep(time.Second)
	return c, l
}

// It does not keep a claim that is given back.
func TestReleaseAfterAnUnknownRenewal(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		c, l := unknownRenewal(t)
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if e, err := c.read(t.Context(), Master); err != nil || !e.absent {
			t.Errorf("got %+v, %v; want that the key is free", e, err)
		}
	})
}

// It begins no term: the key expires before one would end that counts from when the renewal is found.
func TestUnknownRenewalBeginsNoTerm(t *testing.T) { // P-16
	virtual.Run(t, func(t *testing.T) {
		_, l := unknownRenewal(t)
		ends := l.Deadline()
		if _, err := l.renew(t.Context()); !errors.Is(err, natsconn.ErrWrongSequence) || !l.Deadline().Equal(ends) {
			t.Errorf("got %v, and a lease that ends %v later; want a refusal, and the same end", err, l.Deadline().Sub(ends))
		}
		if _, err := l.renew(t.Context()); err != nil || l.Deadline().Sub(ends) != time.Second {
			t.Errorf("got %v, and a lease that ends %v later; want it renewed, by the second that has passed", err, l.Deadline().Sub(ends))
		}
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A lease that has ended is replaced before it is forgotten: two of one process would not know each other.
func TestEndedLeaseForgetsNoOther(t *testing.T) { // P-16
	c, err := Open(new(natsconn.Conn), "b", Options{Node: "n"})
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
