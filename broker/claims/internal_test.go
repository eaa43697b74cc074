package claims

import (
	"errors"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/internal/virtual"
)

// TestInstantCountsByBothClocks moves the two clocks apart, as a suspended machine and an operator do.
func TestInstantCountsByBothClocks(t *testing.T) {
	began := now()
	for _, tc := range []struct {
		name             string
		mono, wall, want time.Duration
	}{
		{"P-16/both run", 5 * time.Second, 5 * time.Second, 5 * time.Second},
		{"P-16/suspended for an hour", 5 * time.Second, time.Hour, time.Hour},
		{"P-16/the wall clock was set back", 5 * time.Second, -time.Hour, 5 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			later := instant{mono: began.mono.Add(tc.mono), wall: began.wall.Add(tc.wall)}
			if got := later.since(began); got != tc.want {
				t.Fatalf("got %v, want %v", got, tc.want)
			}
		})
	}
}

// TestSuspendedHolder gives a lease a term whose wall clock has gone on without the monotonic one.
func TestSuspendedHolder(t *testing.T) {
	t.Run("P-16", func(t *testing.T) {
		c, err := Open(new(natsconn.Conn), "b", Options{Node: "n"})
		if err != nil {
			t.Fatal(err)
		}
		l := c.lease(Master, c.nonce(), 1, now(), time.Now())
		if !l.Valid() {
			t.Fatal("a new lease is not valid")
		}
		slept := now()
		slept.wall = slept.wall.Add(-c.TTL())
		l.term.Store(&slept)
		if l.Valid() {
			t.Fatal("valid after the machine was suspended for longer than the claim lasts")
		}
		l.extend(now()) // a renewal that was under way
		if l.Valid() {
			t.Fatal("a lease that had ended came back")
		}
		// The same when nobody has asked meanwhile.
		l = c.lease(Master, c.nonce(), 2, slept, time.Now())
		l.extend(now())
		if l.Valid() {
			t.Fatal("a lease that had ended unseen came back")
		}
	})
}

// TestServerClockSetBack has a node whose estimate of the server's clock is an hour ahead, as after a step of that clock, or when a
// leader with a slower one has followed.
func TestServerClockSetBack(t *testing.T) { // P-16
	virtual.Run(t, func(t *testing.T) {
		holder, l := unknownRenewal(t)
		defer l.stop()
		other, err := Open(holder.conn, holder.bucket, Options{Node: "other"})
		if err != nil {
			t.Fatal(err)
		}
		ahead := func() {
			other.now(t.Context())
			other.clock.Observe(time.Now().Add(time.Hour), time.Now())
		}
		ahead()
		all, err := other.List(t.Context())
		if err != nil || len(all) != 1 || all[0].Expired {
			t.Errorf("got %+v and %v, want one claim that has not expired", all, err)
		}
		ahead()
		taken, err := other.TryAcquire(t.Context(), l.Key())
		if !errors.Is(err, ErrHeld) {
			t.Errorf("got %v, want the claim of a live owner to be held", err)
		}
		if taken != nil {
			taken.stop()
		}
	})
}

func TestValidIsCheap(t *testing.T) {
	c, err := Open(new(natsconn.Conn), "b", Options{Node: "n"})
	if err != nil {
		t.Fatal(err)
	}
	l := c.lease(Master, c.nonce(), 1, now(), time.Now())
	if n := testing.AllocsPerRun(100, func() { _ = l.Valid() }); n != 0 {
		t.Fatalf("got %v allocations, want none", n)
	}
}

func TestNoncesDiffer(t *testing.T) {
	a, err := Open(new(natsconn.Conn), "b", Options{Node: "n"})
	if err != nil {
		t.Fatal(err)
	}
	b, err := Open(new(natsconn.Conn), "b", Options{Node: "n"})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for range 100 {
		for _, c := range []*Claims{a, b} {
			n := c.nonce()
			if seen[n] {
				t.Fatalf("nonce %s came twice", n)
			}
			seen[n] = true
		}
	}
}

func BenchmarkValid(b *testing.B) {
	c, err := Open(new(natsconn.Conn), "b", Options{Node: "n", TTL: maxTTL})
	if err != nil {
		b.Fatal(err)
	}
	l := c.lease(Master, c.nonce(), 1, now(), time.Now())
	for b.Loop() {
		if !l.Valid() {
			b.Fatal(l.Err())
		}
	}
}
