package handover_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/alarms"
	"github.com/droverhq/drover/broker/partition/deadlines"
	"github.com/droverhq/drover/broker/partition/decisions"
	"github.com/droverhq/drover/broker/partition/dispatch"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/partition/handover"
	"github.com/droverhq/drover/broker/partition/intake"
	"github.com/droverhq/drover/broker/partition/loop"
	"github.com/droverhq/drover/broker/partition/watermark"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/schemas"
)

func TestMain(m *testing.M) {
	defer embedded.RegisterTicker()()
	m.Run()
}

// rig is a new owner of the one partition of a namespace, which has taken nothing over yet.
type rig struct {
	*handover.Handover
	t      *testing.T
	host   *fakeHost
	lease  *claims.Lease
	intake *intake.Intake[*actor.Message]
}

// newRig is for a bubble, in which it ends.
func newRig(t *testing.T) *rig {
	t.Helper()
	log := logrus.New()
	log.SetOutput(io.Discard)
	b := env.New(env.Options{Namespace: "default", Partitions: 1, Node: "heir", Logger: log})
	b.Conn = embeddedtest.Dial(t)
	b.Reads, b.Background = b.Conn, t.Context()
	_, err := topology.Ensure(t.Context(), b.Conn, topology.Options{Memory: true, Partitions: 1})
	if err != nil {
		t.Fatal(err)
	}
	held, err := claims.Open(b.Conn, b.NS.BucketClaims(), claims.Options{Node: "heir"})
	if err != nil {
		t.Fatal(err)
	}
	lease, err := held.TryAcquire(t.Context(), claims.Partition(0))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := lease.Release(ctx); err != nil {
			t.Error(err)
		}
	})
	k := &rig{t: t, lease: lease, intake: &intake.Intake[*actor.Message]{}}
	k.host = &fakeHost{intake: k.intake, asked: make(map[string]func()), aside: make(map[string]bool)}
	o := env.Owner{Env: b, Loop: loop.New(), Log: log}
	lines := deadlines.New[*actor.Run]()
	k.Handover = handover.New(k.host, o, handover.Parts{
		Lease: lease, Intake: k.intake, Deadlines: &lines,
		Decisions: decisions.New(nil, o), Dispatch: dispatch.New(nil, o),
		Alarms: alarms.New(nil, o, &lines),
	})
	return k
}

// runs begins the loop.
func (k *rig) runs() {
	ctx, stop := context.WithCancel(k.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		k.Loop.Run(ctx, func() {})
	}()
	k.t.Cleanup(func() {
		stop()
		<-done
		k.Env.Work.Wait()
	})
}

// do runs f on the loop, and lets what it causes happen.
func (k *rig) do(f func()) {
	k.t.Helper()
	done := make(chan struct{})
	k.Loop.Post(func() { defer close(done); f() })
	<-done
	time.Sleep(5 * time.Second) // longer than what is tried again waits
}

// fence writes the fence of an owner before, and returns its sequence.
func (k *rig) fence() uint64 {
	k.t.Helper()
	seq, err := handover.Fence(k.t.Context(), k.Env.Conn, k.Env.NS, 0, k.lease.Number()-1, "former")
	if err != nil {
		k.t.Fatal(err)
	}
	return seq
}

// record writes a record of a run, and returns its sequence and its witness.
func (k *rig) record(
	wid, run string, status schemas.Status, inbox uint64,
) (seq uint64, witness string) {
	k.t.Helper()
	body, err := schemas.Marshal(&schemas.Record{
		WorkflowID: wid, Run: run, Inbox: schemas.Position{Sequence: inbox},
	})
	if err != nil {
		k.t.Fatal(err)
	}
	subj, h := k.Env.NS.History(0, wid, run), natsconn.Header{schemas.StatusHeader: {string(status)}}
	if seq, err = k.Env.Conn.PublishSync(k.t.Context(), subj, h, body); err != nil {
		k.t.Fatal(err)
	}
	sum := sha256.Sum256(body)
	return seq, hex.EncodeToString(sum[:16])
}

// checkpoint writes the last one of the owner before.
func (k *rig) checkpoint(c schemas.Checkpoint) {
	k.t.Helper()
	if c.Server == "" {
		c.Server = k.Env.Conn.NATS().ConnectedServerId()
	}
	if _, err := k.Write(k.t.Context(), c); err != nil {
		k.t.Fatal(err)
	}
}

// fakeHost is a partition that notes what is repeated. A test says when a run is loaded.
type fakeHost struct {
	handover.Host
	intake *intake.Intake[*actor.Message]
	opened []schemas.Position // witnesses of the logs

	got       []string          // whose runs were asked for, in turn
	asked     map[string]func() // what waits for them
	aside     map[string]bool   // whose history cannot be followed
	runs      map[string]*actor.Run
	old       map[string]*execution.State // by "wid/run"
	failures  atomic.Int32                // how often reads of those fail at first
	repeated  []string
	performed []*watermark.Completion // what was given to effects that are not stored yet
}

func (h *fakeHost) Now() schemas.Timestamp { return schemas.At(time.Now()) }
func (h *fakeHost) Mark(*actor.Run)        {}

func (h *fakeHost) OpenLog(
	_ context.Context, log int, _, _ string, witness schemas.Position,
) error {
	h.opened = append(h.opened, witness)
	h.intake.Logs[log] = &intake.Log{Number: log}
	return nil
}

func (h *fakeHost) Get(wid string) *actor.Run {
	h.got = append(h.got, wid)
	if r := h.runs[wid]; r != nil {
		return r
	}
	return &actor.Run{WorkflowID: wid}
}

func (h *fakeHost) WhenKept(r *actor.Run, f, aside func()) {
	if h.aside[r.WorkflowID] {
		f = aside
	}
	h.asked[r.WorkflowID] = f
}

func (h *fakeHost) LoadRun(_ context.Context, wid, run string) (*runs.Run, error) {
	if h.failures.Add(-1) >= 0 {
		return nil, errors.New("no connection")
	}
	s := h.old[wid+"/"+run]
	if s == nil {
		return nil, nil
	}
	return &runs.Run{State: s}, nil
}

func (h *fakeHost) Perform(r *actor.Run, e actor.Effect, t *watermark.Completion) {
	h.note(r.State, e, t)
}

func (h *fakeHost) Exchange(s *execution.State, e actor.Effect, t *watermark.Completion) {
	h.note(s, e, t)
}

// note notes a repeated effect as "run event", and holds what waits for it.
func (h *fakeHost) note(s *execution.State, e actor.Effect, t *watermark.Completion) {
	h.repeated = append(h.repeated, s.Run+" "+strconv.FormatInt(execution.SetBy(e.Effect), 10))
	t.Retain()
	h.performed = append(h.performed, t)
}
