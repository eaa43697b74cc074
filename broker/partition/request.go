package partition

import (
	"context"
	"errors"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/explain"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/schemas"
)

// operate takes an operator's request at the owner of the workflow. The run that is meant is
// resolved before anything is published, so that a repeat cannot hit the next run of the id (P-5).
func (p *Partition) operate(verb string, q *schemas.ExecutionRequest, reply func(any)) {
	q.Origin = nil
	r := p.cache.Get(q.WorkflowID)
	p.whenSound(r, reply, func() {
		switch {
		case !r.Live():
			reply(&schemas.AckResponse{V: schemas.Version, Error: env.NotFound(q.WorkflowID, "")})
		case q.Run != "" && q.Run != r.State.Run:
			p.operateOld(r, verb, q, reply)
		case r.State.Repeated(q):
			done := &schemas.AckResponse{V: schemas.Version, Run: r.State.Run}
			p.afterPending(r, func() { reply(done) }) // the first try may be in memory only
		case r.Closed():
			p.repeats.HadBefore(r, execution.RequestID{ID: q.RequestID}, func(known bool) {
				a := &schemas.AckResponse{V: schemas.Version, Run: r.State.Run}
				if !known {
					a.Error = closedError(r.WorkflowID, r.State)
				}
				p.afterPending(r, func() { reply(a) })
			})
		case verb == actor.KindBreakLock && !hasPlace(r, q):
			refusal := &schemas.AckResponse{
				V: schemas.Version, Run: r.State.Run, Error: notHeld(r, q),
			}
			p.afterPending(r, func() { reply(refusal) })
		default:
			if q.Run == "" || q.Chain {
				q.Run, q.Origin = r.State.Run, &schemas.RequestOrigin{FirstRun: r.State.FirstRun()}
			}
			p.enter(verb, q, reply)
		}
	})
}

// operateOld is a request for a run that is not the latest: it is a repeat, or meant for its chain,
// or too late.
func (p *Partition) operateOld(
	r *actor.Run, verb string, q *schemas.ExecutionRequest, reply func(any),
) {
	env.ReadAsync(p.Env, p.Loop, func(ctx context.Context) (*runs.Run, error) {
		return p.cache.LoadRun(ctx, q.WorkflowID, q.Run)
	}, func(l *runs.Run, err error) {
		switch {
		case err != nil:
			reply(&schemas.AckResponse{V: schemas.Version, Error: env.Unavailable(err)})
		case l == nil:
			reply(
				&schemas.AckResponse{V: schemas.Version, Error: env.NotFound(q.WorkflowID, q.Run)})
		case l.State.Repeated(q):
			reply(&schemas.AckResponse{V: schemas.Version, Run: q.Run})
		case q.Chain && r.Live() && !r.Closed() && r.State.FirstRun() == l.State.FirstRun():
			q.Origin = &schemas.RequestOrigin{FirstRun: l.State.FirstRun()}
			p.enter(verb, q, reply)
		case r.Live() && !r.Closed(): // another start would be refused
			reply(&schemas.AckResponse{V: schemas.Version, Run: q.Run, Error: otherRun(r, q)})
		default:
			reply(&schemas.AckResponse{
				V: schemas.Version, Run: q.Run, Error: closedError(q.WorkflowID, l.State),
			})
		}
	})
}

// enter puts a request into the inbox. Its answer comes when it is in the history.
func (p *Partition) enter(verb string, q *schemas.ExecutionRequest, reply func(any)) {
	q.V = schemas.Version
	body, err := schemas.Marshal(q)
	if err != nil {
		reply(&schemas.AckResponse{
			V: schemas.Version, Error: schemas.Errorf(schemas.CodeInternal, "%v", err),
		})
		return
	}
	to := p.Env.NS.In(p.Partition, q.WorkflowID, verb)
	p.outside.Send(to, natsconn.Addressed(to), body, func(a natsconn.Ack) {
		switch {
		case a.Err == nil:
			// whoever owns the partition answers, once it is in the history
			p.inputs.requests.done(q.ReplyTo)
		case errors.Is(a.Err, natsconn.ErrFull):
			reply(&schemas.AckResponse{V: schemas.Version, Error: p.Env.FullError(a.Err)})
		case a.Err != nil:
			reply(&schemas.AckResponse{
				V: schemas.Version,
				Error: schemas.Errorf(schemas.CodeUnavailable,
					"the request was not acknowledged: %v", a.Err).
					About(q.WorkflowID, q.Run).
					WithHint("repeat it with the same request id; it will not happen twice"),
			})
		}
	})
}

