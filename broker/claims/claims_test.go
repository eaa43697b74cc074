package claims_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/topology"
)

func TestOptions(t *testing.T) {
	for want, o := range map[string]claims.Options{
		"Node is empty":    {},
		"control":          {Node: "a\nb"},
		"TTL is 999ms":     {Node: "a", TTL: 999 * time.Millisecond},
		"TTL is -1s":       {Node: "a", TTL: -time.Second},
		"TTL is 2h0m0s":    {Node: "a", TTL: 2 * time.Hour},
		"LookEvery is -1s": {Node: "a", LookEvery: -time.Second},
		"LookEvery is 2h":  {Node: "a", LookEvery: 2 * time.Hour},
		`Boot is ""`:       {Node: "a", StoreID: "S"},
		`StoreID is ""`:    {Node: "a", Boot: "B"},
	} {
		if _, err := claims.Open(nil, bucket, o); !errors.Is(err, claims.ErrInvalidOptions) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error about %s", err, want)
		}
	}
	c, err := claims.Open(nil, bucket, claims.Options{Node: "a"})
	if err != nil || c.TTL() != 10*time.Second || c.Node() != "a" {
		t.Fatalf("got %v, %v", c, err)
	}
}

func TestKeys(t *testing.T) {
	for k, want := range map[string]int{
		claims.Partition(0): 0, claims.Partition(255): 255, "partition.": -1, "partition.x": -1, "partition.-1": -1, "partition.01": -1,
		"partition.+1": -1, "partition.0x1": -1, "5": -1, "alarms.3": -1, claims.Master: -1, "": -1,
	} {
		p, ok := claims.ParsePartition(k)
		if ok != (want >= 0) || ok && p != want {
			t.Errorf("%q: got %d, %v, want %d", k, p, ok, want)
		}
	}
	if got := claims.Alarms(3); got != "alarms.3" {
		t.Errorf("got %s", got)
	}
}

func TestBadKeysAreRefused(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded.Server) {
		a := join(t, s, claims.Options{Node: "a"})
		for _, k := range []string{"", "a b", "a..b", "*", ">", "é"} {
			if l, err := a.TryAcquire(t.Context(), k); err == nil || errors.Is(err, claims.ErrHeld) {
				t.Errorf("%q: got %v, %v, want a refusal", k, l, err)
			}
		}
	})
}

func TestEvict(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded.Server) {
		a := join(t, s, claims.Options{Node: "a"})
		living := a.take(t, claims.Master)
		for p := range 3 {
			if _, err := a.conn.KVCreate(t.Context(), bucket, claims.Partition(p), []byte(`{"node":"old","nonce":"x","number":0,"ttl":2}`), 0); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(3 * time.Second)
		list, err := a.List(t.Context())
		if err != nil || len(list) != 4 || list[0].Key != claims.Master || list[0].Expired || !list[1].Expired || list[1].Node != "old" {
			t.Fatalf("got %+v, %v", list, err)
		}
		if err := a.Evict(t.Context(), list[0]); !errors.Is(err, claims.ErrHeld) || !living.Valid() {
			t.Fatalf("got %v for a living claim, want %v", err, claims.ErrHeld)
		}
		if err := a.Confirm(t.Context(), list[1]); err != nil {
			t.Fatal(err)
		}
		if err := a.Evict(t.Context(), list[1]); err != nil {
			t.Fatal(err)
		}
		if err := a.Confirm(t.Context(), list[1]); !errors.Is(err, claims.ErrHeld) {
			t.Fatalf("got %v for a claim that is gone, want %v", err, claims.ErrHeld)
		}
		if err := a.Evict(t.Context(), list[1]); err != nil {
			t.Fatalf("a claim that is gone: %v", err)
		}
		taken := a.take(t, claims.Partition(1)) // between the listing and the eviction
		if err := a.Evict(t.Context(), list[2]); !errors.Is(err, claims.ErrHeld) {
			t.Fatalf("got %v for a claim that was taken meanwhile, want %v", err, claims.ErrHeld)
		}
		time.Sleep(ttl)
		if !taken.Valid() {
			t.Fatal(taken.Err())
		}
		if list, err = a.List(t.Context()); err != nil || len(list) != 3 {
			t.Fatalf("got %+v, %v, want 3 claims", list, err)
		}
	})
}

func TestListOfManyClaims(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded.Server) {
		a := join(t, s, claims.Options{Node: "a"})
		if list, err := a.List(t.Context()); err != nil || len(list) != 0 {
			t.Fatalf("got %v, %v, want none", list, err)
		}
		for p := range 600 {
			if _, err := a.conn.KVCreate(t.Context(), bucket, claims.Partition(p), []byte("x"), time.Hour); err != nil {
				t.Fatal(err)
			}
		}
		if list, err := a.List(t.Context()); err != nil || len(list) != 600 {
			t.Fatalf("got %d, %v, want 600", len(list), err)
		}
	})
}

// TestServerRestart takes the server down under a holder and under what it has stored.
func TestServerRestart(t *testing.T) {
	dir := t.TempDir()
	start := func() (*embedded.Server, *natsconn.Conn) {
		s := embeddedtest.Serve(t, embedded.Options{StoreDir: dir, DontListen: true})
		conn := embeddedtest.Connect(t, s)
		if _, err := topology.Ensure(t.Context(), conn, topology.Options{Partitions: 1}); err != nil {
			t.Fatal(err)
		}
		return s, conn
	}
	open := func(s *embedded.Server, conn *natsconn.Conn) *claims.Claims {
		c, err := claims.Open(conn, bucket, claims.Options{Node: "n", StoreID: s.StoreID(), Boot: s.Boot()})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	s, conn := start()
	l, err := open(s, conn).TryAcquire(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	s.Shutdown()

	s, conn = start()
	next, err := open(s, conn).TryAcquire(t.Context(), key)
	if err != nil || next.Number() <= l.Number() {
		t.Fatalf("got %v, %v, want the claim of the earlier start at once, with a number above %d", next, err, l.Number())
	}
	for _, l := range []*claims.Lease{next, l} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		_ = l.Release(ctx) // the first has no connection any more
		cancel()
	}
}

func Example() {
	ctx := context.Background()
	server, err := embedded.Start(ctx, embedded.Options{DontListen: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Shutdown()
	conn, err := natsconn.Dial(ctx, natsconn.Options{InProcess: server.Conn()})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	ns, err := topology.Ensure(ctx, conn, topology.Options{Memory: server.Memory()})
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := claims.Open(conn, ns.Name.BucketClaims(), claims.Options{Node: "laptop", StoreID: server.StoreID(), Boot: server.Boot()})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(ctx)
	err = c.Hold(ctx, claims.Partition(0), claims.HoldOptions{}, func(ctx context.Context, l *claims.Lease) error {
		fmt.Println("owner of", l.Key(), "may write:", l.Valid())
		stop() // usually somebody else does
		<-ctx.Done()
		fmt.Println("time to hand over, may still write:", l.Valid())
		return nil
	})
	fmt.Println(err)
	// Output:
	// owner of partition.0 may write: true
	// time to hand over, may still write: true
	// <nil>
}
