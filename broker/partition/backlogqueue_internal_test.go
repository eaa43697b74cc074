package partition

import (
	"testing"

	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/deciders"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/partition/locking"
	"github.com/droverhq/drover/broker/partition/loop"
	"github.com/droverhq/drover/schemas"
)

// A partition keeps nothing of a workflow type that nobody listened for once no run waits for a decider of it.
func TestNothingIsKeptOfTypesThatNobodyListenedFor(t *testing.T) {
	for _, tc := range []struct {
		name string
		goes func(*Partition, *actor.Run)
	}{
		{"its run is closed", func(p *Partition, r *actor.Run) {
			r.State.Status = schemas.StatusTerminated
			p.expire(r)
		}},
		{"its run is asked again by the audit", func(p *Partition, r *actor.Run) { p.repairRun(r) }},
		{"a decider begins to listen", func(p *Partition, r *actor.Run) { p.deciders.Backlog.Announced(r.State.Start.WorkflowType) }},
	} {
		p, r := &Partition{b: &env.Env{}, loop: loop.New(), asks: map[uint64]*actor.Run{}, runs: map[string]*actor.Run{}}, openRun()
		p.keys, p.deciders = locking.New(host{p}, p.owner()), deciders.New(deciderHost{p})
		p.runs[r.WorkflowID] = r
		r.Decider.Ask = &actor.Ask{ID: 1}
		p.asks[1] = r
		p.nobody(1)
		if !r.Decider.NoPoller || !p.deciders.Backlog.Has(r.WorkflowID) {
			t.Fatalf("%s: got %+v, want that the run waits for a decider", tc.name, p.deciders)
		}
		tc.goes(p, r)
		if r.Decider.NoPoller || p.deciders.Backlog.Has(r.WorkflowID) {
			t.Errorf("%s: the partition keeps %+v, want nothing", tc.name, p.deciders)
		}
	}
}
