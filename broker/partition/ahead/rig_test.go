package ahead_test

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
	"github.com/droverhq/drover/broker/partition/ahead"
	"github.com/droverhq/drover/broker/partition/decisions"
	"github.com/droverhq/drover/broker/partition/dispatch"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/partition/loop"
	"github.com/droverhq/drover/schemas"
)

func TestMain(m *testing.M) {
	defer embedded.RegisterTicker()()
	m.Run()
}

// rig is an owner of whom worker w has made the decisions. It works list main as well.
type rig struct {
	*ahead.Ahead
	t         *testing.T
	host      *fakeHost
	decisions *decisions.Decisions
	dispatch  *dispatch.Dispatch
	offered   []schemas.DecisionTask // to w
	others    int                    // offers to whoever is idle
}

// newRig is for a bubble, in which it ends.
func newRig(t *testing.T) *rig {
	t.Helper()
	log := logrus.New()
	log.SetOutput(io.Discard)
	b := env.New(env.Options{
		Namespace: "default", Partitions: 1, Logger: log,
		Execution: execution.Config{}.Defaults(),
	})
	b.Conn = embeddedtest.Dial(t)
	b.Reads, b.Background = b.Conn, t.Context()
	b.Measure()
	k := &rig{t: t, host: &fakeHost{b: b}}
	o := env.Owner{Env: b, Loop: loop.New(), Log: log}
	k.decisions = decisions.New(decisionHost{of: k.host}, o)
	k.dispatch = dispatch.New(dispatchHost{of: k.host}, o)
	k.Ahead = ahead.New(k.host, o, k.decisions, k.dispatch)
	k.decisions.Deciders.Workers.Answered("order",
		&schemas.DecisionReply{Sticky: "w", Lists: []string{"main"}})
	k.dispatch.Took("work", schemas.Duration(time.Millisecond))
	k.hears(b.NS.DecideSticky("order", "w"), func(m natsconn.Msg) {
		var task schemas.DecisionTask
		if err := schemas.Unmarshal(m.Data, &task); err != nil || task.Ahead == nil {
			t.Errorf("offered %q: %v", m.Data, err)
		}
		if list := m.Header.Get(schemas.AheadHeader); list != "main" {
			t.Errorf("offered for list %q", list)
		}
		k.offered = append(k.offered, task)
	})
	k.hears(b.NS.Offer("main"), func(natsconn.Msg) { k.others++ })
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		k.Loop.Run(ctx, func() {})
	}()
	t.Cleanup(func() {
		stop()
		<-done
	})
	return k
}

// hears has f called on the loop for what is published.
func (k *rig) hears(subj string, f func(natsconn.Msg)) {
	k.t.Helper()
	_, err := k.Env.Conn.Subscribe(subj, "", func(m natsconn.Msg) {
		k.Loop.Post(func() { f(m) })
	})
	if err != nil {
		k.t.Fatal(err)
	}
}

// do runs f on the loop, and lets what it causes happen.
func (k *rig) do(f func()) {
	k.t.Helper()
	for _, f := range []func(){f, func() {}} {
		done := make(chan struct{})
		k.Loop.Post(func() { defer close(done); f() })
		<-done
		time.Sleep(20 * time.Millisecond)
	}
}

// scene is a run that w has decided upon, with the activity of that decision. All is in the
// history.
type scene struct {
	*rig
	run      *actor.Run
	activity *execution.Activity
}

func (k *rig) scene() *scene {
	k.t.Helper()
	r := &actor.Run{WorkflowID: "o", State: execution.New("o", "r1")}
	r.Decider.Sticky = "w"
	for _, m := range []execution.Message{
		execution.Start{Request: &schemas.StartRequest{WorkflowID: "o", Run: "r1", Type: "order"}},
		execution.Taken{},
		execution.Reply{Reply: &schemas.DecisionReply{Decisions: []schemas.Decision{
			schemas.Decide(&schemas.ScheduleActivity{
				ActivityID: "a", ActivityType: "work", List: "main", Input: schemas.Payload("1"),
			}),
		}}},
	} {
		events, _ := r.State.Step(k.Env.Config(), m, k.host.Now())
		for _, e := range events {
			if r.Window.From = r.State.Decision.Previous; e.ID > r.Window.From {
				r.Window.Events = append(r.Window.Events, e)
			}
		}
	}
	all := r.State.OpenActivities()
	if len(all) != 1 {
		k.t.Fatalf("%d activities are open, want 1", len(all))
	}
	return &scene{k, r, all[0]}
}

// fakeHost is a partition that lets happen what is to happen, and keeps the events.
type fakeHost struct {
	ahead.Host
	b       *env.Env
	leaving bool
	events  []schemas.Event
}

func (h *fakeHost) Now() schemas.Timestamp { return schemas.At(time.Now()) }
func (h *fakeHost) Leaving() bool          { return h.leaving }
func (h *fakeHost) Fence() uint64          { return 7 }
func (h *fakeHost) Mark(*actor.Run)        {}

func (h *fakeHost) Step(r *actor.Run, e *actor.Message) { h.Happen(r, e) }

func (h *fakeHost) Happen(r *actor.Run, e *actor.Message) {
	events, _ := r.State.Step(h.b.Config(), e.Event, e.At)
	h.events = append(h.events, events...)
}

// decisionHost and dispatchHost are the partition as those parts see it.
type decisionHost struct {
	decisions.Host
	of *fakeHost
}

func (h decisionHost) Now() schemas.Timestamp { return h.of.Now() }

func (h decisionHost) JudgeReply(
	r *actor.Run, reply *schemas.DecisionReply, e *actor.Message, _ int,
) {
	e.Event = execution.Reply{Reply: reply}
	h.of.Happen(r, e)
}

type dispatchHost struct {
	dispatch.Host
	of *fakeHost
}

func (h dispatchHost) Now() schemas.Timestamp       { return h.of.Now() }
func (h dispatchHost) Leaving() bool                { return h.of.leaving }
func (h dispatchHost) Fence() uint64                { return h.of.Fence() }
func (h dispatchHost) Mark(*actor.Run)              {}
func (h dispatchHost) CanWrite() bool               { return true }
func (h dispatchHost) Replies() string              { return "owner." }
func (h dispatchHost) ScheduleProbes(time.Duration) {}
