package partition

import (
	"testing"

	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/decisions"
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
			p.decisions.Expire(r)
		}},
		{"its run is asked again by the audit", func(p *Partition, r *actor.Run) { p.repairRun(r) }},
		{"a decider begins to listen", func(p *Partition, r *actor.Run) { p.decisions.Deciders.Backlog.Announced(r.State.Start.WorkflowType) }},
	} {
		p, r := &Partition{Owner: env.Owner{Env: &env.Env{}, Loop: loop.New()}}, openRun()
		p.keep(r)
		p.keys, p.decisions = locking.New(host{p}, p.Owner), decisions.New(host{p}, p.Owner)
		r.Decider.Sent(&actor.Ask{ID: 1}, false)
		p.decisions.Asks[1] = r
		p.decisions.Nobody(1)
		if !r.Decider.Asking.NoPoller() || !p.decisions.Deciders.Backlog.Has(r.WorkflowID) {
			t.Fatalf("%s: got %+v, want that the run waits for a decider", tc.name, p.decisions.Deciders)
		}
		tc.goes(p, r)
		if r.Decider.Asking.NoPoller() || p.decisions.Deciders.Backlog.Has(r.WorkflowID) {
			t.Errorf("%s: the partition keeps %+v, want nothing", tc.name, p.decisions.Deciders)
		}
	}
}
