package activity_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/schemas"

	"github.com/droverhq/drover/internal/virtual"
)

const (
	ns       = subject.Namespace("default")
	ackWait  = 10 * time.Second
	workflow = "order 7"
)

func TestMain(m *testing.M) {
	defer embedded.RegisterTicker()()
	m.Run()
}

// rig is a server with the streams that a worker meets, and a broker played by hand.
type rig struct {
	t       *testing.T
	server  *embedded.Server
	conn    *natsconn.Conn // the broker's
	reports chan report
	log     *logtest.Hook
	logger  *logrus.Logger
}

// report is one message of the inbox.
type report struct {
	schemas.Report
	at      time.Time
	subject string
}

// bubble runs a test in virtual time with lists open.
func bubble(t *testing.T, fn func(t *testing.T, r *rig), lists ...string) {
	t.Helper()
	virtual.Run(t, func(t *testing.T) {
		r := newRig(t)
		for _, list := range append(lists, "PCI") {
			r.openList(list)
		}
		fn(t, r)
	})
}

func newRig(t *testing.T) *rig {
	t.Helper()
	s := embeddedtest.Serve(t, embedded.Options{DontListen: true})
	r := &rig{t: t, server: s, reports: make(chan report, 10_000)}
	r.logger, r.log = logtest.NewNullLogger()
	r.logger.SetLevel(logrus.DebugLevel)
	r.conn = r.dial()
	r.ensure()
	reader, err := r.conn.Read(t.Context(), ns.StreamIn(0), natsconn.ReadOptions{}, func(m natsconn.Stored) {
		got := report{at: m.Time, subject: m.Subject}
		if err := schemas.Unmarshal(m.Data, &got.Report); err != nil {
			t.Errorf("a report that cannot be decoded: %v", err)
		}
		r.reports <- got
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { reader.Close(); <-reader.Done() })
	return r
}

func (r *rig) dial() *natsconn.Conn {
	r.t.Helper()
	return embeddedtest.Connect(r.t, r.server)
}

// ensure makes what is missing of the namespace.
func (r *rig) ensure() {
	r.t.Helper()
	if _, err := topology.Ensure(r.t.Context(), r.conn, topology.Options{Partitions: 1, Memory: true}); err != nil {
		r.t.Fatal(err)
	}
}

// remove deletes a stream.
func (r *rig) remove(stream string) {
	r.t.Helper()
	if err := r.conn.JetStream().DeleteStream(r.t.Context(), stream); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) openList(list string) {
	r.t.Helper()
	if err := topology.EnsureList(r.t.Context(), r.conn, ns, list, topology.ListOptions{AckWait: ackWait}); err != nil {
		r.t.Fatal(err)
	}
}

// cutWorker makes a worker on a wire that a test can cut.
func (r *rig) cutWorker(edit ...func(*activity.Options)) (*activity.Worker, *cutwire.Wire) {
	r.t.Helper()
	wire := cutwire.New(r.server.Conn())
	conn := embeddedtest.Through(r.t, wire)
	return r.workerOn(conn, edit...), wire
}

// worker makes a worker on a connection of its own.
func (r *rig) worker(edit ...func(*activity.Options)) *activity.Worker {
	r.t.Helper()
	return r.workerOn(r.dial(), edit...)
}

func (r *rig) workerOn(conn *natsconn.Conn, edit ...func(*activity.Options)) *activity.Worker {
	o := activity.Options{Lists: []string{"PCI"}, Identity: "worker-1", Logger: r.logger}
	for _, e := range edit {
		e(&o)
	}
	return activity.New(conn, &o)
}

// start runs a worker until stop is called or the test ends; stop returns what Run did.
func (r *rig) start(w *activity.Worker) (stop func() error) {
	ctx, cancel := context.WithCancel(r.t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	stop = sync.OnceValue(func() error { cancel(); return <-done })
	r.t.Cleanup(func() { _ = stop() })
	return stop
}

// task is an ordinary task, as the broker would send it.
func task(edit ...func(*schemas.ActivityTask)) *schemas.ActivityTask {
	t := &schemas.ActivityTask{
		V: schemas.Version, Namespace: string(ns), WorkflowID: workflow, Run: "RUN", WorkflowType: "order", ActivityID: "a1", Type: "work",
		List: "PCI", Attempt: 1, ScheduledEventID: 5, ScheduledAt: schemas.At(time.Now()), StartToClose: schemas.Seconds(600),
		IdempotencyKey: "RUN.5.0", Token: "RUN.5.1", Fence: 3,
		Report: ns.ActOutcome(0, workflow, "PCI"), Beat: ns.Beat(0, workflow, "PCI"),
	}
	for _, e := range edit {
		e(t)
	}
	return t
}

// dispatch puts a task on its list and returns its sequence there.
func (r *rig) dispatch(edit ...func(*schemas.ActivityTask)) uint64 {
	r.t.Helper()
	t := task(edit...)
	body, err := json.Marshal(t)
	if err != nil {
		r.t.Fatal(err)
	}
	return r.put(t.List, body)
}

func (r *rig) put(list string, body []byte) uint64 {
	r.t.Helper()
	seq, err := r.conn.PublishSync(r.t.Context(), ns.Task(list, 0), nil, body)
	if err != nil {
		r.t.Fatal(err)
	}
	return seq
}

// next waits for the next report and checks its kind.
func (r *rig) next(kind schemas.ReportKind) report {
	r.t.Helper()
	select {
	case got := <-r.reports:
		if got.Kind != kind {
			r.t.Fatalf("got report %s (%s), want %s", got.Kind, got.Reason, kind)
		}
		return got
	case <-time.After(10 * time.Minute):
		r.t.Fatalf("got no report in ten minutes, want %s", kind)
		return report{}
	}
}

// quiet checks that nothing is reported for a while.
func (r *rig) quiet(d time.Duration) {
	r.t.Helper()
	select {
	case got := <-r.reports:
		r.t.Fatalf("got report %s (%s), want none", got.Kind, got.Reason)
	case <-time.After(d):
	}
}

// answer gives a worker its permission.
func (r *rig) answer(to string, p schemas.Permission) {
	r.t.Helper()
	body, err := json.Marshal(&p)
	if err == nil {
		err = r.conn.Publish(to, nil, body)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// onBeat answers heartbeats.
func (r *rig) onBeat(fn func(h schemas.Heartbeat) schemas.BeatAnswer) {
	r.t.Helper()
	sub, err := r.conn.Subscribe(ns.AllBeats(0), "", func(m natsconn.Msg) {
		var h schemas.Heartbeat
		if err := schemas.Unmarshal(m.Data, &h); err != nil {
			r.t.Errorf("heartbeat: %v", err)
		}
		a := fn(h)
		body, err := json.Marshal(&a)
		if err == nil {
			err = m.Respond(nil, body)
		}
		if err != nil {
			r.t.Errorf("heartbeat: %v", err)
		}
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = sub.Close() })
}

// left is how many tasks a list holds, settled ones excluded.
func (r *rig) left(list string) uint64 {
	r.t.Helper()
	s, err := r.conn.JetStream().Stream(r.t.Context(), ns.StreamTasks(list))
	if err != nil {
		r.t.Fatal(err)
	}
	return s.CachedInfo().State.Msgs
}

// settled waits until a list is empty.
func (r *rig) settled(list string) {
	r.t.Helper()
	r.remain(list, 0)
}

// remain waits until a list holds n tasks, at most for a second: acknowledgements are not confirmed.
func (r *rig) remain(list string, n uint64) {
	r.t.Helper()
	for range 1000 {
		if r.left(list) == n {
			return
		}
		time.Sleep(time.Millisecond)
	}
	r.t.Fatalf("got %d tasks on list %s, want %d", r.left(list), list, n)
}

func (r *rig) logged(level logrus.Level, text string) (n int) {
	for _, e := range r.log.AllEntries() {
		if e.Level == level && e.Message == text {
			n++
		}
	}
	return n
}

func ignoreIn[T any](fn func(ctx context.Context) (T, error)) func(context.Context, struct{}) (T, error) {
	return func(ctx context.Context, _ struct{}) (T, error) { return fn(ctx) }
}

func textf(format string, args ...any) schemas.Payload {
	return schemas.Text(fmt.Sprintf(format, args...))
}

// The words of the rig for a test that knows JSON alone.

func (r *rig) dispatchPlain(input string, ask bool) {
	r.t.Helper()
	r.dispatch(func(t *schemas.ActivityTask) { t.Input, t.NotIdempotent = schemas.Payload(input), ask })
}

func (r *rig) nextPlain(kind, token, result string) {
	r.t.Helper()
	if got := r.next(schemas.ReportKind(kind)); got.Token != token || string(got.Result) != result {
		r.t.Fatalf("got token %s and result %s, want %s and %s", got.Token, got.Result, token, result)
	}
}

func (r *rig) permitPlain(token string) {
	r.t.Helper()
	q := r.next(schemas.ReportBegin)
	r.answer(q.ReplyTo, schemas.Permission{Nonce: q.Nonce, Go: true, Token: token, Attempt: 2})
}
