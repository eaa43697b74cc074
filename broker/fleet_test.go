package broker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/broker/checker"
	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/internal/virtual"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/timers"
)

const ns = subject.Namespace("default")

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // a server and its clients for each test are garbage soon
	defer embedded.RegisterTicker()()
	m.Run()
}

// fleet is a real server in virtual time, and the processes around it. Deciders and workers in it are played with plain
// NATS and JSON.
type fleet struct {
	t      *testing.T
	server atomic.Pointer[embedded.Server]
	nc     *nats.Conn
	js     jetstream.JetStream
	post   *natsconn.Conn
	log    *logrus.Logger
	nodes  []*node

	partitions int
	door       nats.InProcessConnProvider // in place of server, where that has users
}

// virtually runs f with a fleet in a bubble and checks every history at its end. partitions is 1 where the test places
// its messages by hand.
func virtually(t *testing.T, partitions int, f func(*testing.T, *fleet)) {
	t.Helper()
	virtuallyOn(t, embedded.Options{DontListen: true}, partitions, f)
}

// virtuallyOn is virtually with a server of other options.
func virtuallyOn(t *testing.T, o embedded.Options, partitions int, f func(*testing.T, *fleet)) {
	t.Helper()
	virtual.Run(t, func(t *testing.T) { withFleet(t, o, partitions, f) })
}

func withFleet(t *testing.T, o embedded.Options, partitions int, f func(*testing.T, *fleet)) {
	t.Helper()
	fl := newFleet(t)
	fl.serve(o)
	defer func() { fl.server.Load().Shutdown() }()
	fl.play(fl.server.Load().Memory(), partitions, f)
}

func newFleet(t *testing.T) *fleet {
	log := logrus.New()
	log.SetOutput(writer{t})
	log.SetLevel(logrus.InfoLevel)
	return &fleet{t: t, log: log}
}

// play runs fn with a namespace on the server, and checks it.
func (f *fleet) play(memory bool, partitions int, fn func(*testing.T, *fleet)) {
	f.t.Helper()
	f.post = f.dial(f)
	f.nc = f.post.NATS()
	f.js = f.post.JetStream()
	info, err := topology.Ensure(f.t.Context(), f.post, topology.Options{Memory: memory, Partitions: partitions})
	if err != nil {
		f.t.Fatal(err)
	}
	f.partitions = info.Partitions
	defer func() {
		for _, n := range f.nodes {
			n.stop()
		}
		f.post.Close()
	}()
	fn(f.t, f)
	f.check()
}

// serve starts the server, with the store of the one before if o names it. Whoever has lost that one finds it.
func (f *fleet) serve(o embedded.Options) {
	f.t.Helper()
	server, err := embedded.Start(f.t.Context(), o)
	if err != nil {
		f.t.Fatal(err)
	}
	f.server.Store(server)
}

// InProcessConn connects to the server that runs now.
func (f *fleet) InProcessConn() (net.Conn, error) {
	if f.door != nil {
		return f.door.InProcessConn()
	}
	return f.server.Load().Conn().InProcessConn()
}

// writer shows logs of a test that fails.
type writer struct{ t *testing.T }

func (w writer) Write(b []byte) (int, error) {
	w.t.Log(strings.TrimSpace(string(b)))
	return len(b), nil
}

func (f *fleet) dial(p nats.InProcessConnProvider) *natsconn.Conn {
	f.t.Helper()
	c, err := natsconn.Dial(context.Background(), natsconn.Options{InProcess: p, Logger: f.log})
	if err != nil {
		f.t.Fatal(err)
	}
	return c
}

// node is a process with a broker and a timer worker.
type node struct {
	f      *fleet
	name   string
	wire   *cutwire.Wire
	broker *broker.Broker
	cancel context.CancelFunc
	done   sync.WaitGroup
	conns  []*natsconn.Conn
	ended  bool
	failed chan struct{} // closed when the broker could not begin
}

