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
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/nodes"
	"github.com/droverhq/drover/ops"
	"github.com/droverhq/drover/schemas"
)

// server is a node as "drover server" makes one: a record, claims and a master that share a connection.
type server struct {
	*ops.Master
	t        *testing.T
	name     string
	conn     *natsconn.Conn
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
	n := &server{t: t, name: name, conn: embeddedtest.Connect(t, s), log: hook}
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

// warnsOfNothing fails the test if the node has logged a warning or worse.
func (n *server) warnsOfNothing() {
	n.t.Helper()
	for _, e := range n.log.AllEntries() {
		if e.Level <= logrus.WarnLevel {
			n.t.Errorf("got %q (%v), want no warning", e.Message, e.Data)
		}
	}
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

func TestS3_03AllNodesAreReadyAfterTheRecovery(t *testing.T) {
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
	// Whoever stops a server that has hardly begun is not told of failures that are none.
	t.Run("told to stop while the others are made ready", func(t *testing.T) {
		bubble(t, func(t *testing.T, s *embedded.Server) {
			ctx, cancel := context.WithCancel(t.Context())
			n := boot(t, s, "a", ops.MasterOptions{Observer: func(ops.Sweep) { cancel() }})
			if _, err := n.Recover(ctx); !errors.Is(err, context.Canceled) {
				t.Fatalf("got %v, want %v", err, context.Canceled)
			}
			n.warnsOfNothing()
		})
	})
	t.Run("told to stop while nobody says who the master is", func(t *testing.T) {
		bubble(t, func(t *testing.T, s *embedded.Server) {
			n := boot(t, s, "a", ops.MasterOptions{})
			s.Shutdown()
			ctx, cancel := context.WithCancel(t.Context())
			defer time.AfterFunc(time.Millisecond, cancel).Stop()
			if led, err := n.Recover(ctx); led || !errors.Is(err, context.Canceled) {
				t.Fatalf("got %v, %v, want %v", led, err, context.Canceled)
			}
			n.warnsOfNothing()
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
