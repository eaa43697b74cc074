package dispatch_test

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/dispatch"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/partition/loop"
	"github.com/droverhq/drover/broker/partition/watermark"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/schemas"
)

func TestMain(m *testing.M) {
	defer embedded.RegisterTicker()()
	m.Run()
}

// rig is a dispatch on a loop of its own, in a namespace without task lists.
type rig struct {
	*dispatch.Dispatch
	t       *testing.T
	host    *fakeHost
	offered map[string]int // how many offers were heard, by list
}

// moment is long for a server in the process, and short for whatever has a deadline.
const moment = 20 * time.Millisecond

// newRig is for a bubble, in which it ends.
func newRig(t *testing.T, o env.Options) *rig {
	t.Helper()
	log := logrus.New()
	log.SetOutput(io.Discard)
	o.Namespace, o.Partitions, o.Logger = "default", 1, log
	b := env.New(o)
	b.Conn = embeddedtest.Dial(t)
	b.Reads, b.Background = b.Conn, t.Context()
	b.Measure()
	_, err := topology.Ensure(t.Context(), b.Conn, topology.Options{Memory: true, Partitions: 1})
	if err != nil {
		t.Fatal(err)
	}
	outbox, err := b.Conn.NewOutbox(natsconn.OutboxOptions{})
	if err != nil {
		t.Fatal(err)
	}
	h := &fakeHost{outbox: outbox, canWrite: true}
	k := &rig{t: t, host: h, offered: make(map[string]int)}
	k.Dispatch = dispatch.New(h, env.Owner{Env: b, Loop: loop.New(), Log: log})
	if _, err := b.Conn.Subscribe(b.NS.Offer("*"), "", func(m natsconn.Msg) {
		task := decoded(t, m.Data)
		k.Loop.Post(func() { k.offered[task.List]++ })
	}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		k.Loop.Run(ctx, func() {})
	}()
	t.Cleanup(func() {
		stop()
		<-done
		outbox.Close()
		b.Work.Wait()
	})
	return k
}

// do runs f on the loop, and lets what it causes happen.
func (k *rig) do(f func()) {
	k.t.Helper()
	k.on(f)
	k.rest(moment)
}

// rest lets time pass. What the loop has changed until then may be read.
func (k *rig) rest(d time.Duration) {
	time.Sleep(d)
	k.on(func() {})
}

func (k *rig) on(f func()) {
	done := make(chan struct{})
	k.Loop.Post(func() { defer close(done); f() })
	<-done
}

// stored are the tasks on a list.
func (k *rig) stored(list string) (all []schemas.ActivityTask) {
	k.t.Helper()
	s, err := k.Env.Conn.JetStream().Stream(k.t.Context(), k.Env.NS.StreamTasks(list))
	if err != nil { // it is made with its first task
		return nil
	}
	state := s.CachedInfo().State
	for seq := state.FirstSeq; seq <= state.LastSeq && state.Msgs > 0; seq++ {
		m, err := s.GetMsg(k.t.Context(), seq)
		if err != nil {
			k.t.Fatal(err)
		}
		all = append(all, decoded(k.t, m.Data))
	}
	return all
}

func decoded(t *testing.T, body []byte) (task schemas.ActivityTask) {
	if err := schemas.Unmarshal(body, &task); err != nil {
		t.Errorf("a task cannot be read: %v", err)
	}
	return task
}

// scheduled is a run with one open activity, which is for a list. Other lists have other types of
// activities.
func scheduled(list string) (*actor.Run, *execution.Activity) {
	a := &execution.Activity{
		ScheduledID: 5, Attempt: 1, ScheduledBase: schemas.At(time.Now()),
		Scheduled: &schemas.ActivityScheduled{
			ActivityID: "a", ActivityType: "of-" + list, List: list,
		},
	}
	return &actor.Run{WorkflowID: "o", State: &execution.State{
		WorkflowID: "o", Run: "r1", Status: schemas.StatusOpen,
		Start:      &schemas.WorkflowStarted{WorkflowType: "order"},
		Activities: map[int64]*execution.Activity{5: a},
	}}, a
}

// held gives f what it may retain, and tells later whether all has been released.
func held(f func(*watermark.Completion)) *bool {
	done := false
	t := watermark.New(func() { done = true })
	f(t)
	t.Release()
	return &done
}

// fakeHost is an owner that notes what is delivered.
type fakeHost struct {
	dispatch.Host
	outbox            *natsconn.Outbox
	canWrite, leaving bool
	delivered         []execution.Message
}

func (h *fakeHost) Now() schemas.Timestamp       { return schemas.At(time.Now()) }
func (h *fakeHost) CanWrite() bool               { return h.canWrite }
func (h *fakeHost) Leaving() bool                { return h.leaving }
func (h *fakeHost) Valid() bool                  { return true }
func (h *fakeHost) Fence() uint64                { return 7 }
func (h *fakeHost) Outside() *natsconn.Outbox    { return h.outbox }
func (h *fakeHost) Replies() string              { return "owner." }
func (h *fakeHost) Get(wid string) *actor.Run    { return &actor.Run{WorkflowID: wid} }
func (h *fakeHost) Mark(*actor.Run)              {}
func (h *fakeHost) ScheduleProbes(time.Duration) {}
func (h *fakeHost) Deliver(_ *actor.Run, e *actor.Message) {
	h.delivered = append(h.delivered, e.Event)
}

func (h *fakeHost) StoredAfter(*actor.Run, *execution.Activity) {}

func (h *fakeHost) OfferAhead(*actor.Run, *execution.Activity, *watermark.Completion) bool {
	return false
}

// respond answers each message with the body.
func respond(t *testing.T, body []byte) func(natsconn.Msg) {
	return func(m natsconn.Msg) {
		if err := m.Respond(nil, body); err != nil {
			t.Error(err)
		}
	}
}
