package ops_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/nodes"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/ops"
	"github.com/droverhq/drover/schemas"
)

// What a node is doing stands in no bucket: after its crash there are its claims, which run out, and its record, which says
// that it was ready.
func TestS3_07ACrashLeavesNoBusyMarker(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded.Server) {
		watcher := embeddedtest.Connect(t, s)
		a := boot(t, s, "a", ops.MasterOptions{})
		a.recovers()
		a.takes(claims.Partition(0))
		a.takes(claims.Alarms(0))
		stop := a.runs()
		time.Sleep(time.Minute)
		a.crash()
		wantStands(t, open(t, s), "a ready")
		time.Sleep(ttl + time.Second)
		if keys, err := watcher.KVKeys(t.Context(), bucket); err != nil || len(keys) != 0 {
			t.Fatalf("got %v, %v: want no claim of a dead node to outlive its timeout", keys, err)
		}
		stop()
		// The same node takes up the same work at once.
		a = boot(t, s, "a", ops.MasterOptions{})
		a.recovers()
		a.takes(claims.Partition(0))
	})
}

func open(t *testing.T, s *embedded.Server) *nodes.Registry {
	t.Helper()
	r, err := nodes.Open(embeddedtest.Connect(t, s), nodes.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestS3_08AnExpiredClaimIsIgnored(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded.Server) {
		a, b := boot(t, s, "a", ops.MasterOptions{}), boot(t, s, "b", ops.MasterOptions{})
		taken := time.Now()
		a.takes(claims.Partition(0))
		held, err := b.claims.List(t.Context())
		if err != nil || len(held) != 1 || held[0].Expired || held[0].Deadline.Sub(taken).Round(100*time.Millisecond) != ttl {
			t.Fatalf("got %+v, %v, want a claim with a timeout of %v", held, err, ttl)
		}
		if _, err := b.claims.TryAcquire(t.Context(), claims.Partition(0)); !errors.Is(err, claims.ErrHeld) {
			t.Fatalf("got %v of a claim that is held, want %v", err, claims.ErrHeld)
		}
		// It is ignored even if the server keeps it for ever.
		expired(t, embeddedtest.Connect(t, s), 2*time.Second, claims.Partition(1))
		time.Sleep(3 * time.Second)
		b.takes(claims.Partition(1))
	})
}

// That no broker writes then, and that the server refuses what is late, is tested in package broker
// (TestExpiredClaimWritesNothing).
func TestS3_09NoRightUnderAnExpiredClaim(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded.Server) {
		wire := cutwire.New(s.Conn())
		conn := embeddedtest.Through(t, wire)
		a, err := claims.Open(conn, bucket, claims.Options{Node: "a"})
		if err != nil {
			t.Fatal(err)
		}
		l, err := a.TryAcquire(t.Context(), claims.Partition(0))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Release(context.Background()) })
		taken := time.Now()
		wire.Judge(func(string, []byte) cutwire.Verdict { return cutwire.Swallow }) // no renewal arrives, and nobody else wants the claim
		for l.Valid() {
			time.Sleep(10 * time.Millisecond)
		}
		if lasted := time.Since(taken); lasted >= ttl || lasted < ttl-time.Second {
			t.Fatalf("the right lasted %v, want a little less than the timeout of %v", lasted, ttl)
		}
		if !errors.Is(l.Err(), claims.ErrExpired) {
			t.Fatalf("got %v, want %v", l.Err(), claims.ErrExpired)
		}
		time.Sleep(time.Hour)
		if l.Valid() {
			t.Fatal("the right came back by itself")
		}
	})
}

