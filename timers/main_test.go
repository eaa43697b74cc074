package timers_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/timers"

	"github.com/droverhq/drover/internal/virtual"
)

const (
	ns       = subject.Namespace("default")
	claimTTL = 10 * time.Second
	// lookEvery is longer than the default, of which an hour of virtual time has 3600; workers see one another come and go without it.
	lookEvery = 10 * time.Second
)

func TestMain(m *testing.M) {
	defer embedded.RegisterTicker()()
	m.Run()
}

// rig is a namespace of one partition, whose owner is played by hand.
type rig struct {
	t      testing.TB
	server *embedded.Server
	conn   *natsconn.Conn // the owner's
	fires  chan fire
	log    *logtest.Hook
	logger *logrus.Logger

	mu     sync.Mutex
	onFire func(fire) // called before a ring is counted
}

// fire is one message of the inbox.
type fire struct {
	schemas.Ring
	wid string
	at  time.Time // when the server stored it
}

func bubble(t *testing.T, fn func(t *testing.T, r *rig)) {
	t.Helper()
	virtual.Run(t, func(t *testing.T) { fn(t, newRig(t)) })
}

func newRig(t testing.TB) *rig {
	t.Helper()
	s := embeddedtest.Serve(t, embedded.Options{DontListen: true})
	r := &rig{t: t, server: s, fires: make(chan fire, 200_000)}
	r.logger, r.log = logtest.NewNullLogger()
	r.conn = r.dial()
	if _, err := topology.Ensure(t.Context(), r.conn, topology.Options{Partitions: 1, Memory: true}); err != nil {
		t.Fatal(err)
	}
	r.follow()
	return r
}

// follow reads the inbox.
func (r *rig) follow() {
	r.t.Helper()
	reader, err := r.conn.Read(r.t.Context(), ns.StreamIn(0), natsconn.ReadOptions{}, func(m natsconn.Stored) {
		got := fire{at: m.Time}
		_, wid, kind, _, err := subject.ParseIn(m.Subject)
		if err != nil || kind != "alarm" {
			r.t.Errorf("got a message on %s (%v), want a ring", m.Subject, err)
		}
		if err := schemas.Unmarshal(m.Data, &got.Ring); err != nil {
			r.t.Errorf("a ring that cannot be decoded: %v", err)
		}
		got.wid = wid
		r.mu.Lock()
		onFire := r.onFire
		r.mu.Unlock()
		if onFire != nil {
			onFire(got)
		}
		r.fires <- got
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { reader.Close(); <-reader.Done() })
}

func (r *rig) dial() *natsconn.Conn {
	r.t.Helper()
	return embeddedtest.Connect(r.t, r.server)
}

// cutWorker makes a worker on a wire that a test can cut.
func (r *rig) cutWorker(node string, judge func(subject string, body []byte) cutwire.Verdict, options ...func(*timers.Options)) *timers.Worker {
	r.t.Helper()
	wire := cutwire.New(r.server.Conn())
	wire.Judge(judge)
	conn := embeddedtest.Through(r.t, wire)
	return r.workerOn(conn, node, options...)
}

// worker makes a worker on a connection of its own, which is returned too.
func (r *rig) worker(node string) (*timers.Worker, *natsconn.Conn) {
	r.t.Helper()
	conn := r.dial()
	return r.workerOn(conn, node), conn
}

func (r *rig) workerOn(conn *natsconn.Conn, node string, options ...func(*timers.Options)) *timers.Worker {
	r.t.Helper()
	c, err := claims.Open(conn, ns.BucketClaims(), claims.Options{Node: node, TTL: claimTTL, LookEvery: lookEvery})
	if err != nil {
		r.t.Fatal(err)
	}
	o := &timers.Options{Partitions: 1, Claims: c, Logger: r.logger}
	for _, set := range options {
		set(o)
	}
	return timers.New(conn, o)
}

// start runs a worker until stop is called or the test ends.
func (r *rig) start(w *timers.Worker) (stop func() error) {
	ctx, cancel := context.WithCancel(r.t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	stop = sync.OnceValue(func() error { cancel(); return <-done })
	r.t.Cleanup(func() { _ = stop() })
	return stop
}

// arm publishes an alarm as the owner would and returns its sequence.
func (r *rig) arm(wid string, due time.Time) uint64 {
	r.t.Helper()
	body, err := schemas.Marshal(&schemas.Alarm{Run: "RUN", Due: schemas.At(due)})
	if err != nil {
		r.t.Fatal(err)
	}
	return r.put(ns.Alarm(0, wid, "RUN"), body)
}

func (r *rig) put(subj string, body []byte) uint64 {
	r.t.Helper()
	seq, err := r.conn.PublishSync(context.WithoutCancel(r.t.Context()), subj, nil, body)
	if err != nil {
		r.t.Fatal(err)
	}
	return seq
}

// next waits for the next ring.
func (r *rig) next() fire {
	r.t.Helper()
	select {
	case got := <-r.fires:
		return got
	case <-time.After(2 * time.Hour):
		r.t.Fatal("got no ring in two hours")
		return fire{}
	}
}

// expect waits for the next ring and checks whose it is, and that it came exactly when it was due.
func (r *rig) expect(wid string, due time.Time, seq uint64) {
	r.t.Helper()
	got := r.next()
	want := fmt.Sprintf("%s run RUN due %v seq %d at %v", wid, due.UTC(), seq, due.UTC())
	if s := fmt.Sprintf("%s run %s due %v seq %d at %v", got.wid, got.Run, got.Due.Time(), got.Sequence, got.at); s != want {
		r.t.Fatalf("got ring of %s\nwant %s", s, want)
	}
}

func (r *rig) quiet(d time.Duration) {
	r.t.Helper()
	select {
	case got := <-r.fires:
		r.t.Fatalf("got a ring for %s, want none", got.wid)
	case <-time.After(d):
	}
}

// alarms counts what is in the stream.
func (r *rig) alarms() uint64 {
	r.t.Helper()
	s, err := r.conn.JetStream().Stream(r.t.Context(), ns.StreamAlarms(0))
	if err != nil {
		r.t.Fatal(err)
	}
	return s.CachedInfo().State.Msgs
}

// pending waits until the alarm stream holds n alarms, at most for a few seconds.
func (r *rig) pending(n uint64) {
	r.t.Helper()
	var got uint64
	for range 5000 {
		if got = r.alarms(); got == n {
			return
		}
		time.Sleep(time.Millisecond)
	}
	r.t.Fatalf("got %d alarms in the stream, want %d", got, n)
}
