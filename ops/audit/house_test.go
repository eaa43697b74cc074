package audit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/internal/virtual"
	"github.com/droverhq/drover/ops"
	"github.com/droverhq/drover/ops/audit"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/timers"
	"github.com/sirupsen/logrus"
)

const ns = subject.Namespace("default")

func TestMain(m *testing.M) {
	defer embedded.RegisterTicker()()
	m.Run()
}

// house is a real server in virtual time, and roles that a test starts and stops one by one.
type house struct {
	t          *testing.T
	server     *embedded.Server
	conn       *natsconn.Conn
	partitions int
	log        *logrus.Logger
	stops      []func()
}

func virtually(t *testing.T, partitions int, f func(*testing.T, *house)) {
	t.Helper()
	virtual.Run(t, func(t *testing.T) {
		log := logrus.New()
		log.SetOutput(writer{t})
		server, err := embedded.Start(t.Context(), embedded.Options{DontListen: true})
		if err != nil {
			t.Fatal(err)
		}
		h := &house{t: t, server: server, partitions: partitions, log: log}
		h.conn = h.dial()
		if _, err := topology.Ensure(t.Context(), h.conn, topology.Options{Memory: true, Partitions: partitions}); err != nil {
			t.Fatal(err)
		}
		defer func() {
			for _, stop := range slices.Backward(h.stops) {
				stop()
			}
			h.conn.Close()
			server.Shutdown()
		}()
		f(t, h)
	})
}

// writer shows logs of a test that fails.
type writer struct{ t *testing.T }

func (w writer) Write(b []byte) (int, error) {
	w.t.Log(strings.TrimSpace(string(b)))
	return len(b), nil
}

func (h *house) dial() *natsconn.Conn {
	h.t.Helper()
	c, err := natsconn.Dial(context.Background(), natsconn.Options{InProcess: h.server.Conn(), Logger: h.log})
	if err != nil {
		h.t.Fatal(err)
	}
	return c
}

func (h *house) claims(conn *natsconn.Conn, node string) *claims.Claims {
	h.t.Helper()
	c, err := claims.Open(conn, ns.BucketClaims(), claims.Options{Node: node})
	if err != nil {
		h.t.Fatal(err)
	}
	return c
}

type runner interface{ Run(context.Context) error }

// run runs a role until stop is called or the test ends.
func (h *house) run(r runner, after func()) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := r.Run(ctx); err != nil && ctx.Err() == nil {
			h.t.Error(err)
		}
	})
	stop = sync.OnceFunc(func() { cancel(); wg.Wait(); after() })
	h.stops = append(h.stops, stop)
	return stop
}

func (h *house) broker(node string, change ...func(*broker.Options)) (stop func()) {
	h.t.Helper()
	return h.brokerOn(h.server.Conn(), node, change...)
}

// brokerOn starts a broker on a connection that a test may cut. It waits until it owns all, unless the test has changed it.
func (h *house) brokerOn(wire cutwire.Provider, node string, change ...func(*broker.Options)) (stop func()) {
	h.t.Helper()
	conn, err := natsconn.Dial(context.Background(), natsconn.Options{InProcess: wire, Logger: h.log})
	if err != nil {
		h.t.Fatal(err)
	}
	o := broker.Options{Partitions: h.partitions, Claims: h.claims(conn, node), Node: node, Logger: h.log.WithField("node", node)}
	for _, c := range change {
		c(&o)
	}
	b, err := broker.New(func(ctx context.Context, name string) (*natsconn.Conn, error) {
		return natsconn.Dial(ctx, natsconn.Options{InProcess: wire, Name: name, Logger: h.log})
	}, o)
	if err != nil {
		h.t.Fatal(err)
	}
	stop = h.run(b, conn.Close)
	for len(b.Owned()) < h.partitions && len(change) == 0 {
		time.Sleep(10 * time.Millisecond)
	}
	return stop
}