func TestS3_10ClaimedWorkIsLeftAlone(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded.Server) {
		a := boot(t, s, "a", ops.MasterOptions{})
		var mine []*claims.Lease
		for p := range 4 {
			mine = append(mine, a.takes(claims.Partition(p)), a.takes(claims.Alarms(p)))
		}
		var mu sync.Mutex
		fenced := map[int]bool{}
		removed := map[string]bool{}
		m := boot(t, s, "m", ops.MasterOptions{
			Fence: func(_ context.Context, p int, _ uint64) error {
				mu.Lock()
				defer mu.Unlock()
				fenced[p] = true
				return nil
			},
			Observer: func(s ops.Sweep) {
				mu.Lock()
				defer mu.Unlock()
				for _, i := range s.Removed {
					removed[i.Key] = true
				}
			},
		})
		m.recovers()
		m.runs()
		expired(t, embeddedtest.Connect(t, s), time.Second, claims.Partition(7), claims.Alarms(7))
		time.Sleep(5 * time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if len(fenced) != 1 || !fenced[7] || len(removed) != 2 || !removed[claims.Partition(7)] || !removed[claims.Alarms(7)] {
			t.Fatalf("fenced %v, removed %v, want those of partition 7 alone", fenced, removed)
		}
		for _, l := range mine {
			if !l.Valid() {
				t.Fatalf("%s: %v", l.Key(), l.Err())
			}
		}
	})
}

func TestS3_12TheHealthTaskHasAnOrder(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded.Server) {
		const most = 12 * time.Second // for the node that dies first
		watcher, conn := open(t, s), embeddedtest.Connect(t, s)
		dead := boot(t, s, "dead", ops.MasterOptions{})
		dead.recovers()
		dead.crash()
		var mu sync.Mutex
		var order []string
		note := func(what string) {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, what)
		}
		var last atomic.Pointer[ops.Sweep]
		m := boot(t, s, "m", ops.MasterOptions{
			Interval: 10 * time.Second,
			Fence: func(context.Context, int, uint64) error {
				note("claims, while the register says " + stands(t, watcher))
				return errors.New("no disk") // a step that fails keeps none of the others from being done
			},
			Revert: func(context.Context) (int, int, error) {
				note(fmt.Sprintf("tasks, while the alarms' claim is there: %v", present(t, conn, claims.Alarms(7))))
				return 1, 2, nil
			},
			Observer: func(s ops.Sweep) { last.Store(&s) },
		})
		m.recovers()
		time.Sleep(most)
		expired(t, conn, time.Second, claims.Partition(7), claims.Alarms(7))
		time.Sleep(3 * time.Second)
		mu.Lock()
		order = nil
		mu.Unlock()
		m.runs()
		time.Sleep(5 * time.Second)
		mu.Lock()
		defer mu.Unlock()
		got := last.Load()
		if got == nil || got.Number == 0 || !slices.Equal(got.Nodes.NotResponding, []string{"dead"}) || got.Reverted != 1 || got.Failed != 2 ||
			len(got.Removed) != 1 || got.Removed[0].Key != claims.Alarms(7) || got.Err == nil {
			t.Fatalf("got %+v, want a node marked, a claim removed, tasks reverted, and the fence's error", got)
		}
		if want := []string{
			"claims, while the register says dead not-responding, m ready", "tasks, while the alarms' claim is there: false",
		}; !slices.Equal(order, want) {
			t.Fatalf("got %q, want %q", order, want)
		}
	})
	// That the default is a day is tested with the register.
	t.Run("old records are removed", func(t *testing.T) {
		bubble(t, func(t *testing.T, s *embedded.Server) {
			dead := boot(t, s, "dead", ops.MasterOptions{})
			dead.recovers()
			dead.crash()
			m := bootWith(t, s, "m", ops.MasterOptions{}, nodes.Options{Forget: 10 * time.Minute})
			m.recovers()
			m.runs()
			time.Sleep(10 * time.Minute)
			wantStands(t, m.register, "dead not-responding, m ready")
			time.Sleep(time.Minute)
			wantStands(t, m.register, "m ready")
		})
	})
}

func TestS3_13ASlowNodeKeepsItsClaims(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded.Server) {
		m := boot(t, s, "m", ops.MasterOptions{})
		m.recovers()
		m.runs()
		slow := boot(t, s, "slow", ops.MasterOptions{})
		slow.recovers()
		l := slow.takes(claims.Partition(0))
		slow.member.Close() // no sign of life, and yet it works
		time.Sleep(5 * time.Minute)
		wantStands(t, m.register, "m ready, slow not-responding")
		if !l.Valid() {
			t.Fatalf("the claim of a slow node is lost: %v", l.Err())
		}
		if _, err := m.claims.TryAcquire(t.Context(), claims.Partition(0)); !errors.Is(err, claims.ErrHeld) {
			t.Fatalf("got %v, want its claim respected", err)
		}
		slow.conn.Close() // now it cannot renew either
		time.Sleep(ttl)
		if l.Valid() {
			t.Fatal("want the right gone with the claim")
		}
		time.Sleep(2 * time.Second)
		m.takes(claims.Partition(0))
	})
}