// node starts a process. Its publishes can be judged from the start.
func (f *fleet) node(name string, judge func(subject string, body []byte) cutwire.Verdict, change ...func(*broker.Options)) *node {
	f.t.Helper()
	n := &node{f: f, name: name, wire: cutwire.New(f), failed: make(chan struct{})}
	if judge != nil {
		n.wire.Judge(judge)
	}
	conn, keep := f.dial(n.wire), f.dial(n.wire)
	n.conns = []*natsconn.Conn{conn, keep}
	log := f.log.WithField("node", name)
	held, err := claims.Open(keep, ns.BucketClaims(), claims.Options{Node: name, Logger: log})
	if err != nil {
		f.t.Fatal(err)
	}
	o := broker.Options{Partitions: f.partitions, Claims: held, Node: name, Logger: log}
	for _, c := range change {
		c(&o)
	}
	if n.broker, err = broker.New(func(ctx context.Context, name string) (*natsconn.Conn, error) {
		return natsconn.Dial(ctx, natsconn.Options{InProcess: n.wire, Name: name, Logger: log})
	}, o); err != nil {
		f.t.Fatal(err)
	}
	to := &timers.Options{Partitions: o.Partitions, Node: name, Claims: held, Logger: log}
	alarms := timers.New(conn, to)
	ctx, cancel := context.WithCancel(context.Background())
	n.cancel = cancel
	n.done.Go(func() {
		if err := n.broker.Run(ctx); err != nil {
			log.WithError(err).Error("broker")
			close(n.failed)
		}
	})
	n.done.Go(func() {
		if err := alarms.Run(ctx); err != nil {
			log.WithError(err).Error("timers")
		}
	})
	f.nodes = append(f.nodes, n)
	return n
}

// stop ends the process in good order.
func (n *node) stop() {
	if n.ended {
		return
	}
	n.ended = true
	n.cancel()
	n.done.Wait()
	for _, c := range n.conns {
		c.Close()
	}
}

// kill ends it as kill -9 does: nothing it has not said yet is ever heard.
func (n *node) kill() {
	n.wire.Kill()
	n.stop()
}

// waitKilled waits until a verdict has killed the process.
func (n *node) waitKilled() {
	n.f.t.Helper()
	select {
	case <-n.wire.Killed():
	case <-time.After(time.Minute):
		n.f.t.Fatal("the crash never came: nothing matched")
	}
	n.stop()
}

// relieve starts node b when a verdict has killed n, which is alone until then, so that its way is the one that is cut. What it
// returns ends that.
func (f *fleet) relieve(n *node) (end func()) {
	over := make(chan struct{})
	var next sync.WaitGroup
	next.Go(func() {
		select {
		case <-n.wire.Killed():
			f.node("b", nil)
		case <-over:
		}
	})
	return func() { close(over); next.Wait() }
}

// killed tells whether a verdict has killed the process.
func (n *node) killed() bool {
	select {
	case <-n.wire.Killed():
		return true
	default:
		return false
	}
}

// nth gives the verdict on the n-th publish to a subject with the given prefix, and passes everything else.
func nth(n int, prefix string, v cutwire.Verdict) func(string, []byte) cutwire.Verdict {
	return func(subj string, _ []byte) cutwire.Verdict {
		if strings.HasPrefix(subj, prefix) {
			if n--; n == 0 {
				return v
			}
		}
		return cutwire.Pass
	}
}

// every judges all messages with a prefix alike.
func every(prefix string, v cutwire.Verdict) func(string, []byte) cutwire.Verdict {
	return func(subj string, _ []byte) cutwire.Verdict {
		if strings.HasPrefix(subj, prefix) {
			return v
		}
		return cutwire.Pass
	}
}

// api asks in JSON until the API answers.
func (f *fleet) api(verb, body string) map[string]any {
	f.t.Helper()
	var a map[string]any
	f.apiInto(&a, verb, body)
	return a
}

// apiInto is api with an answer of a type.
func (f *fleet) apiInto(answer any, verb, body string) {
	f.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(f.t.Context(), 30*time.Second) // an owner that has died never answers
		m, err := f.nc.RequestWithContext(ctx, ns.API(verb), []byte(body))
		cancel()
		if err == nil {
			if err := json.Unmarshal(m.Data, answer); err != nil {
				f.t.Fatalf("%s answered %s: %v", verb, m.Data, err)
			}
			return
		}
		if time.Now().After(deadline) {
			f.t.Fatalf("%s %s: %v", verb, body, err)
		}
	}
}

