package ops_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/internal/virtual"
	"github.com/droverhq/drover/ops"
)

const (
	bucket = "drover-default-claims"
	ttl    = 10 * time.Second
	often  = 100 * time.Millisecond
)

func TestMain(m *testing.M) {
	defer embedded.RegisterTicker()()
	m.Run()
}

// bubble runs fn in virtual time with a server that has the default namespace.
func bubble(t *testing.T, fn func(t *testing.T, s *embedded.Server)) {
	t.Helper()
	virtual.Run(t, func(t *testing.T) {
		s := embeddedtest.Serve(t, embedded.Options{DontListen: true})
		if _, err := topology.Ensure(t.Context(), embeddedtest.Connect(t, s), topology.Options{Memory: true, Partitions: 1}); err != nil {
			t.Fatal(err)
		}
		fn(t, s)
	})
}

// node is one process with a master.
type node struct {
	*ops.Master
	conn   *natsconn.Conn
	claims *claims.Claims
	stop   func()
}

func start(t *testing.T, s *embedded.Server, name string, o ops.MasterOptions) *node {
	t.Helper()
	n := &node{conn: embeddedtest.Connect(t, s)}
	var err error
	if n.claims, err = claims.Open(n.conn, bucket, claims.Options{Node: name}); err != nil {
		t.Fatal(err)
	}
	o.Claims = n.claims
	if n.Master, err = ops.NewMaster(o); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := n.Run(ctx); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}()
	n.stop = sync.OnceFunc(func() {
		cancel()
		<-ended
	})
	t.Cleanup(n.stop)
	return n
}

func leading(nodes ...*node) (n int) {
	for _, m := range nodes {
		if m.Leading() {
			n++
		}
	}
	return n
}

func TestS3_16AnotherMasterWithinTheClaimTimeout(t *testing.T) {
	t.Run("it dies", func(t *testing.T) {
		bubble(t, func(t *testing.T, s *embedded.Server) {
			first := start(t, s, "a", ops.MasterOptions{})
			time.Sleep(100 * time.Millisecond)
			if !first.Leading() {
				t.Fatal("the only node is not the master")
			}
			second, third := start(t, s, "b", ops.MasterOptions{}), start(t, s, "c", ops.MasterOptions{})
			for range 600 {
				time.Sleep(100 * time.Millisecond)
				if !first.Leading() || leading(second, third) != 0 {
					t.Fatal("the master changed without a reason")
				}
			}
			first.conn.Close() // it dies
			died := time.Now()
			for leading(second, third) == 0 {
				time.Sleep(10 * time.Millisecond)
				if took := time.Since(died); took > ttl+time.Second {
					t.Fatalf("no master after %v, want one within the claim timeout of %v", took, ttl)
				}
				if n := leading(first, second, third); n > 1 {
					t.Fatalf("got %d masters", n)
				}
			}
			t.Logf("another master after %v", time.Since(died))
		})
	})
	t.Run("a planned stop hands over at once", func(t *testing.T) {
		bubble(t, func(t *testing.T, s *embedded.Server) {
			first := start(t, s, "a", ops.MasterOptions{})
			time.Sleep(100 * time.Millisecond)
			second := start(t, s, "b", ops.MasterOptions{})
			time.Sleep(time.Minute)
			first.stop()
			time.Sleep(50 * time.Millisecond)
			if first.Leading() || !second.Leading() {
				t.Fatalf("got first %v, second %v, want the second", first.Leading(), second.Leading())
			}
		})
	})
}

