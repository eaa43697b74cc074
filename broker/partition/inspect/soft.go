package inspect

import (
	"context"
	"time"

	"github.com/droverhq/drover/broker/explain"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/schemas"
)

// purgedFrom is how long a run must have been closed before it can be purged. What is in memory of
// an older one may outlive it.
const purgedFrom = 10 * time.Second

// maybePurged tells whether a closed run in memory must be looked for in the history before it is
// told of.
func (ins *Inspector) maybePurged(r *actor.Run) bool {
	return r.State.Close != nil && ins.ended(r) &&
		ins.Env.Now().Sub(r.State.Close.Time) >= purgedFrom
}

// serveSoft answers describe, result and why for a run that is not in the history.
func (ins *Inspector) serveSoft(verb string, q *schemas.ExecutionRequest, reply func(any)) {
	env.ReadAsync(ins.Env, ins.Loop, func(ctx context.Context) (*runs.Run, error) {
		return ins.Env.Histories.Soft(ctx, ins.Partition, q.WorkflowID, q.Run)
	}, func(l *runs.Run, err error) {
		switch {
		case err != nil:
			reply(&schemas.AckResponse{V: schemas.Version, Error: env.Unavailable(err)})
		case l == nil:
			reply(
				&schemas.AckResponse{V: schemas.Version, Error: env.NotFound(q.WorkflowID, q.Run)})
		case verb == VerbResult:
			a := explain.Result(l.State)
			a.Soft = true
			reply(a)
		default:
			d := explain.Describe(l.State)
			d.Partition, d.Owner, d.Soft = ins.Partition, ins.Env.Options.Node, true
			ins.withAttempts(d, func(v any) {
				if verb == "why" && v == any(d) {
					because := explain.Closed(l.State) +
						explain.Replayed(runs.ReplayOf(d.Attempts, l.State.Run)) +
						"; it is purged from disk, and the master remembers it"
					v = &schemas.WhyResponse{
						V: schemas.Version, Run: l.State.Run, Status: l.State.Status,
						Because: because,
					}
				}
				reply(v)
			})
		}
	})
}