// starts starts n runs of type order: w0, w1 and so on.
func (f *fleet) starts(n int) {
	f.t.Helper()
	for i := range n {
		f.start(fmt.Sprintf(`{"workflowId":"w%d","type":"order"}`, i))
	}
}

func (f *fleet) start(body string) map[string]any { f.t.Helper(); return f.api("start", body) }

// result waits until the workflow is closed and returns its status. Nobody asks for it before; what the API says after it is the same.
func (f *fleet) result(id string) string {
	f.t.Helper()
	var status schemas.Status
	closed := func() bool {
		status = f.status(id)
		return status.Closed() && status != schemas.StatusContinuedAsNew
	}
	if !f.until(200*time.Hour, closed) {
		f.t.Fatalf("workflow %s does not end: %v; %v", id, f.recordedTypes(id), f.api("why", `{"workflowId":"`+id+`"}`)["because"])
	}
	if got := f.api("result", `{"workflowId":"`+id+`","wait":20}`)["status"]; got != string(status) { // the owner may not know yet that it is stored
		f.t.Fatalf("workflow %s: the API says %s, and its last record %s", id, got, status)
	}
	return string(status)
}

// completes waits until the workflow is closed, as it should be.
func (f *fleet) completes(id string) {
	f.t.Helper()
	if got := f.result(id); got != "completed" {
		f.t.Fatalf("%s: status %s, want completed", id, got)
	}
}

func (f *fleet) flush() {
	f.t.Helper()
	// With a context: the form without one shares timers between bubbles.
	ctx, cancel := context.WithTimeout(f.t.Context(), time.Minute)
	defer cancel()
	if err := f.nc.FlushWithContext(ctx); err != nil {
		f.t.Fatal(err)
	}
}

// tell publishes what nobody stores, and waits until the server has it.
func (f *fleet) tell(subj, body string) {
	f.t.Helper()
	if err := f.nc.Publish(subj, []byte(body)); err != nil {
		f.t.Fatalf("publish %s: %v", subj, err)
	}
	f.flush()
}

// publish stores a message and returns its sequence.
func (f *fleet) publish(subj, body string) uint64 {
	f.t.Helper()
	ack, err := f.js.PublishMsg(f.t.Context(), &nats.Msg{Subject: subj, Header: natsconn.Addressed(subj), Data: []byte(body)})
	if err != nil {
		f.t.Fatalf("publish %s: %v", subj, err)
	}
	return ack.Sequence
}

// types returns the event types of a workflow's latest run, as the API shows them.
func (f *fleet) types(id string) []string {
	f.t.Helper()
	var types []string
	for _, e := range f.events(id) {
		types = append(types, string(e.Type()))
	}
	return types
}

func (f *fleet) events(id string) []schemas.Event {
	f.t.Helper()
	var events []schemas.Event
	for deadline := time.Now().Add(10 * time.Second); ; {
		after := 0
		if n := len(events); n > 0 {
			after = int(events[n-1].ID)
		}
		var page schemas.HistoryResponse
		f.apiInto(&page, "history", fmt.Sprintf(`{"workflowId":"%s","after":%d}`, id, after))
		if page.Error != nil && page.Error.Code == schemas.CodeNotFound && time.Now().Before(deadline) { // its start may be in the inbox
			time.Sleep(10 * time.Millisecond)
			continue
		}
		if page.Error != nil {
			f.t.Fatal(page.Error)
		}
		events = append(events, page.Events...)
		if !page.More {
			return events
		}
	}
}

// await waits until a workflow's history has an event of a type. Nobody asks for it.
func (f *fleet) await(id string, typ schemas.EventType) { f.t.Helper(); f.awaitTimes(id, typ, 1) }

// awaitTimes is await for so many events of a type.
func (f *fleet) awaitTimes(id string, typ schemas.EventType, n int) {
	f.t.Helper()
	if !f.until(20*time.Hour, func() bool { return f.happened(id, typ) >= n }) {
		f.t.Fatalf("%s never has %d %s: %v", id, n, typ, f.recordedTypes(id))
	}
}