// answerRequest tells an operator that the request is in the history.
func (p *Partition) answerRequest(q *schemas.ExecutionRequest) func(*actor.Run, []schemas.Event) {
	if q.ReplyTo == "" {
		return nil
	}
	return func(r *actor.Run, events []schemas.Event) {
		a := &schemas.AckResponse{V: schemas.Version}
		switch {
		case !r.Live():
			a.Error = env.NotFound(q.WorkflowID, "")
		case len(events) > 0 || r.State.Repeated(q):
			a.Run = r.State.Run
		case !r.State.Means(q) && q.RequestID != "" && q.Run != "":
			p.answerLate(r, q)
			return
		case !r.State.Means(q):
			a.Run, a.Error = r.State.Run, otherRun(r, q)
		case r.State.Closed():
			a.Run, a.Error = r.State.Run, closedError(r.WorkflowID, r.State)
		case q.Lock != "" && !hasPlace(r, q):
			a.Run, a.Error = r.State.Run, notHeld(r, q)
		default:
			a.Run = r.State.Run
		}
		p.Env.Respond(q.ReplyTo, q.Content, a)
	}
}

// answerLate answers a request that was read after the end of the run it means, and after the start
// of the next one: an earlier try of it, stored before them, may be what ended the run (P-5).
func (p *Partition) answerLate(r *actor.Run, q *schemas.ExecutionRequest) {
	refusal := &schemas.AckResponse{V: schemas.Version, Run: r.State.Run, Error: otherRun(r, q)}
	env.ReadAsync(p.Env, p.Loop, func(ctx context.Context) (*runs.Run, error) {
		return p.cache.LoadRun(ctx, q.WorkflowID, q.Run)
	}, func(l *runs.Run, err error) {
		switch {
		case err != nil:
			p.Env.Respond(q.ReplyTo, q.Content,
				&schemas.AckResponse{V: schemas.Version, Error: env.Unavailable(err)})
		case l != nil && l.State.Repeated(q):
			p.Env.Respond(q.ReplyTo, q.Content,
				&schemas.AckResponse{V: schemas.Version, Run: q.Run})
		default:
			p.Env.Respond(q.ReplyTo, q.Content, refusal)
		}
	})
}

// otherRun refuses a request for a run that closed before the request came.
func otherRun(r *actor.Run, q *schemas.ExecutionRequest) *schemas.Error {
	return schemas.Errorf(schemas.CodeClosed, "run %s of workflow %q is closed; the latest is "+
		"run %s (%s)", q.Run, r.WorkflowID, r.State.Run, r.State.Status).InField("run").
		About(r.WorkflowID, q.Run).WithHint("name that run, or none")
}

// hasPlace tells whether the run has a place of its own in the lock that a request names.
func hasPlace(r *actor.Run, q *schemas.ExecutionRequest) bool {
	l := r.State.Locks[schemas.LockKey(q.Scope, q.Lock)]
	return l != nil && !l.Waits() && !l.Shared()
}

func notHeld(r *actor.Run, q *schemas.ExecutionRequest) *schemas.Error {
	return schemas.Errorf(schemas.CodeConflict, "workflow %q does not hold %s",
		r.WorkflowID, explain.LockName(q.Lock, q.Scope)).InField("lock").
		About(r.WorkflowID, r.State.Run).WithHint("see who does: drover lock list")
}
