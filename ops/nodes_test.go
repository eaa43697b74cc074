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

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/nodes"
	"github.com/droverhq/drover/broker/post"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/ops"
	"github.com/droverhq/drover/schemas"
)

// server is a node as "drover server" makes one: a record, claims and a master that share a connection.
type server struct {
	*ops.Master
	t        *testing.T
	name     string
	conn     *post.Conn
	register *nodes.Registry
	member   *nodes.Member
	claims   *claims.Claims
	log      *logtest.Hook
}

var boots atomic.Int64

// boot begins a node under a name that was given, as far as its record.
func boot(t *testing.T, s *embedded.Server, name string, o ops.MasterOptions) *server {
	t.Helper()
	return bootWith(t, s, name, o, nodes.Options{})
}

func bootWith(t *testing.T, s *embedded.Server, name string, o ops.MasterOptions, r nodes.Options) *server {
	t.Helper()
	log, hook := logtest.NewNullLogger()
	log.SetLevel(logrus.DebugLevel)
	n := &server{t: t, name: name, conn: dial(t, s), log: hook}
	var err error
	r.Logger = log
	if n.register, err = nodes.Open(n.conn, r); err != nil {
		t.Fatal(err)
	}
	rec := schemas.NodeRecord{Node: name, Host: name + ".example", Boot: fmt.Sprint("boot-", boots.Add(1)), Namespace: "default"}
	if n.member, err = n.register.Join(t.Context(), rec, nodes.JoinOptions{Given: true}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.member.Close)
	if n.claims, err = claims.Open(n.conn, bucket, claims.Options{Node: name}); err != nil {
		t.Fatal(err)
	}
	o.Claims, o.Nodes, o.Self, o.Home, o.Logger = n.claims, n.register, n.member, "default", log
	if n.Master, err = ops.NewMaster(o); err != nil {
		t.Fatal(err)
	}
	return n
}

// recovers does what comes before the roles.
func (n *server) recovers() (led bool) {
	n.t.Helper()
	led, err := n.Recover(n.t.Context())
	if err != nil {
		n.t.Fatal(err)
	}
	return led
}

// runs runs the master until it is stopped.
func (n *server) runs() (stop func()) {
	ctx, cancel := context.WithCancel(n.t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := n.Run(ctx); err != nil {
			n.t.Errorf("%s: %v", n.name, err)
		}
	}()
	stop = sync.OnceFunc(func() { cancel(); <-ended })
	n.t.Cleanup(stop)
	return stop
}

// crash is the end of a process: nothing of it is heard any more.
func (n *server) crash() {
	n.conn.Close()
	n.member.Close()
}

func (n *server) leave() {
	n.t.Helper()
	if err := n.member.Leave(n.t.Context()); err != nil {
		n.t.Fatal(err)
	}
}

func (n *server) takes(key string) *claims.Lease {
	n.t.Helper()
	l, err := n.claims.TryAcquire(n.t.Context(), key)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { _ = l.Release(context.Background()) })
	return l
}

// stands shows the register.
func stands(t *testing.T, r *nodes.Registry) string {
	t.Helper()
	list, err := r.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, i := range list {
		all = append(all, i.Node+" "+string(i.Status))
	}
	return strings.Join(all, ", ")
}

func wantStands(t *testing.T, r *nodes.Registry, want string) {
	t.Helper()
	if got := stands(t, r); got != want {
		t.Fatalf("the register: got %q, want %q", got, want)
	}
}

func TestS3_01ANodeWritesARecord(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded.Server) {
		n := boot(t, s, "a", ops.MasterOptions{})
		i, err := n.register.Find(t.Context(), "a")
		if err != nil || i.Host != "a.example" || i.Status != schemas.NodeRecovering {
			t.Fatalf("got %+v, %v, want the host name and recovering", i, err)
		}
	})
}

// What a node with --after-crash halt does then is tested where the roles are, in cmd/drover.
func TestS3_02ARecordOfTheSameNameIsAnUnexpectedShutdown(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded.Server) {
		boot(t, s, "a", ops.MasterOptions{}).crash()
		n := boot(t, s, "a", ops.MasterOptions{})
		if n.member.Former() == nil {
			t.Fatal("the record of the earlier self was not noticed")
		}
		wantStands(t, n.register, "a unexpected-shutdown")
		// Others recover meanwhile, and leave it as it is.
		boot(t, s, "b", ops.MasterOptions{}).recovers()
		wantStands(t, n.register, "a unexpected-shutdown, b ready")
	})
}

