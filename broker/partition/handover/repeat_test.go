package handover_test

import (
	"slices"
	"testing"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/internal/virtual"
	"github.com/droverhq/drover/schemas"
)

// state is that of a run with activities for which a task is wanted, and requests to other
// workflows, by their events.
func state(wid, run string, status schemas.Status, activities, requests []int64) *execution.State {
	s := &execution.State{
		WorkflowID: wid, Run: run, Status: status,
		Start:      &schemas.WorkflowStarted{WorkflowType: "order"},
		Activities: make(map[int64]*execution.Activity),
		Externals:  make(map[int64]*execution.ExternalAction),
	}
	for _, id := range activities {
		s.Activities[id] = &execution.Activity{
			ScheduledID: id, Attempt: 1, Scheduled: &schemas.ActivityScheduled{List: "main"},
		}
	}
	for _, id := range requests {
		s.Externals[id] = &execution.ExternalAction{
			ScheduledID: id, Cancel: &schemas.CancelExternalScheduled{},
		}
	}
	return s
}

// The runs above the checkpoint are read in the order of their records, and what the history shows
// as open is repeated: of the latest run, but for what has come since it was read, and of earlier
// ones. The effects position waits until the last of it is stored.
func TestRecoveredRunsAreRepeated(t *testing.T) { // P-1
	virtual.Run(t, func(t *testing.T) {
		k := newRig(t)
		former := k.fence()
		k.record("b", "b1", schemas.StatusOpen, 1)
		k.record("a", "a1", schemas.StatusCompleted, 2)
		k.record("c", "c1", schemas.StatusCompleted, 3)
		k.record("a", "a2", schemas.StatusOpen, 4)
		k.record("d", "d1", schemas.StatusOpen, 4)
		k.checkpoint(schemas.Checkpoint{Effects: former})
		a2 := state("a", "a2", schemas.StatusOpen, []int64{3, 7}, []int64{4})
		b1 := state("b", "b1", schemas.StatusOpen, []int64{5}, nil)
		k.host.runs = map[string]*actor.Run{
			"a": {WorkflowID: "a", Loaded: 5, State: a2}, "b": {WorkflowID: "b", Loaded: 5, State: b1},
		}
		k.host.aside["c"] = true // its latest record cannot be followed
		k.host.failures.Store(3)
		k.host.old = map[string]*execution.State{
			"a/a1": state("a", "a1", schemas.StatusCompleted, nil, []int64{2}),
			"a/a2": a2,
			"c/c1": state("c", "c1", schemas.StatusCompleted, nil, []int64{6}),
		}
		if err := k.TakeOver(t.Context()); err != nil {
			t.Fatal(err)
		}
		k.runs()
		k.do(func() {
			if !k.Recovering() || len(k.host.got) > 0 {
				t.Error("effects are repeated before the backlog is read")
			}
			k.BacklogRead()
		})
		for _, wid := range []string{"d", "a", "c", "b"} { // as they are loaded
			k.do(func() {
				if !k.Recovering() {
					t.Errorf("the recovery is over before %s is loaded", wid)
				}
				k.host.asked[wid]()
			})
		}
		k.do(func() {
			if want := []string{"b", "a", "c", "d"}; !slices.Equal(k.host.got, want) {
				t.Errorf("read %q, want %q", k.host.got, want)
			}
			want := []string{"a1 2", "a2 3", "a2 4", "b1 5", "c1 6"}
			if slices.Sort(k.host.repeated); !slices.Equal(k.host.repeated, want) {
				t.Errorf("repeated %q, want %q", k.host.repeated, want)
			}
			if k.Recovering() {
				t.Error("it is still said to recover")
			}
		})
		k.do(func() {
			held := k.host.performed
			for _, r := range k.host.runs { // until an alarm covers them
				held = append(held, r.Uncovered...)
			}
			for _, c := range held {
				if at := k.Positions().Effects; at != former {
					t.Errorf("the effects position is %d before all is stored, want %d",
						at, former)
				}
				c.Release()
			}
			if at := k.Positions().Effects; at != k.Fence {
				t.Errorf("the effects position is %d when all is stored, want %d", at, k.Fence)
			}
		})
	})
}

// After an owner that has left nothing to do the effects position is that of the fence as soon as
// the backlog is read.
func TestNothingIsRepeated(t *testing.T) { // ADR 0016
	virtual.Run(t, func(t *testing.T) {
		k := newRig(t)
		k.left(&schemas.Handed{}, nil)
		if err := k.TakeOver(t.Context()); err != nil {
			t.Fatal(err)
		}
		if at := k.Positions().Effects; at >= k.Fence || !k.Recovering() {
			t.Errorf("the effects position is %d before the backlog is read, the fence %d", at, k.Fence)
		}
		k.BacklogRead()
		if at := k.Positions().Effects; at != k.Fence || k.Recovering() || len(k.host.got) > 0 {
			t.Errorf("the effects position is %d, want %d; read: %q",
				at, k.Fence, k.host.got)
		}
	})
}
