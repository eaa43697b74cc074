package partition

import (
	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/schemas"
)

// start takes a start that came from the API.
func (p *Partition) start(q *schemas.StartRequest, body []byte) {
	q.Origin, q.Replays = nil, nil
	var r *actor.Run
	if len(body) <= p.Env.SmallBody() {
		// else the id is waited for, and others may ask for it meanwhile
		r = p.fresh(q)
	}
	if r == nil {
		r = p.cache.Get(q.WorkflowID)
	}
	if r.Load.IsUnreadable() {
		p.tellStarter(q, &schemas.StartResponse{
			V: schemas.Version, WorkflowID: q.WorkflowID, Error: damagedError(r),
		})
		return
	}
	e := &actor.Message{
		WorkflowID: q.WorkflowID,
		Event:      execution.Start{Request: q},
		At:         p.now(),
		Log:        noLog,
		Subject:    p.Env.NS.API(actor.KindStart),
		Body:       body,
	}
	e.Answer = p.answerStart(e, q)
	p.deliver(r, e)
}

// fresh makes the actor of a workflow id for its first run, if that is certain enough and the start
// is about to begin one; else nil.
func (p *Partition) fresh(q *schemas.StartRequest) *actor.Run {
	if !p.repeats.Unused(q.WorkflowID) || p.cache.InMemory(q.WorkflowID) != nil ||
		!p.singleReplica() {
		return nil
	}
	if p.writer.Full() || p.Env.RefuseType(q) != nil {
		return nil // a repeat is not refused: look
	}
	r := &actor.Run{WorkflowID: q.WorkflowID, Unproved: true}
	p.cache.Add(r)
	return r
}

// answerStart tells the requester of a start how it went, once that is a fact.
func (p *Partition) answerStart(
	e *actor.Message, q *schemas.StartRequest,
) func(*actor.Run, []schemas.Event) {
	if q.ReplyTo == "" {
		return nil
	}
	return func(r *actor.Run, _ []schemas.Event) {
		v := e.Verdict
		p.tellStarter(q, &schemas.StartResponse{
			V: schemas.Version, WorkflowID: r.WorkflowID, Run: v.Run, Started: v.Started,
			Error: v.Refused,
		})
	}
}

// tellStarter answers a start.
func (p *Partition) tellStarter(q *schemas.StartRequest, a *schemas.StartResponse) {
	p.inputs.requests.done(q.ReplyTo)
	p.Env.Respond(q.ReplyTo, q.Content, a)
}