func (h *house) timers(node string) (stop func()) {
	h.t.Helper()
	conn := h.dial()
	return h.run(timers.New(conn, &timers.Options{Partitions: h.partitions, Node: node, Claims: h.claims(conn, node), Logger: h.log}), conn.Close)
}

func (h *house) master() {
	h.t.Helper()
	conn := h.dial()
	m, err := ops.NewMaster(ops.MasterOptions{Claims: h.claims(conn, "m"), Logger: h.log})
	if err != nil {
		h.t.Fatal(err)
	}
	h.run(m, conn.Close)
}

// all starts one of each role.
func (h *house) all() {
	h.t.Helper()
	h.master()
	h.timers("t")
	h.broker("b")
}

func (h *house) auditor(change ...func(*audit.Options)) *audit.Auditor {
	h.t.Helper()
	o := audit.Options{Conn: h.conn, Namespace: ns, Partitions: h.partitions, Claims: h.claims(h.conn, "audit"), Logger: h.log}
	for _, c := range change {
		c(&o)
	}
	a, err := audit.New(o)
	if err != nil {
		h.t.Fatal(err)
	}
	return a
}

func (h *house) pass(a *audit.Auditor) *audit.Report {
	h.t.Helper()
	r, err := a.Pass(h.t.Context(), true)
	if err != nil {
		h.t.Fatal(err)
	}
	return r
}

