package flows_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/activity/kinds"
	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/broker/checker"
	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/decider/flow"
	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/internal/virtual"
	"github.com/droverhq/drover/ops"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/server/wiring"
)

const ns = subject.Namespace("default")

// world is a NATS server in virtual time and processes around it, each of which can be killed between two of its messages. package
// drovertest has one process for all; here they die one by one.
type world struct {
	t      *testing.T
	server *embedded.Server
	conn   *natsconn.Conn
	client *drover.Client
	site   *site
	store  *files
	serial int
}

// patience is longer than any crash takes to heal, in virtual time.
const patience = 10 * time.Minute

func inWorld(t *testing.T, flows []string, also map[string]string, h http.Handler, f func(t *testing.T, w *world)) {
	t.Helper()
	store := readFiles(t, nil, flows, also)
	defer embedded.RegisterTicker()() // outside of all bubbles
	virtual.Run(t, func(t *testing.T) {
		w := &world{t: t, store: store, site: newSite(t, h)}
		var err error
		if w.server, err = embedded.Start(t.Context(), embedded.Options{DontListen: true}); err != nil {
			t.Fatal(err)
		}
		defer w.server.Shutdown()
		w.conn = w.dial(w.server.Conn())
		defer w.conn.Close()
		if _, err := topology.Ensure(t.Context(), w.conn, topology.Options{Memory: true, Partitions: 1}); err != nil {
			t.Fatal(err)
		}
		if w.client, err = drover.Connect(t.Context(), &drover.Options{Conn: w.conn.NATS(), Timeout: patience}); err != nil {
			t.Fatal(err)
		}
		f(t, w)
		w.check()
	})
}

func (w *world) dial(p cutwire.Provider) *natsconn.Conn {
	w.t.Helper()
	c, err := natsconn.Dial(w.t.Context(), natsconn.Options{InProcess: p})
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// process is a wire and what speaks over it.
type process struct {
	wire *cutwire.Wire
	stop func()
}

// begin starts a process, which ends when it is stopped. A client of its own is for those that need one.
func (w *world) begin(wire *cutwire.Wire, conns []*natsconn.Conn, runs ...func(context.Context) error) *process {
	ctx, cancel := context.WithCancel(context.Background())
	var mine sync.WaitGroup
	for _, run := range runs {
		mine.Go(func() {
			if err := run(ctx); err != nil && ctx.Err() == nil {
				select {
				case <-wire.Killed(): // then anything may be wrong
				default:
					w.t.Errorf("a process ended by itself: %v", err)
				}
			}
		})
	}
	return &process{wire: wire, stop: sync.OnceFunc(func() {
		cancel()
		mine.Wait()
		for _, c := range conns {
			c.Close()
		}
	})}
}

// broker is a process with all roles of a server but NATS.
func (w *world) broker(wire *cutwire.Wire) *process {
	w.serial++
	name := fmt.Sprint("node-", w.serial)
	conn := w.dial(wire)
	held, err := claims.Open(conn, ns.BucketClaims(), claims.Options{Node: name})
	if err != nil {
		w.t.Fatal(err)
	}
	roles := &wiring.Wiring{Conn: conn, Namespace: ns, Partitions: 1, Claims: held, Dial: func(ctx context.Context, name string) (*natsconn.Conn, error) {
		return natsconn.Dial(ctx, natsconn.Options{InProcess: wire, Name: name})
	}}
	b, err := roles.Broker(broker.Options{})
	if err != nil {
		w.t.Fatal(err)
	}
	alarms := roles.Timers()
	master, err := roles.Master(ops.MasterOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return w.begin(wire, []*natsconn.Conn{conn}, b.Run, alarms.Run, master.Run)
}

func (w *world) connect(wire *cutwire.Wire) (*drover.Client, *natsconn.Conn) {
	conn := w.dial(wire)
	client, err := drover.Connect(w.t.Context(), &drover.Options{Conn: conn.NATS()})
	if err != nil {
		w.t.Fatal(err)
	}
	return client, conn
}

func (w *world) decider(wire *cutwire.Wire) *process {
	client, conn := w.connect(wire)
	deciders := client.Deciders(&decider.Options{DrainTimeout: time.Second})
	d := flow.New(w.store, &flow.Options{List: list, Random: func() float64 { return 0.5 }})
	for name := range w.store.flows {
		deciders.Register(name, d)
	}
	return w.begin(wire, []*natsconn.Conn{conn}, deciders.Run)
}

func (w *world) worker(wire *cutwire.Wire) *process {
	client, conn := w.connect(wire)
	a := client.Activities(&activity.Options{Lists: []string{list}, DrainTimeout: time.Second})
	activity.Register(a, kinds.TypeHTTP, kinds.HTTP(&kinds.HTTPOptions{Transport: w.site.transport()}))
	return w.begin(wire, []*natsconn.Conn{conn}, a.Run)
}

// staff starts one process of each kind. That of the victim is killed where the judge says so, and another one takes its place at
// once. It returns when all of them listen; the judge is asked from then on.
func (w *world) staff(victim string, judge func(subject string) cutwire.Verdict) (killed func() bool, dismiss func()) {
	var armed atomic.Bool
	over := make(chan struct{})
	var dead <-chan struct{}
	var watch sync.WaitGroup
	for _, kind := range []struct {
		name string
		make func(*cutwire.Wire) *process
	}{{"broker", w.broker}, {"decider", w.decider}, {"worker", w.worker}} {
		wire := cutwire.New(w.server.Conn())
		if kind.name == victim {
			dead = wire.Killed()
			wire.Judge(func(subject string, _ []byte) cutwire.Verdict {
				if !armed.Load() {
					return cutwire.Pass
				}
				return judge(subject)
			})
		}
		p := kind.make(wire)
		watch.Go(func() {
			select {
			case <-wire.Killed():
				next := kind.make(cutwire.New(w.server.Conn()))
				p.stop()
				<-over
				next.stop()
			case <-over:
				p.stop()
			}
		})
	}
	time.Sleep(3 * time.Second)
	armed.Store(true)
	return func() bool {
			select {
			case <-dead:
				return true
			default:
				return false
			}
		}, func() {
			armed.Store(false)
			close(over)
			watch.Wait()
		}
}

// completes waits for a run as long as crashes take to heal.
func (w *world) completes(run *drover.Run) {
	w.t.Helper()
	ctx, cancel := context.WithTimeoutCause(w.t.Context(), patience, errors.New("it does not end"))
	defer cancel()
	out, err := run.Wait(ctx)
	if err != nil {
		why, _ := run.Why(w.t.Context())
		w.t.Fatalf("%s: %v: %s", run.ID, err, why)
	}
	if out.Status != schemas.StatusCompleted {
		w.t.Errorf("%s: got %s with %s %s, want completed", run.ID, out.Status, out.Reason, out.Details)
	}
}

// check judges all histories by the rules that hold for each.
func (w *world) check() {
	c := checker.NewNamespace()
	var found []checker.Violation
	err := w.conn.Scan(w.t.Context(), ns.StreamHistory(0), natsconn.ReadOptions{FilterSubjects: []string{ns.AllRuns(0)}}, func(s natsconn.Stored) error {
		var r schemas.Record
		if err := schemas.Unmarshal(s.Data, &r); err != nil {
			return fmt.Errorf("record %d: %w", s.Seq, err)
		}
		found = append(found, c.Record(&r, s.Data, schemas.At(s.Time))...)
		return nil
	})
	if err != nil {
		w.t.Error(err)
	}
	for _, v := range append(found, c.End(checker.EndOptions{})...) {
		w.t.Errorf("checker: %v", v)
	}
}