func TestS3_14OneNodeStopsAndRecoversWhileTheOthersRun(t *testing.T) {
	for _, end := range []string{"planned", "crash"} {
		t.Run(end, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *embedded.Server) {
				a := boot(t, s, "a", ops.MasterOptions{})
				a.recovers()
				a.runs()
				l := a.takes(claims.Partition(0))
				time.Sleep(time.Second)
				for range 5 {
					b := boot(t, s, "b", ops.MasterOptions{})
					if b.recovers() {
						t.Fatal("b recovers although a is the master")
					}
					mine := b.takes(claims.Partition(1))
					wantStands(t, a.register, "a ready, b ready")
					time.Sleep(17 * time.Second)
					if end == "crash" {
						b.crash()
						time.Sleep(30 * time.Second)
						wantStands(t, a.register, "a ready, b not-responding")
					} else {
						if err := mine.Release(t.Context()); err != nil {
							t.Fatal(err)
						}
						b.leave()
						wantStands(t, a.register, "a ready")
					}
					if !a.Leading() || !l.Valid() || a.member.Status() != schemas.NodeReady {
						t.Fatalf("a was disturbed: master %v, claim %v, %s", a.Leading(), l.Err(), a.member.Status())
					}
				}
			})
		})
	}
}

func TestS3_15AHeartbeatRestoresTheStatus(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded.Server) {
		m := boot(t, s, "m", ops.MasterOptions{})
		m.recovers()
		m.runs()
		// A record of n that is stored, and no heartbeat after it: its machine hangs.
		n := boot(t, s, "n", ops.MasterOptions{})
		n.recovers()
		n.member.Close()
		time.Sleep(time.Minute)
		wantStands(t, m.register, "m ready, n not-responding")
		if err := n.member.Set(t.Context(), n.member.Status()); err != nil { // what a heartbeat does
			t.Fatal(err)
		}
		wantStands(t, m.register, "m ready, n ready")
		if i, err := m.register.Find(t.Context(), "n"); err != nil || i.Heard != 0 || i.Boot != n.member.Boot() {
			t.Fatalf("got %+v, %v, want its own record", i, err)
		}
	})
}

// Tasks of the master run while it is the master, and nowhere else.
func TestTasksOfTheMaster(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded.Server) {
		var at [2]atomic.Int32 // how many run on a node
		var calls atomic.Int32
		task := func(i int) []func(context.Context) error {
			return []func(context.Context) error{
				func(ctx context.Context) error {
					at[i].Add(1)
					defer at[i].Add(-1)
					<-ctx.Done()
					return nil
				},
				func(context.Context) error { calls.Add(1); return errors.New("again") },
			}
		}
		a := boot(t, s, "a", ops.MasterOptions{Tasks: task(0), Interval: time.Second})
		a.recovers()
		stop := a.runs()
		time.Sleep(time.Second)
		b := boot(t, s, "b", ops.MasterOptions{Tasks: task(1), Interval: time.Second})
		b.recovers()
		b.runs()
		time.Sleep(time.Minute)
		if at[0].Load() != 1 || at[1].Load() != 0 || calls.Load() < 55 {
			t.Fatalf("got %d and %d tasks, %d calls of the one that fails", at[0].Load(), at[1].Load(), calls.Load())
		}
		stop()
		time.Sleep(time.Second)
		if at[0].Load() != 0 || at[1].Load() != 1 {
			t.Fatalf("after the hand-over: got %d and %d tasks", at[0].Load(), at[1].Load())
		}
	})
}

// The bucket may be out of reach, or full of what is no record: a node begins all the same.
func TestRecoverWithoutTheRegister(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded.Server) {
		n := boot(t, s, "a", ops.MasterOptions{})
		if err := n.conn.JetStream().DeleteStream(t.Context(), "KV_"+subject.BucketNodes); err != nil {
			t.Fatal(err)
		}
		n.recovers()
		if n.member.Status() != schemas.NodeReady {
			t.Fatalf("got %s, want ready", n.member.Status())
		}
	})
}
