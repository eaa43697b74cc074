package replays_test

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
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/partition/loop"
	"github.com/droverhq/drover/broker/partition/replays"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/internal/runid"
	"github.com/droverhq/drover/schemas"
)

func TestMain(m *testing.M) {
	defer embedded.RegisterTicker()()
	m.Run()
}

// old is the only run of workflow o, which has failed.
func old() *execution.State {
	return &execution.State{
		WorkflowID: "o", Run: "r1", Status: schemas.StatusFailed,
		Start: &schemas.WorkflowStarted{
			WorkflowType: "order", Input: schemas.Payload("old input"),
			Attributes: map[string]string{"stage": "first"}, TagList: []string{"tag"},
		},
		Close: &schemas.Event{ID: 9, Attributes: &schemas.WorkflowFailed{Reason: "broken"}},
		// what it has changed since its start
		Attributes: map[string]string{"stage": "last"},
		Retention:  &schemas.RetentionPolicy{Disk: "1d", Soft: "2d"},
	}
}

// newRun is the one that a replay of o with request id q begins.
var newRun = runid.OfRequest("o", "replay q")

// fakeHost is an owner of workflow o, of which it has one run in memory and in the history.
type fakeHost struct {
	replays.Host
	run     *actor.Run
	loaded  *execution.State // nil: it is gone
	sealed  bool
	started []*actor.Message
	refused *schemas.Error // why starts are
}

func (h *fakeHost) Sealed() bool                                  { return h.sealed }
func (h *fakeHost) Get(string) *actor.Run                         { return h.run }
func (h *fakeHost) WhenSound(_ *actor.Run, _ func(any), f func()) { f() }
func (h *fakeHost) AfterPending(_ *actor.Run, f func())           { f() }

func (h *fakeHost) LoadRun(_ context.Context, wid, run string) (*runs.Run, error) {
	if h.loaded == nil || wid != "o" || run != h.loaded.Run {
		return nil, nil
	}
	return &runs.Run{State: h.loaded}, nil
}

// Deliver lets a start happen, or refuses it.
func (h *fakeHost) Deliver(r *actor.Run, e *actor.Message) {
	h.started = append(h.started, e)
	e.Verdict = actor.Verdict{Run: e.Event.(execution.Start).Request.Run, Started: true}
	if h.refused != nil {
		e.Verdict = actor.Verdict{Refused: h.refused}
	}
	e.Answer(r, nil)
}

// rig is an owner with a server.
type rig struct {
	*replays.Replays
	t     *testing.T
	host  *fakeHost
	asked []schemas.ReplayQuestion
}

// newRig is for a bubble, in which it ends.
func newRig(t *testing.T) *rig {
	t.Helper()
	log := logrus.New()
	log.SetOutput(io.Discard)
	b := env.New(env.Options{Namespace: "default", Partitions: 1, Logger: log})
	b.Conn = embeddedtest.Dial(t)
	b.Reads, b.Background = b.Conn, t.Context()
	b.Measure()
	_, err := topology.Ensure(t.Context(), b.Conn, topology.Options{Memory: true, Partitions: 1})
	if err != nil {
		t.Fatal(err)
	}
	h := &fakeHost{run: &actor.Run{WorkflowID: "o", State: old()}, loaded: old()}
	k := &rig{t: t, host: h}
	k.Replays = replays.New(k.host, env.Owner{Env: b, Loop: loop.New(), Log: log})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		k.Loop.Run(ctx, func() {})
	}()
	t.Cleanup(func() {
		stop()
		<-done
		b.Work.Wait()
	})
	return k
}

// decides has a decider of type order answer, and notes what it is asked.
func (k *rig) decides(reply *schemas.DecisionReply) {
	k.t.Helper()
	_, err := k.Env.Conn.Subscribe(k.Env.NS.Decide("order"), "", func(m natsconn.Msg) {
		var task schemas.DecisionTask
		if err := schemas.Unmarshal(m.Data, &task); err != nil || task.Replay == nil {
			k.t.Errorf("asked %q: %v", m.Data, err)
			return
		}
		k.Loop.Post(func() { k.asked = append(k.asked, *task.Replay) })
		body, err := schemas.MarshalJSON(reply)
		if err != nil {
			k.t.Error(err)
		}
		if err := m.Respond(nil, body); err != nil {
			k.t.Error(err)
		}
	})
	if err != nil {
		k.t.Fatal(err)
	}
}

// ask answers a request; nil if nobody answers it.
func (k *rig) ask(q *schemas.ReplayRequest, force bool) *schemas.ReplayResponse {
	k.t.Helper()
	q.WorkflowID, q.RequestID = "o", "q"
	answers := make(chan *schemas.ReplayResponse, 2)
	k.Loop.Post(func() {
		k.Answer(q, force, func(v any) { answers <- v.(*schemas.ReplayResponse) })
	})
	time.Sleep(time.Minute)
	rested := make(chan struct{})
	k.Loop.Post(func() { close(rested) })
	<-rested
	switch len(answers) {
	case 0:
		return nil
	case 1:
		return <-answers
	}
	k.t.Errorf("%+v is answered twice", q)
	return <-answers
}