func TestS3_03AllNodesAreReadyBehindTheRecovery(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded.Server) {
		var during string
		var a *server
		a = boot(t, s, "a", ops.MasterOptions{Revert: func(context.Context) (int, int, error) {
			during = stands(t, a.register)
			return 0, 0, nil
		}})
		b := boot(t, s, "b", ops.MasterOptions{})
		if !a.recovers() {
			t.Fatal("the first node has not recovered")
		}
		if want := "a recovering, b recovering"; during != want {
			t.Fatalf("while it recovers: got %q, want %q", during, want)
		}
		wantStands(t, b.register, "a ready, b ready")
		time.Sleep(time.Minute) // heartbeats leave it so
		wantStands(t, b.register, "a ready, b ready")
		if b.recovers() || b.member.Status() != schemas.NodeReady {
			t.Fatalf("the second node is %s, want it ready without a recovery of its own", b.member.Status())
		}
	})
}

func TestS3_04OnlyTheMasterRecovers(t *testing.T) {
	t.Run("nodes that start in the same moment", func(t *testing.T) {
		bubble(t, func(t *testing.T, s *embedded.Server) {
			var busy, most, runs atomic.Int32
			revert := func(context.Context) (int, int, error) {
				most.Store(max(most.Load(), busy.Add(1)))
				runs.Add(1)
				time.Sleep(2 * time.Second)
				busy.Add(-1)
				return 0, 0, nil
			}
			var all []*server
			for i := range 5 {
				all = append(all, boot(t, s, fmt.Sprint("n", i), ops.MasterOptions{Revert: revert}))
			}
			began := time.Now()
			var led atomic.Int32
			var wg sync.WaitGroup
			for _, n := range all {
				wg.Go(func() {
					if n.recovers() {
						led.Add(1)
					}
					if took := time.Since(began); took < 2*time.Second {
						t.Errorf("%s begins after %v, before the recovery is over", n.name, took)
					}
				})
			}
			wg.Wait()
			if most.Load() != 1 || runs.Load() != 1 || led.Load() != 1 {
				t.Fatalf("got %d recoveries, %d at once, by %d nodes; want one", runs.Load(), most.Load(), led.Load())
			}
			wantStands(t, all[0].register, "n0 ready, n1 ready, n2 ready, n3 ready, n4 ready")
		})
	})
	t.Run("a node that comes later", func(t *testing.T) {
		bubble(t, func(t *testing.T, s *embedded.Server) {
			a := boot(t, s, "a", ops.MasterOptions{})
			a.recovers()
			a.runs()
			time.Sleep(time.Second)
			b := boot(t, s, "b", ops.MasterOptions{Revert: func(context.Context) (int, int, error) {
				t.Error("a second node recovers")
				return 0, 0, nil
			}})
			if b.recovers() {
				t.Fatal("a second node was the master")
			}
			wantStands(t, b.register, "a ready, b ready")
		})
	})
	t.Run("the master dies while it recovers", func(t *testing.T) {
		bubble(t, func(t *testing.T, s *embedded.Server) {
			hang := make(chan struct{})
			a := boot(t, s, "a", ops.MasterOptions{Revert: func(ctx context.Context) (int, int, error) {
				<-hang
				return 0, 0, nil
			}})
			ended := make(chan struct{})
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				defer close(ended)
				_, _ = a.Recover(ctx)
			}()
			time.Sleep(time.Second)
			b := boot(t, s, "b", ops.MasterOptions{})
			began := time.Now()
			a.crash()
			b.recovers()
			if took := time.Since(began); took > ttl+time.Second || b.member.Status() != schemas.NodeReady {
				t.Fatalf("the second node is %s after %v, want ready within the claim timeout", b.member.Status(), took)
			}
			cancel()
			close(hang)
			<-ended
		})
	})
	t.Run("the master has died and its claim has not run out", func(t *testing.T) {
		bubble(t, func(t *testing.T, s *embedded.Server) {
			a := boot(t, s, "a", ops.MasterOptions{})
			a.recovers()
			a.runs()
			time.Sleep(time.Second)
			a.crash()
			for _, name := range []string{"b", "a"} { // another, and the same again
				began := time.Now()
				n := boot(t, s, name, ops.MasterOptions{})
				if led := n.recovers(); led || time.Since(began) > time.Second || n.member.Status() != schemas.NodeReady {
					t.Fatalf("%s: got master %v, %s after %v; want it to begin at once", name, led, n.member.Status(), time.Since(began))
				}
			}
		})
	})
	t.Run("told to stop meanwhile", func(t *testing.T) {
		bubble(t, func(t *testing.T, s *embedded.Server) {
			ctx, cancel := context.WithCancel(t.Context())
			n := boot(t, s, "a", ops.MasterOptions{Revert: func(context.Context) (int, int, error) {
				cancel()
				return 0, 0, nil
			}})
			if led, err := n.Recover(ctx); led || !errors.Is(err, context.Canceled) {
				t.Fatalf("got %v, %v, want %v", led, err, context.Canceled)
			}
			wantStands(t, n.register, "a recovering")
			n.takes(claims.Master) // it was given back
		})
	})
}