// wantKinds fails unless exactly these kinds were found; a kind with a "+" was repaired.
func (h *house) wantKinds(r *audit.Report, want ...string) {
	h.t.Helper()
	var got []string
	for _, f := range r.Findings {
		word := string(f.Kind)
		if f.Repaired {
			word += "+"
		}
		got = append(got, word)
		if f.Text == "" || f.Repaired != (f.Done != "") {
			h.t.Errorf("finding %+v: want a sentence, and what was done if something was", f)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if got = slices.Compact(got); !slices.Equal(got, want) {
		h.t.Fatalf("found %v, want %v: %+v", got, want, r.Findings)
	}
}

// api asks until somebody answers, for a minute at most.
func (h *house) api(verb, body string) map[string]any {
	h.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(h.t.Context(), 10*time.Second)
		m, err := h.conn.Request(ctx, ns.API(verb), nil, []byte(body))
		cancel()
		if err == nil {
			var a map[string]any
			if err := json.Unmarshal(m.Data, &a); err != nil {
				h.t.Fatalf("%s answered %s: %v", verb, m.Data, err)
			}
			if a["error"] != nil {
				h.t.Fatalf("%s %s: %v", verb, body, a["error"])
			}
			return a
		}
		if time.Now().After(deadline) {
			h.t.Fatalf("%s %s: %v", verb, body, err)
		}
	}
}

func (h *house) start(id, typ string) {
	h.t.Helper()
	h.api("start", fmt.Sprintf(`{"workflowId":%q,"type":%q,"run":%q}`, id, typ, id+"-run"))
}

func (h *house) signal(id, name string) {
	h.t.Helper()
	h.api("signal", fmt.Sprintf(`{"workflowId":%q,"name":%q}`, id, name))
}

// result waits until the workflow is closed.
func (h *house) result(id string) string {
	h.t.Helper()
	for range 500 {
		s, _ := h.api("result", fmt.Sprintf(`{"workflowId":%q,"wait":8}`, id))["status"].(string)
		if s != "open" && s != "paused" {
			return s
		}
	}
	h.t.Fatalf("workflow %s does not end: %v", id, h.api("why", fmt.Sprintf(`{"workflowId":%q}`, id))["because"])
	return ""
}

func (h *house) completes(id string) {
	h.t.Helper()
	if got := h.result(id); got != "completed" {
		h.t.Fatalf("workflow %s is %s, want completed", id, got)
	}
}

// decider answers decision tasks of a type with a JSON list of decisions, by the types of the events of the window.
func (h *house) decider(typ string, decide func(has func(string) bool) string) {
	h.t.Helper()
	sub, err := h.conn.Subscribe(ns.Decide(typ), "deciders", func(m natsconn.Msg) {
		var task struct {
			Token  string
			Events []struct{ Type string }
		}
		if err := json.Unmarshal(m.Data, &task); err != nil {
			h.t.Error(err)
			return
		}
		answer := decide(func(typ string) bool {
			return slices.ContainsFunc(task.Events, func(e struct{ Type string }) bool { return e.Type == typ })
		})
		if answer == "" {
			return
		}
		if err := m.Respond(nil, []byte(`{"token":"`+task.Token+`","decisions":`+answer+`}`)); err != nil && !errors.Is(err, natsconn.ErrClosed) {
			h.t.Error(err)
		}
	})
	if err != nil {
		h.t.Fatal(err)
	}
	if err := h.conn.Publish(ns.Announce(typ), nil, nil); err != nil {
		h.t.Fatal(err)
	}
	h.stops = append(h.stops, func() { _ = sub.Close() })
}

const complete = `[{"type":"CompleteWorkflow","attributes":{}}]`

func activityOf(id, more string) string {
	return `{"type":"ScheduleActivity","attributes":{"activityId":"` + id + `","activityType":"work","list":"main"` + more + `}}`
}

// upTo decides first at the start, and completes when an event of a type has come.
func upTo(typ, first string) func(func(string) bool) string {
	return func(has func(string) bool) string {
		switch {
		case has("WorkflowStarted"):
			return first
		case has(typ):
			return complete
		}
		return "[]"
	}
}

// work takes the next task of list main and reports success.
func (h *house) work() {
	h.t.Helper()
	t := h.take()
	t.report(h, "success")
	if err := h.conn.DeleteMsg(h.t.Context(), ns.StreamTasks("main"), t.seq); err != nil && !errors.Is(err, natsconn.ErrNotFound) {
		h.t.Fatal(err)
	}
}

// tasked is a task, read without taking it off its list.
type tasked struct {
	schemas.ActivityTask
	seq uint64
}

func (t *tasked) report(h *house, kind string) {
	h.t.Helper()
	h.publish(t.Report, `{"token":"`+t.Token+`","kind":"`+kind+`","identity":"worker 1"}`)
}

func (h *house) take() *tasked {
	h.t.Helper()
	for range 600 {
		m, err := h.conn.NextBySubject(h.t.Context(), ns.StreamTasks("main"), ns.AllTasks("main"), 1)
		if err == nil {
			t := &tasked{seq: m.Seq}
			if err := json.Unmarshal(m.Data, &t.ActivityTask); err != nil {
				h.t.Fatal(err)
			}
			return t
		}
		time.Sleep(100 * time.Millisecond)
	}
	h.t.Fatal("no task came")
	return nil
}

func (h *house) publish(subj, body string) uint64 {
	h.t.Helper()
	seq, err := h.conn.PublishSync(h.t.Context(), subj, natsconn.Addressed(subj), []byte(body))
	if err != nil {
		h.t.Fatal(err)
	}
	return seq
}

// await waits until a history has an event of a type.
func (h *house) await(id, typ string) {
	h.t.Helper()
	for range 1000 {
		events, _ := h.api("history", fmt.Sprintf(`{"workflowId":%q}`, id))["events"].([]any)
		for _, e := range events {
			if e.(map[string]any)["type"] == typ {
				return
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	h.t.Fatalf("%s has no %s", id, typ)
}

// alarm is the one of a run; it waits until there is one.
func (h *house) alarm(id string) *natsconn.Stored {
	h.t.Helper()
	p := subject.Partition(id, h.partitions)
	for range 600 {
		m, err := h.conn.LastBySubject(h.t.Context(), ns.StreamAlarms(p), ns.Alarm(p, id, id+"-run"))
		if err == nil {
			return m
		}
		time.Sleep(100 * time.Millisecond)
	}
	h.t.Fatalf("%s has no alarm", id)
	return nil
}

func (h *house) delete(stream string, seq uint64) {
	h.t.Helper()
	if err := h.conn.DeleteMsg(h.t.Context(), stream, seq); err != nil {
		h.t.Fatal(err)
	}
}
