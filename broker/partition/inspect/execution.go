package inspect

import (
	"context"

	"github.com/droverhq/drover/broker/explain"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/schemas"
)

// Execution answers describe, result and why.
func (ins *Inspector) Execution(verb string, q *schemas.ExecutionRequest, reply func(any)) {
	if verb == VerbResult && q.Inline > 0 {
		reply = inline(q.Inline, reply)
	}
	if verb == VerbResult && ins.host.NothingKnown(q.WorkflowID) {
		ins.ReadResult(q, reply, func() { ins.serveActor(verb, q, reply) })
		return
	}
	ins.serveActor(verb, q, reply)
}

// serveActor answers by the actor of the workflow id.
func (ins *Inspector) serveActor(verb string, q *schemas.ExecutionRequest, reply func(any)) {
	r := ins.host.Get(q.WorkflowID)
	ins.host.WhenSound(r, reply, func() {
		if q.Run != "" && (!r.Live() || r.State.Run != q.Run) {
			ins.serveOld(verb, q, reply)
			return
		}
		if !r.Live() {
			ins.serveSoft(verb, q, reply)
			return
		}
		if ins.maybePurged(r) {
			ins.serveOld(verb,
				&schemas.ExecutionRequest{WorkflowID: q.WorkflowID, Run: r.State.Run}, reply)
			return
		}
		switch verb {
		case VerbResult:
			id := r.State.Run
			ins.host.Wait(r, q.Wait, func(r *actor.Run) bool {
				return r.State.Run != id ||
					r.State.Closed() && r.Inflight == nil && len(r.Pending) == 0
			}, func(r *actor.Run) {
				if r.State.Run != id {
					ins.serveOld(verb, &schemas.ExecutionRequest{WorkflowID: q.WorkflowID, Run: id},
						reply)
					return
				}
				if r.State.Closed() && (r.Inflight != nil || len(r.Pending) > 0) {
					// decided, but not in the history yet
					reply(&schemas.ResultResponse{
						V: schemas.Version, Run: id, Status: schemas.StatusOpen,
					})
					return
				}
				reply(explain.Result(r.State))
			})
		case "why":
			ins.why(r, func(v any) { ins.host.AfterPending(r, func() { reply(v) }) })
		default:
			d := explain.Describe(r.State)
			if r.Open() {
				d.EventsLeft = ins.Env.Config().EventsLeft(r.State.LastID)
			}
			d.Partition, d.Owner, d.Alarm, d.Decision = ins.Partition, ins.Env.Options.Node, r.Alarm.Due,
				explain.Decision(
					r.State,
					ins.situation(r),
				)
			d.RequestIDsSince = ins.host.RequestIDsSince(r.WorkflowID)
			ins.host.AfterPending(r, func() {
				if d.Started.Replays == nil { // nothing repeats the latest run either
					reply(d)
					return
				}
				ins.withAttempts(d, reply)
			})
		}
	})
}

// serveOld answers for a run that is not the latest of its id: it is closed, so reading it once is
// enough.
func (ins *Inspector) serveOld(verb string, q *schemas.ExecutionRequest, reply func(any)) {
	if verb == VerbResult {
		ins.ReadResult(q, reply, func() { ins.foldOld(verb, q, reply) })
		return
	}
	ins.foldOld(verb, q, reply)
}

// foldOld is serveOld by all that the history says.
func (ins *Inspector) foldOld(verb string, q *schemas.ExecutionRequest, reply func(any)) {
	env.ReadAsync(ins.Env, ins.Loop, func(ctx context.Context) (*runs.Run, error) {
		return ins.host.LoadRun(ctx, q.WorkflowID, q.Run)
	}, func(l *runs.Run, err error) {
		switch {
		case err != nil:
			reply(&schemas.AckResponse{V: schemas.Version, Error: env.Unavailable(err)})
		case l == nil:
			ins.serveSoft(verb, q, reply)
		case verb == VerbResult:
			reply(explain.Result(l.State))
		default:
			d := explain.Describe(l.State)
			d.Partition, d.Owner = ins.Partition, ins.Env.Options.Node
			ins.withAttempts(d, func(v any) {
				if verb == "why" && v == any(d) {
					ins.whyAlwaysOn(l.State, func(clause string) {
						because := explain.Closed(l.State) +
							explain.Replayed(runs.ReplayOf(d.Attempts, l.State.Run)) + clause
						reply(&schemas.WhyResponse{
							V: schemas.Version, Run: l.State.Run, Status: l.State.Status,
							Because: because,
						})
					})
					return
				}
				reply(v)
			})
		}
	})
}
