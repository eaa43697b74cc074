package probes_test

import (
	"context"
	"io"
	"strconv"
	"strings"
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
	"github.com/droverhq/drover/broker/partition/probes"
	"github.com/droverhq/drover/schemas"
)

func TestMain(m *testing.M) {
	defer embedded.RegisterTicker()()
	m.Run()
}

// rig is an owner of whom worker w, which can be called, has decided for type order. The same
// process works list main.
type rig struct {
	*probes.Probes
	t         *testing.T
	host      *fakeHost
	decisions *decisions.Decisions
	dispatch  *dispatch.Dispatch
	began     time.Time
	calls     []time.Duration // of w, since it began
	asked     []string        // runs whose decision task came to whoever listens
	offered   []string        // runs whose task came to whoever is idle
	stored    []string        // runs whose task came to its list
}

// newRig is for a bubble, in which it ends. Worker w is there if it is alive.
func newRig(t *testing.T, alive bool) *rig {
	t.Helper()
	log := logrus.New()
	log.SetOutput(io.Discard)
	b := env.New(env.Options{Namespace: "default", Partitions: 1, Logger: log})
	b.Conn = embeddedtest.Dial(t)
	b.Reads, b.Background = b.Conn, t.Context()
	b.Measure()
	outbox, err := b.Conn.NewOutbox(natsconn.OutboxOptions{})
	if err != nil {
		t.Fatal(err)
	}
	h := &fakeHost{outbox: outbox}
	o := env.Owner{Env: b, Loop: loop.New(), Log: log}
	k := &rig{t: t, host: h, decisions: decisions.New(decisionHost{of: h}, o), began: time.Now()}
	k.dispatch = dispatch.New(dispatchHost{of: h}, o)
	ah := ahead.New(aheadHost{of: h}, o, k.decisions, k.dispatch)
	k.Probes = probes.New(h, o, k.decisions, k.dispatch, ah)
	k.decisions.Deciders.Workers.Answered("order",
		&schemas.DecisionReply{Sticky: "w", Alive: true, Lists: []string{"main"}})
	k.dispatch.Took("work", schemas.Duration(time.Millisecond))
	if alive {
		k.hears(b.NS.DecideAlive("order", "w"), func(natsconn.Msg) {
			k.calls = append(k.calls, time.Since(k.began))
		})
	}
	k.hears("owner."+probes.Prefix+".*", func(m natsconn.Msg) { // as the partition does
		n, err := strconv.ParseUint(strings.TrimPrefix(m.Subject, "owner."+probes.Prefix+"."), 36, 64)
		if err != nil || !m.NobodyListens() {
			t.Errorf("a call was answered %q on %s", m.Data, m.Subject)
		}
		k.Loop.After(probes.LeaveTaking, func() { k.WorkerGone(n) })
	})
	k.hears(b.NS.Decide("order"), func(m natsconn.Msg) {
		var task schemas.DecisionTask
		decode(t, m, &task)
		k.asked = append(k.asked, task.WorkflowID+" "+task.Token)
	})
	note := func(runs *[]string) func(natsconn.Msg) {
		return func(m natsconn.Msg) {
			var task schemas.ActivityTask
			decode(t, m, &task)
			*runs = append(*runs, task.WorkflowID)
		}
	}
	k.hears(b.NS.Offer("main"), note(&k.offered))
	k.hears(b.NS.Task("main", 0), note(&k.stored))
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
	})
	return k
}

func decode(t *testing.T, m natsconn.Msg, v any) {
	if err := schemas.Unmarshal(m.Data, v); err != nil {
		t.Errorf("%s: %q: %v", m.Subject, m.Data, err)
	}
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

// do runs f on the loop, and lets time pass.
func (k *rig) do(then time.Duration, f func()) {
	k.t.Helper()
	done := make(chan struct{})
	k.Loop.Post(func() { defer close(done); f() })
	<-done
	time.Sleep(then)
	done = make(chan struct{})
	k.Loop.Post(func() { close(done) }) // what has happened may be read
	<-done
}

// asks has a decider asked for a run: w if it is sticky, else whoever listens.
func (k *rig) asks(wid, sticky string) *actor.Ask {
	id := uint64(len(k.decisions.Asks) + 1)
	a := &actor.Ask{ID: id, Token: "of-" + wid, StartedID: 3, At: k.host.Now(), Sticky: sticky != ""}
	r := &actor.Run{WorkflowID: wid, State: open(wid)}
	r.Decider.Sticky = sticky
	r.Decider.Sent(a, false)
	k.decisions.Asks[id] = r
	return a
}

// open is a run with an activity for list main.
func open(wid string) *execution.State {
	a := &execution.Activity{ScheduledID: 5, Attempt: 1, Scheduled: &schemas.ActivityScheduled{
		ActivityType: "work", List: "main",
	}}
	return &execution.State{
		WorkflowID: wid, Run: wid + "1", Status: schemas.StatusOpen,
		Start:      &schemas.WorkflowStarted{WorkflowType: "order"},
		Activities: map[int64]*execution.Activity{5: a},
	}
}

// offers notes an offer of a task: to a worker that decides as well, or to whoever is idle.
func (k *rig) offers(wid, worker string) *actor.Offer {
	r := &actor.Run{WorkflowID: wid, State: open(wid)}
	k.dispatch.SendOffer(r, r.State.Activities[5], nil, func(f *actor.Offer) error {
		if worker != "" {
			f.Ahead = &actor.Ahead{Worker: worker}
		}
		return nil
	})
	return r.Tasks.Offers[0]
}

// fakeHost is a partition that stays, unless a test says otherwise.
type fakeHost struct {
	probes.Host
	outbox          *natsconn.Outbox
	leaving, sealed bool
}

func (h *fakeHost) Now() schemas.Timestamp { return schemas.At(time.Now()) }
func (h *fakeHost) Leaving() bool          { return h.leaving }
func (h *fakeHost) Sealed() bool           { return h.sealed }
func (h *fakeHost) Replies() string        { return "owner." }

// decisionHost, dispatchHost and aheadHost are the partition as those parts see it.
type decisionHost struct {
	decisions.Host
	of *fakeHost
}

func (h decisionHost) Now() schemas.Timestamp { return h.of.Now() }
func (h decisionHost) Replies() string        { return h.of.Replies() }

type dispatchHost struct {
	dispatch.Host
	of *fakeHost
}

func (h dispatchHost) Now() schemas.Timestamp                      { return h.of.Now() }
func (h dispatchHost) CanWrite() bool                              { return true }
func (h dispatchHost) Leaving() bool                               { return false }
func (h dispatchHost) Fence() uint64                               { return 7 }
func (h dispatchHost) Outside() *natsconn.Outbox                   { return h.of.outbox }
func (h dispatchHost) Replies() string                             { return h.of.Replies() }
func (h dispatchHost) Mark(*actor.Run)                             {}
func (h dispatchHost) ScheduleProbes(time.Duration)                {}
func (h dispatchHost) StoredAfter(*actor.Run, *execution.Activity) {}

type aheadHost struct {
	ahead.Host
	of *fakeHost
}

func (h aheadHost) Mark(*actor.Run) {}
