package decisions

import (
	"iter"
	"reflect"
	"testing"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/partition/loop"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/schemas"
)

// deciding is a run whose decider was asked for its DeciderStarted 3, which is in the history.
func deciding() *actor.Run {
	r := &actor.Run{
		WorkflowID: "o", End: runs.End{Sequence: 40},
		State: &execution.State{Run: "r2", Start: &schemas.WorkflowStarted{WorkflowType: "order"}, Status: schemas.StatusOpen},
	}
	r.State.Decision.Started, r.Committed = 3, 4
	r.Decider.Sent(&actor.Ask{ID: 1, Token: "t", StartedID: 3, At: 9}, true)
	return r
}

// The next owner is told of the decisions whose DeciderStarted it will find in the history. This one goes on waiting for what comes to it.
func TestWhichDecisionsAreHanded(t *testing.T) { // ADR 0016
	for _, tc := range []struct {
		name          string
		change        func(*actor.Run)
		handed, waits bool
	}{
		{"being made", func(*actor.Run) {}, true, true},
		{"answered to the owner before", func(r *actor.Run) { r.Decider.Ask.Former = "former." }, true, false},
		{"not known to be taken", func(r *actor.Run) { r.Decider.Sent(r.Decider.Ask, false) }, false, false},
		{"begun by what is not in the history", func(r *actor.Run) { r.Committed = 2 }, false, false},
		{"timed out, and another has begun", func(r *actor.Run) { r.State.Decision.Started = 5 }, false, false},
		{"timed out", func(r *actor.Run) { r.State.Decision.Started = 0 }, false, false},
	} {
		r := deciding()
		tc.change(r)
		former := r.Decider.Ask.Former
		ds := New(fakeHost{}, env.Owner{Env: &env.Env{}})
		ds.Asks[1] = r
		h := ds.Handed()
		var want []schemas.HandedDecision
		if tc.handed {
			want = []schemas.HandedDecision{{WorkflowID: "o", Run: "r2", Token: "t", StartedID: 3, At: 9, Replies: former}}
		}
		if !reflect.DeepEqual(h.Wanted, want) || (r.Decider.Ask != nil) != tc.waits || len(ds.Asks) == 1 != tc.waits {
			t.Errorf("a decision %s: handed %+v, waits for it: %v; want %+v, %v", tc.name, h.Wanted, r.Decider.Ask != nil, want, tc.waits)
		}
	}
}

// What the former owner has told is old perhaps: its heir may have died before it left a checkpoint. A run waits for an answer only if its
// history has that very decision open.
func TestWhichDecisionsAreInherited(t *testing.T) { // ADR 0016
	for _, tc := range []struct {
		name   string
		change func(*actor.Run, *schemas.HandedDecision)
		waits  bool
	}{
		{"the open one", func(*actor.Run, *schemas.HandedDecision) {}, true},
		{"one that is wanted, and nobody makes", func(_ *actor.Run, d *schemas.HandedDecision) { d.Token = "" }, false},
		{"of another run", func(r *actor.Run, _ *schemas.HandedDecision) { r.State.Run = "r3" }, false},
		{"one that has been made", func(r *actor.Run, _ *schemas.HandedDecision) { r.State.Decision.Started = 0 }, false},
		{"one that another has followed", func(r *actor.Run, _ *schemas.HandedDecision) { r.State.Decision.Started = 7 }, false},
		{"of a run that has closed", func(r *actor.Run, _ *schemas.HandedDecision) { r.State.Status = schemas.StatusTerminated }, false},
	} {
		r, d := deciding(), schemas.HandedDecision{WorkflowID: "o", Run: "r2", Token: "t", StartedID: 3, At: 9}
		r.Decider.Over()
		tc.change(r, &d)
		ds := New(fakeHost{}, env.Owner{Loop: loop.New()})
		ds.Inherit(&schemas.Handed{Replies: "former.", Wanted: []schemas.HandedDecision{d}})
		ds.MeetInherited(r)
		if waits := r.Decider.Ask != nil; waits != tc.waits || waits && (*r.Decider.Ask != actor.Ask{ID: 1, Token: "t", StartedID: 3, At: 9, Former: "former."} || !r.Decider.Asking.Confirmed() || ds.Asks[1] != r) {
			t.Errorf("a decision %s: got %+v, want that it is waited for: %v", tc.name, r.Decider.Ask, tc.waits)
		}
		if ds.MeetInherited(r); len(ds.Inheriting) != 0 || len(ds.Asks) > 1 {
			t.Errorf("a decision %s is inherited twice", tc.name)
		}
	}
}

// fakeHost is a partition that has no run in memory and does not leave.
type fakeHost struct{ Host }

func (fakeHost) Runs() iter.Seq[*actor.Run] { return func(func(*actor.Run) bool) {} }
func (fakeHost) InMemory(string) *actor.Run { return nil }
func (fakeHost) Replies() string            { return "own." }