// What becomes of one task is tested with the Reverter.
func TestS3_05InterruptedTasksAreRevertedOrFailedBeforeTheRolesBegin(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded.Server) {
		var sweeps []ops.Sweep
		n := boot(t, s, "a", ops.MasterOptions{
			Revert:   func(context.Context) (int, int, error) { return 2, 3, nil },
			Observer: func(s ops.Sweep) { sweeps = append(sweeps, s) },
		})
		n.recovers()
		if len(sweeps) != 1 || sweeps[0].Reverted != 2 || sweeps[0].Failed != 3 || sweeps[0].Err != nil {
			t.Fatalf("got %+v, want one sweep with 2 reverted and 3 failed", sweeps)
		}
	})
	t.Run("a failure keeps no node from beginning", func(t *testing.T) {
		bubble(t, func(t *testing.T, s *embedded.Server) {
			n := boot(t, s, "a", ops.MasterOptions{Revert: func(context.Context) (int, int, error) { return 0, 0, errors.New("boom") }})
			n.recovers()
			if e := n.log.AllEntries(); !slices.ContainsFunc(e, func(e *logrus.Entry) bool {
				return e.Level == logrus.WarnLevel && strings.Contains(fmt.Sprint(e.Data["err"]), "boom")
			}) {
				t.Fatal("the failure is not in the log")
			}
			wantStands(t, n.register, "a ready")
		})
	})
}

func TestS3_06ACleanShutdownRemovesTheRecord(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded.Server) {
		a, b := boot(t, s, "a", ops.MasterOptions{}), boot(t, s, "b", ops.MasterOptions{})
		a.recovers()
		a.leave()
		wantStands(t, b.register, "b ready")
		if a = boot(t, s, "a", ops.MasterOptions{}); a.member.Former() != nil {
			t.Fatalf("got %+v of a node that ended properly", a.member.Former())
		}
	})
}

// What a node is doing stands in no bucket: after its crash there are its claims, which run out, and its record, which says
// that it was ready.
func TestS3_07ACrashLeavesNoBusyMarker(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded.Server) {
		watcher := dial(t, s)
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
	r, err := nodes.Open(dial(t, s), nodes.Options{})
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
		expired(t, dial(t, s), 2*time.Second, claims.Partition(1))
		time.Sleep(3 * time.Second)
		b.takes(claims.Partition(1))
	})
}

// That no broker writes then, and that the server refuses what is late, is tested in package broker
// (TestExpiredClaimWritesNothing).
func TestS3_09NoRightUnderAnExpiredClaim(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded.Server) {
		a := boot(t, s, "a", ops.MasterOptions{})
		l := a.takes(claims.Partition(0))
		taken := time.Now()
		a.conn.Close() // no renewal arrives, and nobody else wants the claim
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
		expired(t, dial(t, s), time.Second, claims.Partition(7), claims.Alarms(7))
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
		watcher, conn := open(t, s), dial(t, s)
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
		// A record of n that is stored, and no heartbeat behind it: its machine hangs.
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
