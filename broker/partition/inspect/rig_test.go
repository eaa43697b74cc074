package inspect_test

import (
	"context"
	"errors"
	"time"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/partition/inspect"
	"github.com/droverhq/drover/broker/partition/loop"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/schemas"
)

// fakeHost is an owner with some runs in memory and some in histories alone.
type fakeHost struct {
	inspect.Host
	runs     map[string]*actor.Run       // in memory
	stored   map[string]*execution.State // by "wid/run"; nil: it cannot be read
	keysBusy bool
	backlog  string // a workflow that waits for a decider

	pending []func() // what waits for the history
	waits   []waiting
}

// waiting is a request that is held back.
type waiting struct {
	ready  func(*actor.Run) bool
	answer func(*actor.Run)
}

const wantedAlarm = schemas.Timestamp(77)

func (h *fakeHost) Get(wid string) *actor.Run                     { return h.runs[wid] }
func (h *fakeHost) InMemory(wid string) *actor.Run                { return h.runs[wid] }
func (h *fakeHost) NothingKnown(string) bool                      { return false }
func (h *fakeHost) WhenSound(_ *actor.Run, _ func(any), f func()) { f() }
func (h *fakeHost) Recovering() bool                              { return true }
func (h *fakeHost) InboxRead() uint64                             { return 12 }
func (h *fakeHost) RequestIDsSince(string) schemas.Timestamp      { return 3 }
func (h *fakeHost) InBacklog(wid string) bool                     { return wid == h.backlog }
func (h *fakeHost) WantedAlarm(*actor.Run) schemas.Timestamp      { return wantedAlarm }
func (h *fakeHost) KeysBusy(*actor.Run) bool                      { return h.keysBusy }
func (h *fakeHost) DeadLetter(*execution.State) string            { return "; a report is dead" }

func (h *fakeHost) AfterPending(_ *actor.Run, f func()) { h.pending = append(h.pending, f) }

func (h *fakeHost) Wait(
	_ *actor.Run, _ schemas.Duration, ready func(*actor.Run) bool, answer func(*actor.Run),
) {
	h.waits = append(h.waits, waiting{ready, answer})
}

func (h *fakeHost) LoadRun(_ context.Context, wid, run string) (*runs.Run, error) {
	s := h.stored[wid+"/"+run]
	if s == nil {
		return nil, errors.New("a record is damaged")
	}
	return &runs.Run{State: s}, nil
}

// inspector is that of such an owner.
func inspector(ctx context.Context, h *fakeHost) *inspect.Inspector {
	b := env.New(env.Options{Namespace: "default", Partitions: 1, Node: "a"})
	b.Background = ctx
	return inspect.New(h, env.Owner{Env: b, Partition: 4, Loop: loop.New()})
}

// state is that of an open run which waits for its decider.
func state(wid string) *execution.State {
	return &execution.State{
		WorkflowID: wid, Run: wid + "1", Status: schemas.StatusOpen, LastID: 2,
		Start:    &schemas.WorkflowStarted{WorkflowType: "order"},
		Decision: execution.Decision{Scheduled: 2, WaitsFrom: 2, ScheduledBase: 50},
	}
}

// quiet is a run in memory of which everything is in the history.
func quiet(wid string) *actor.Run { return &actor.Run{WorkflowID: wid, State: state(wid)} }

// closed completes a run.
func closed(s *execution.State) {
	s.Status, s.Decision = schemas.StatusCompleted, execution.Decision{}
	s.Close = &schemas.Event{
		ID: 3, Time: schemas.At(time.Now()),
		Attributes: &schemas.WorkflowSuccess{Result: schemas.Payload("done")},
	}
}
