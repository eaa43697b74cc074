package locking_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/env/envtest"
	"github.com/droverhq/drover/broker/partition/keyed"
	"github.com/droverhq/drover/broker/partition/locking"
	"github.com/droverhq/drover/broker/partition/watermark"
	"github.com/droverhq/drover/schemas"
)

func TestMain(m *testing.M) {
	defer embedded.RegisterTicker()()
	m.Run()
}

// key is that of the lock of these tests.
var key = schemas.LockKey("", "L")

// fakeHost is a partition whose runs are open and in memory. What comes to them happens at once,
// and is noted.
type fakeHost struct {
	t       *testing.T
	o       *envtest.Owner
	keys    *locking.Keys
	runs    map[string]*actor.Run
	fence   uint64
	expired bool   // the claim
	crashes bool   // before the history has what the runs are told
	waits   bool   // what is in memory is not in the history yet
	waiting func() // for that

	said   []string                    // what has happened to runs
	broken []*schemas.ExecutionRequest // requests to break a lock
	failed error
}

// newHost returns the host of a new owner, which has just fenced the partition, with runs of these
// workflow ids.
func newHost(t *testing.T, o *envtest.Owner, wids ...string) *fakeHost {
	t.Helper()
	h := &fakeHost{t: t, o: o, runs: map[string]*actor.Run{}, fence: fence(t, o)}
	h.keys = locking.New(h, o.Owner)
	for _, wid := range wids {
		h.runs[wid] = &actor.Run{WorkflowID: wid, State: &execution.State{
			WorkflowID: wid, Run: wid + "-1", Status: schemas.StatusOpen,
			Start: &schemas.WorkflowStarted{}, Locks: map[string]*execution.Lock{},
			Requests: map[int64]*execution.StateRequest{},
		}}
	}
	return h
}

// fence fences the partition, and returns where.
func fence(t *testing.T, o *envtest.Owner) uint64 {
	t.Helper()
	seq, err := o.Env.Conn.PublishSync(t.Context(), o.Env.NS.Fence(0), nil, []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	return seq
}

func (h *fakeHost) Now() schemas.Timestamp              { return h.o.Env.Now() }
func (h *fakeHost) CanWrite() bool                      { return !h.expired }
func (h *fakeHost) Leaving() bool                       { return false }
func (h *fakeHost) Fence() uint64                       { return h.fence }
func (h *fakeHost) Fail(format string, args ...any)     { h.failed = fmt.Errorf(format, args...) }
func (h *fakeHost) Get(wid string) *actor.Run           { return h.runs[wid] }
func (h *fakeHost) InMemory(wid string) *actor.Run      { return h.runs[wid] }
func (h *fakeHost) WhenKnown(_ *actor.Run, f, _ func()) { f() }
func (h *fakeHost) WhenKept(_ *actor.Run, f, _ func())  { f() }

func (h *fakeHost) note(wid string, what ...any) {
	h.said = append(h.said, wid+" "+fmt.Sprint(what...))
}

// wantSaid tells whether this has happened to the runs, in whatever order.
func (h *fakeHost) wantSaid(when string, want ...string) {
	h.t.Helper()
	slices.Sort(h.said)
	slices.Sort(want)
	if !slices.Equal(h.said, want) {
		h.t.Errorf("%s: got %q, want %q", when, h.said, want)
	}
}

func (h *fakeHost) done(wid string) *watermark.Completion {
	return watermark.New(func() { h.note(wid, "done") })
}

func (h *fakeHost) AfterPending(_ *actor.Run, f func()) {
	if h.waits {
		h.waiting = f
		return
	}
	f()
}

func (h *fakeHost) Deliver(r *actor.Run, e *actor.Message) {
	events, _ := r.State.Step(h.o.Env.Config(), e.Event, e.At)
	for _, event := range events {
		if event.Type() != schemas.EventDeciderScheduled {
			h.note(r.WorkflowID, event.Type())
		}
	}
	if e.Answer != nil && !h.crashes {
		e.Answer(r, events)
	}
}

func (h *fakeHost) Tell(wid, kind string, v any) {
	q, ok := v.(*schemas.ExecutionRequest)
	if !ok || kind != actor.KindBreakLock || q.WorkflowID != wid {
		h.t.Errorf("%s is told %s %+v", wid, kind, v)
		return
	}
	h.broken = append(h.broken, q)
}

// ask has a run ask for the lock L by an event.
func (h *fakeHost) ask(wid string, id int64) {
	r := h.runs[wid]
	r.State.Locks[key] = &execution.Lock{Lock: "L", Run: r.State.Run, EventID: id, Since: h.Now()}
	t := h.done(wid)
	h.keys.EnterLock(r, r.State.Locks[key], t, false)
	t.Release()
}

// has lets the history of a run say that it asked for the lock L by its event 5, and holds it with
// this fence; 0: it waits.
func (h *fakeHost) has(wid string, fence uint64) {
	h.runs[wid].State.Locks[key] = &execution.Lock{
		Lock: "L", Run: wid + "-1", EventID: 5, Fence: fence,
	}
}

// letGo has a run give the lock L back.
func (h *fakeHost) letGo(wid string, id int64) {
	delete(h.runs[wid].State.Locks, key)
	asked := execution.Asked{Run: wid + "-1", EventID: id}
	h.keys.LeaveLock("L", "", keyed.Place{WorkflowID: wid, Asked: asked}, nil, false)
}

// want has a run want something of a state key; heal says that a former owner may have done it.
func (h *fakeHost) want(wid string, q execution.StateRequest, heal bool) {
	r := h.runs[wid]
	r.State.Requests[q.EventID] = &q
	t := h.done(wid)
	h.keys.AskState(r, &q, t, heal)
	t.Release()
}

// read is the record of the lock L; nil if there is none.
func (h *fakeHost) read() *schemas.LockRecord {
	h.t.Helper()
	value, _, err := h.o.Env.Reads.KVLast(h.t.Context(), h.o.Env.NS.BucketLocks(), key)
	if err != nil || value == nil {
		return nil
	}
	r, err := schemas.ParseLock(key, value)
	if err != nil {
		h.t.Fatal(err)
	}
	return r
}

// store stores a record of the lock L as another broker does, and lets this one see it.
func (h *fakeHost) store(r *schemas.LockRecord) {
	h.t.Helper()
	_, rev, err := h.o.Env.Reads.KVLast(h.t.Context(), h.o.Env.NS.BucketLocks(), key)
	var body []byte
	if err == nil && r != nil {
		body, err = schemas.MarshalJSON(r)
	}
	if err == nil {
		rev, err = h.o.Env.WriteKey(h.t.Context(), h.o.Env.NS.BucketLocks(), key, body, rev)
	}
	if err != nil {
		h.t.Fatal(err)
	}
	h.o.Env.Locks.Take(key, body, rev, body == nil)
}
