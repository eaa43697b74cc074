package claims_test

import (
	"errors"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/natsconn"
)

func TestLeaseCountsFromBeforeTheSending(t *testing.T) {
	const slow = 3 * time.Second
	t.Run("P-16/taking", func(t *testing.T) {
		bubble(t, func(t *testing.T, s *embedded.Server) {
			a := join(t, s, claims.Options{Node: "a"})
			a.take(t, "other") // what is asked once was asked
			a.wire.delay.Store(int64(slow))
			l := a.take(t, key)
			if got, want := time.Until(l.Deadline()), ttl-ttl/100-slow; got != want {
				t.Fatalf("got %v left when the acknowledgement came, want %v: counted from before the write", got, want)
			}
		})
	})
	t.Run("P-16/renewing", func(t *testing.T) {
		bubble(t, func(t *testing.T, s *embedded.Server) {
			a := join(t, s, claims.Options{Node: "a"})
			began := time.Now()
			l := a.take(t, key)
			a.wire.delay.Store(int64(slow))
			time.Sleep(ttl/3 + slow - time.Millisecond)
			if got, want := l.Deadline().Sub(began), ttl-ttl/100; got != want {
				t.Fatalf("got %v before the acknowledgement, want %v", got, want)
			}
			time.Sleep(2 * time.Millisecond)
			if got, want := l.Deadline().Sub(began), ttl/3+ttl-ttl/100; got != want {
				t.Fatalf("got %v after the acknowledgement, want %v: counted from before the renewal", got, want)
			}
		})
	})
	t.Run("P-16/an acknowledgement after the end gives no lease", func(t *testing.T) {
		bubble(t, func(t *testing.T, s *embedded.Server) {
			a, b := join(t, s, claims.Options{Node: "a", TTL: time.Second}), join(t, s, claims.Options{Node: "b", TTL: time.Second})
			a.take(t, "other")
			a.wire.delay.Store(int64(995 * time.Millisecond))
			if l, err := a.TryAcquire(t.Context(), key); err == nil {
				t.Fatalf("got %v after a second, want no lease", l)
			}
			time.Sleep(time.Second)
			b.take(t, key)
		})
	})
}

func TestLostAcknowledgements(t *testing.T) {
	// Takes the key; the acknowledgement is lost, and the server not heard for as long as said. What it says stays slow: the
	// first renewal is due when the write is read back, and its acknowledgement must not come before the test has looked.
	takeDeaf := func(t *testing.T, a *peer, deaf time.Duration) (*claims.Lease, error) {
		a.take(t, "other")
		a.wire.delay.Store(int64(time.Second))
		time.AfterFunc(1500*time.Millisecond, func() { a.wire.deaf.Store(true) }) // between the answer to the read and that to the write
		time.AfterFunc(1500*time.Millisecond+deaf, func() { a.wire.deaf.Store(false) })
		return a.TryAcquire(t.Context(), key)
	}
	t.Run("P-16/of the write that took the key, which is read back", func(t *testing.T) {
		bubble(t, func(t *testing.T, s *embedded.Server) {
			a, b := join(t, s, claims.Options{Node: "a"}), join(t, s, claims.Options{Node: "b"})
			began := time.Now()
			l, err := takeDeaf(t, a, 2*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := l.Deadline().Sub(began), time.Second+ttl-ttl/100; got != want {
				t.Fatalf("got a lease until %v after the beginning, want %v: counted from before the write", got, want)
			}
			a.wire.delay.Store(0)
			time.Sleep(time.Minute)
			if _, err := b.TryAcquire(t.Context(), key); !errors.Is(err, claims.ErrHeld) || !l.Valid() {
				t.Fatalf("got %v, valid %v, want it held and renewed", err, l.Valid())
			}
			if err := l.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		})
	})
	t.Run("of the write that took the key, and not read back", func(t *testing.T) {
		bubble(t, func(t *testing.T, s *embedded.Server) {
			a, b := join(t, s, claims.Options{Node: "a"}), join(t, s, claims.Options{Node: "b"})
			if l, err := takeDeaf(t, a, time.Minute); !errors.Is(err, natsconn.ErrTimeout) {
				t.Fatalf("got %v, %v, want an unknown outcome", l, err)
			}
			if _, err := b.TryAcquire(t.Context(), key); !errors.Is(err, claims.ErrHeld) {
				t.Fatalf("got %v, want %v: it was stored", err, claims.ErrHeld)
			}
			a.wire.deaf.Store(false)
			a.wire.delay.Store(0)
			a.take(t, key) // what it wrote itself, it need not wait for
			time.Sleep(time.Minute)
		})
	})
	t.Run("and the key is its own", func(t *testing.T) {
		bubble(t, func(t *testing.T, s *embedded.Server) {
			a, b := join(t, s, claims.Options{Node: "a"}), join(t, s, claims.Options{Node: "b"})
			l := a.take(t, key)
			// The lease ends without the key being freed: the release is not heard.
			a.wire.dumb.Store(true)
			ends(t, l, ttl, claims.ErrExpired)
			a.wire.dumb.Store(false)
			rev, err := b.conn.KVCreate(t.Context(), bucket, "raw", nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			if again := a.take(t, key); again.Number() <= rev {
				t.Fatalf("got number %d, want a new one above %d", again.Number(), rev)
			}
		})
	})
	t.Run("of a renewal", func(t *testing.T) {
		bubble(t, func(t *testing.T, s *embedded.Server) {
			a := join(t, s, claims.Options{Node: "a"})
			l := a.take(t, key)
			number := l.Number()
			for range 5 {
				time.Sleep(time.Until(l.Deadline().Add(ttl/100 - ttl*2/3 - time.Millisecond))) // a moment before it is renewed
				a.wire.deaf.Store(true)
				time.Sleep(100 * time.Millisecond)
				a.wire.deaf.Store(false)
				before := l.Revision()
				time.Sleep(ttl / 2)
				if !l.Valid() || l.Number() != number || l.Revision() < before+2 {
					t.Fatalf("got valid %v, error %v, revision %d after %d, want a lease that found its own renewal", l.Valid(), l.Err(), l.Revision(), before)
				}
			}
		})
	})
}
