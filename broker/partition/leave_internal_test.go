package partition

import (
	"reflect"
	"testing"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/partition/loop"
	"github.com/droverhq/drover/schemas"
)

// What an owner has not answered when it leaves goes to the next one, and nothing is taken after that.
func TestRequestsGoOn(t *testing.T) {
	var all requests
	message := natsconn.Msg{Reply: "reply.2", Header: natsconn.Header{VerbHeader: {"describe"}}, Data: []byte(`{"workflowId":"o"}`)}
	if !all.add(message) || all.none() {
		t.Fatal("a request was not taken")
	}
	left := all.take()
	if all.add(message) {
		t.Error("a request was taken although the partition is another's by now")
	}
	if got := left[message.Reply]; len(left) != 1 || !reflect.DeepEqual(got, message) {
		t.Errorf("got %+v, want the message alone", left)
	}
}

// deciding is a run whose decider was asked for its DeciderStarted 3, which is in the history.
func deciding() *actor.Run {
	r := openRun()
	r.State.Decision.Started, r.Committed = 3, 4
	r.Decider.Ask = &actor.Ask{ID: 1, Token: "t", StartedID: 3, At: 9, Confirmed: true}
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
		{"not known to be taken", func(r *actor.Run) { r.Decider.Ask.Confirmed = false }, false, false},
		{"begun by what is not in the history", func(r *actor.Run) { r.Committed = 2 }, false, false},
		{"timed out, and another has begun", func(r *actor.Run) { r.State.Decision.Started = 5 }, false, false},
		{"timed out", func(r *actor.Run) { r.State.Decision.Started = 0 }, false, false},
	} {
		r := deciding()
		tc.change(r)
		former := r.Decider.Ask.Former
		p := &Partition{b: &env.Env{}, replies: "own.", asks: map[uint64]*actor.Run{1: r}}
		h := p.handedDecisions()
		var want []schemas.HandedDecision
		if tc.handed {
			want = []schemas.HandedDecision{{WorkflowID: "o", Run: "r2", Token: "t", StartedID: 3, At: 9, Replies: former}}
		}
		if !reflect.DeepEqual(h.Wanted, want) || (r.Decider.Ask != nil) != tc.waits || len(p.asks) == 1 != tc.waits {
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
		r.Decider.Ask = nil
		tc.change(r, &d)
		p := &Partition{asks: map[uint64]*actor.Run{}, loop: loop.New()}
		p.inherit(&schemas.Handed{Replies: "former.", Wanted: []schemas.HandedDecision{d}})
		p.inheritAsk(r)
		if waits := r.Decider.Ask != nil; waits != tc.waits || waits && (*r.Decider.Ask != actor.Ask{ID: 1, Token: "t", StartedID: 3, At: 9, Confirmed: true, Former: "former."} || p.asks[1] != r) {
			t.Errorf("a decision %s: got %+v, want that it is waited for: %v", tc.name, r.Decider.Ask, tc.waits)
		}
		if p.inheritAsk(r); len(p.inheriting) != 0 || len(p.asks) > 1 {
			t.Errorf("a decision %s is inherited twice", tc.name)
		}
	}
}