func TestS3_11OnlyTheMasterSweeps(t *testing.T) {
	t.Run("three nodes", func(t *testing.T) {
		bubble(t, func(t *testing.T, s *embedded.Server) {
			var sweeps, foreign atomic.Int32
			var nodes [3]atomic.Pointer[node]
			for i := range nodes {
				nodes[i].Store(start(t, s, fmt.Sprint("n", i), ops.MasterOptions{Observer: func(sweep ops.Sweep) {
					sweeps.Add(1)
					// The first sweep may come before start returns.
					if n := nodes[i].Load(); n != nil && !n.Leading() || sweep.Number == 0 || sweep.Err != nil || len(sweep.Removed) != 0 {
						foreign.Add(1)
					}
				}}))
				time.Sleep(50 * time.Millisecond)
			}
			time.Sleep(10*time.Minute + time.Second)
			if got, want := sweeps.Load(), int32(10*time.Minute/(ttl/2))+1; got != want || foreign.Load() != 0 {
				t.Fatalf("got %d sweeps, %d of them not the master's, want %d by one master", got, foreign.Load(), want)
			}
		})
	})
}

// expired writes claims that nobody renews and that the server keeps.
func expired(t *testing.T, conn *natsconn.Conn, life time.Duration, keys ...string) (revisions []uint64) {
	t.Helper()
	for _, k := range keys {
		rev, err := conn.KVCreate(t.Context(), bucket, k, fmt.Appendf(nil, `{"node":"dead","nonce":"x","ttl":%v}`, life.Seconds()), 0)
		if err != nil {
			t.Fatal(err)
		}
		revisions = append(revisions, rev)
	}
	return revisions
}

func present(t *testing.T, conn *natsconn.Conn, key string) bool {
	t.Helper()
	_, _, err := conn.KVGet(t.Context(), bucket, key)
	if err != nil && !errors.Is(err, natsconn.ErrNotFound) {
		t.Fatal(err)
	}
	return err == nil
}

func TestExpiredClaimsAreRemoved(t *testing.T) {
	t.Run("P-16/a partition's after its fence", func(t *testing.T) {
		bubble(t, func(t *testing.T, s *embedded.Server) {
			conn := embeddedtest.Connect(t, s)
			type fence struct {
				partition int
				claim     uint64
				there     bool // the claim stood when the fence was written
			}
			var mu sync.Mutex
			var fences []fence
			var removed []string
			disk := errors.New("no disk")
			m := start(t, s, "m", ops.MasterOptions{
				Fence: func(ctx context.Context, p int, claim uint64) error {
					mu.Lock()
					defer mu.Unlock()
					fences = append(fences, fence{p, claim, present(t, conn, claims.Partition(p))})
					if p == 7 && len(fences) < 4 {
						return disk
					}
					return nil
				},
				Observer: func(sweep ops.Sweep) {
					mu.Lock()
					defer mu.Unlock()
					for _, i := range sweep.Removed {
						removed = append(removed, i.Key)
					}
					if sweep.Err != nil && !errors.Is(sweep.Err, disk) {
						t.Errorf("sweep: %v", sweep.Err)
					}
				},
			})
			revs := expired(t, conn, 2*time.Second, claims.Partition(3), claims.Alarms(3), claims.Partition(7), "junk")
			living, err := m.claims.TryAcquire(t.Context(), claims.Partition(1))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = living.Release(context.Background()) }()
			time.Sleep(time.Minute)
			mu.Lock()
			defer mu.Unlock()
			slices.Sort(removed)
			if want := []string{"alarms.3", "junk", "partition.3", "partition.7"}; !slices.Equal(removed, want) || !living.Valid() {
				t.Fatalf("removed %v, living %v, want %v and the living untouched", removed, living.Valid(), want)
			}
			if len(fences) < 4 {
				t.Fatalf("got fences %v, want one for partition 3 and several for 7", fences)
			}
			for _, f := range fences {
				if f.partition != 3 && f.partition != 7 || !f.there {
					t.Errorf("got fence %+v, want it before the claim is removed", f)
				}
				if f.claim <= revs[2] {
					t.Errorf("got fence %+v, want a number above that of the expired claim, %d", f, revs[2])
				}
				next, err := m.claims.TryAcquire(t.Context(), claims.Partition(f.partition))
				if errors.Is(err, claims.ErrHeld) {
					continue // a second fence of the same partition
				}
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = next.Release(context.Background()) }()
				if next.Number() <= f.claim {
					t.Errorf("got number %d for the next owner, want one above the fence %d", next.Number(), f.claim)
				}
			}
		})
	})
	t.Run("P-16/without a way to fence a partition's is left", func(t *testing.T) {
		bubble(t, func(t *testing.T, s *embedded.Server) {
			conn := embeddedtest.Connect(t, s)
			start(t, s, "m", ops.MasterOptions{})
			expired(t, conn, time.Second, claims.Partition(0), claims.Alarms(0))
			time.Sleep(time.Minute)
			if !present(t, conn, claims.Partition(0)) || present(t, conn, claims.Alarms(0)) {
				t.Fatal("want the partition's claim left and the other removed")
			}
		})
	})
	t.Run("P-16/a claim newer than the master's last renewal waits", func(t *testing.T) {
		bubble(t, func(t *testing.T, s *embedded.Server) {
			conn := embeddedtest.Connect(t, s)
			var last atomic.Uint64
			m := start(t, s, "m", ops.MasterOptions{Interval: often, Fence: func(_ context.Context, _ int, claim uint64) error {
				last.Store(claim)
				return nil
			}})
			for range 20 {
				time.Sleep(1700 * time.Millisecond) // out of step with the renewals
				rev := expired(t, conn, time.Second, claims.Partition(0))[0]
				for present(t, conn, claims.Partition(0)) {
					time.Sleep(10 * time.Millisecond)
				}
				if last.Load() <= rev || !m.Leading() {
					t.Fatalf("got a fence of %d for a claim of revision %d", last.Load(), rev)
				}
			}
		})
	})
}

