package repeats

import (
	"fmt"
	"slices"
	"testing"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/env/envtest"
	"github.com/droverhq/drover/broker/partition/intake"
	"github.com/droverhq/drover/schemas"
)

func TestMain(m *testing.M) {
	defer embedded.RegisterTicker()()
	m.Run()
}

// fakeHost is a partition that has one run, and notes what happens to it.
type fakeHost struct {
	t   *testing.T
	o   *envtest.Owner
	rp  *Repeats
	run *actor.Run

	did    []string // with whom
	marked bool
	loaded int
}

// newHost returns the host of a new owner with the run r-1 of workflow w, which continues r-0. Its
// state is full of ids of requests: late-0 and so on.
func newHost(t *testing.T, o *envtest.Owner) *fakeHost {
	h := &fakeHost{t: t, o: o}
	h.rp = New(h, o.Owner)
	h.run = &actor.Run{WorkflowID: "w", State: &execution.State{
		WorkflowID: "w", Run: "r-1", Status: schemas.StatusOpen,
		Start: &schemas.WorkflowStarted{Run: "r-1", FirstExecutionRun: "r-0"},
	}}
	for i := range (execution.RequestID{}).Remembered() {
		h.run.State.RequestIDs = append(h.run.State.RequestIDs, fmt.Sprint("late-", i))
	}
	return h
}

func (h *fakeHost) Mark(*actor.Run)                              { h.marked = true }
func (h *fakeHost) Loaded(*actor.Run)                            { h.loaded++ }
func (h *fakeHost) Step(_ *actor.Run, e *actor.Message)          { h.note("step", e) }
func (h *fakeHost) Drop(_ *actor.Run, e *actor.Message)          { h.note("drop", e) }
func (h *fakeHost) WhenSettled(r *actor.Run, f func(*actor.Run)) { f(r) }

func (h *fakeHost) note(what string, e *actor.Message) {
	h.did = append(h.did, what+" "+execution.RequestOf(e.Event).ID)
}

// request is a request that came straight to the owner.
func (h *fakeHost) request(id string) *actor.Message {
	q := &schemas.ExecutionRequest{V: schemas.Version, WorkflowID: "w", RequestID: id}
	return &actor.Message{
		WorkflowID: "w", Event: execution.Pause{Request: q}, At: h.o.Env.Now(),
		Log: intake.None,
	}
}

// noted are events that note requests.
func noted(ids ...string) (events []schemas.Event) {
	for i, id := range ids {
		events = append(events, schemas.Event{
			ID: int64(i + 2), Attributes: &schemas.WorkflowPaused{RequestID: id},
		})
	}
	return events
}

// begun is the first event of a run, which continues another one or none.
func begun(run, continued string) schemas.Event {
	return schemas.Event{ID: 1, Attributes: &schemas.WorkflowStarted{
		WorkflowID: "w", Run: run, WorkflowType: "t", ContinuedExecutionRun: continued,
	}}
}

// record appends a record to the history, and returns where.
func (h *fakeHost) record(run string, events ...schemas.Event) uint64 {
	h.t.Helper()
	body, err := schemas.Marshal(&schemas.Record{
		WorkflowID: "w", Run: run, First: events[0].ID, Events: events,
	})
	if err != nil {
		h.t.Fatal(err)
	}
	seq, err := h.o.Env.Conn.PublishSync(h.t.Context(), h.o.Env.NS.History(0, "w", run),
		natsconn.Header{schemas.StatusHeader: {string(schemas.StatusOpen)}}, body)
	if err != nil {
		h.t.Fatal(err)
	}
	h.run.End.Sequence = seq
	return seq
}

// take lets a request come. It tells whether that was taken care of, and sees to it that the run
// has waited for as long as that took.
func (h *fakeHost) take(id string) (taken bool) {
	h.t.Helper()
	h.did, h.loaded = nil, 0
	h.o.Do(func() {
		taken = h.rp.Take(h.run, h.request(id))
		if taken == h.run.IsSettled() {
			h.t.Errorf("%s: looked for: %v, the run waits: %v", id, taken, !h.run.IsSettled())
		}
	})
	if !h.run.IsSettled() || taken != (h.loaded == 1) {
		h.t.Errorf("%s: the run waits for ever: %v, goes on: %d", id, h.run.IsSettled(), h.loaded)
	}
	return taken
}

// wantDid tells whether this has happened, in this order.
func (h *fakeHost) wantDid(when string, want ...string) {
	h.t.Helper()
	if !slices.Equal(h.did, want) {
		h.t.Errorf("%s: got %q, want %q", when, h.did, want)
	}
}