func (f *fleet) wantTypes(id string, want ...string) {
	f.t.Helper()
	if got := strings.Join(f.types(id), " "); got != strings.Join(want, " ") {
		f.t.Fatalf("history of %s:\n%s\nwant:\n%s", id, got, strings.Join(want, " "))
	}
}

// dead returns the reasons of all dead letters.
func (f *fleet) dead() []string {
	f.t.Helper()
	var reasons []string
	for _, d := range f.letters() {
		reasons = append(reasons, d.Reason)
	}
	return reasons
}

// letters are the dead ones, of all that was sent before.
func (f *fleet) letters() (all []schemas.DeadLetter) {
	f.t.Helper()
	synctest.Wait()
	err := f.post.Scan(f.t.Context(), ns.StreamDead(), natsconn.ReadOptions{}, func(s natsconn.Stored) error {
		var d schemas.DeadLetter
		if err := schemas.Unmarshal(s.Data, &d); err != nil {
			return err
		}
		all = append(all, d)
		return nil
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return all
}

// check runs the checker over every record of the namespace, and over what its workflows say of each other.
func (f *fleet) check() {
	f.t.Helper()
	c := checker.NewNamespace()
	report := func(found []checker.Violation) {
		for _, v := range found {
			f.t.Errorf("checker: %v", v)
		}
	}
	for p := range f.partitions {
		err := f.post.Scan(context.Background(), ns.StreamHistory(p), natsconn.ReadOptions{FilterSubjects: []string{ns.AllRuns(p)}}, func(s natsconn.Stored) error {
			if s.Header.Get("Drover-Status") == "" {
				return nil // a stray, which only its own test publishes
			}
			var r schemas.Record
			if err := schemas.Unmarshal(s.Data, &r); err != nil {
				return fmt.Errorf("record %d: %w", s.Seq, err)
			}
			report(c.Record(&r, s.Data, schemas.At(s.Time)))
			return nil
		})
		if err != nil {
			f.t.Error(err)
		}
	}
	report(c.End(checker.EndOptions{}))
}

// result0 returns the status now.
func (f *fleet) result0(id string) string {
	f.t.Helper()
	s, _ := f.api("result", `{"workflowId":"`+id+`"}`)["status"].(string)
	return s
}

// haveCompleted fails unless the n runs of starts are completed now.
func (f *fleet) haveCompleted(n int) {
	f.t.Helper()
	for i := range n {
		if got := f.result0(fmt.Sprintf("w%d", i)); got != "completed" {
			f.t.Fatalf("w%d: status %s, want completed", i, got)
		}
	}
}

// truncate makes a stream again with only its first messages up to a sequence, as a machine does that loses what was not
// synced: the numbers after it are handed out again.
func (f *fleet) truncate(stream string, last uint64) {
	f.t.Helper()
	ctx := f.t.Context()
	s, err := f.js.Stream(ctx, stream)
	if err != nil {
		f.t.Fatal(err)
	}
	config := s.CachedInfo().Config
	if err := f.js.DeleteStream(ctx, stream); err != nil {
		f.t.Fatal(err)
	}
	config.FirstSeq = last + 1
	if _, err := f.js.CreateStream(ctx, config); err != nil {
		f.t.Fatal(err)
	}
}

// tryRequest asks once; nil if nobody answers.
func (f *fleet) tryRequest(subj, body string) []byte {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), 5*time.Second)
	defer cancel()
	m, err := f.nc.RequestWithContext(ctx, subj, []byte(body))
	if err != nil {
		return nil
	}
	return m.Data
}

func (f *fleet) request(subj, body string) []byte {
	f.t.Helper()
	raw := f.tryRequest(subj, body)
	if raw == nil {
		f.t.Fatalf("nobody answers %s", subj)
	}
	return raw
}

// seen collects what a judge sees, for the test to read.
type seen struct {
	mu   sync.Mutex
	what []string
}

func (s *seen) add(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.what = append(s.what, what)
}

// take returns all, and begins anew.
func (s *seen) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	what := s.what
	s.what = nil
	return what
}