func TestTakenMeanwhile(t *testing.T) {
	t.Run("P-16/a fence never outranks a living owner", func(t *testing.T) {
		bubble(t, func(t *testing.T, s *embedded.Server) {
			owner, err := claims.Open(embeddedtest.Connect(t, s), bucket, claims.Options{Node: "owner"})
			if err != nil {
				t.Fatal(err)
			}
			conn := embeddedtest.Connect(t, s)
			var taken [2]atomic.Pointer[claims.Lease]
			start(t, s, "m", ops.MasterOptions{Fence: func(_ context.Context, p int, claim uint64) error {
				if p != 0 {
					t.Errorf("got a fence of %d for partition %d, which has an owner", claim, p)
				}
				// An owner takes this partition before its claim is removed, and the other before its fence is written.
				for p := range taken {
					l, err := owner.TryAcquire(t.Context(), claims.Partition(p))
					if err != nil {
						return err
					}
					taken[p].Store(l)
				}
				return nil
			}})
			expired(t, conn, time.Second, claims.Partition(0), claims.Partition(1))
			time.Sleep(time.Minute)
			for p := range taken {
				l := taken[p].Load()
				if l == nil || !l.Valid() {
					t.Fatalf("partition %d: got %v, want its new owner undisturbed", p, l)
				}
				_ = l.Release(t.Context())
			}
		})
	})
}

func TestMasterOptions(t *testing.T) {
	c, err := claims.Open(nil, bucket, claims.Options{Node: "n"})
	if err != nil {
		t.Fatal(err)
	}
	for want, o := range map[string]ops.MasterOptions{
		"Claims is nil":   {},
		"Interval is 1ms": {Claims: c, Interval: time.Millisecond},
		"Interval is -1s": {Claims: c, Interval: -time.Second},
	} {
		if _, err := ops.NewMaster(o); !errors.Is(err, ops.ErrInvalidOptions) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error about %s", err, want)
		}
	}
	m, err := ops.NewMaster(ops.MasterOptions{Claims: c})
	if err != nil || m.Leading() {
		t.Fatalf("got %v, %v, want a master that does not lead yet", m, err)
	}
}
