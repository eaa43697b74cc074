package partition

import (
	"github.com/droverhq/drover/broker/dead"
	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/keyed"
	"github.com/droverhq/drover/broker/partition/watermark"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
)

// perform does one effect of a committed step. t is held until it is acknowledged.
func (p *Partition) perform(r *actor.Run, e actor.Effect, t *watermark.Completion) {
	switch f := e.Effect.(type) {
	case execution.Dispatch:
		if r.Open() {
			if a := r.State.Activities[f.ScheduledID]; a != nil {
				p.dispatch.Task(r, a, t, f.Store, a.Started != 0)
			}
		}
	case execution.Permit:
		p.permit(f)
	case execution.Dead:
		p.buryUntold(r, e.Cause, f)
	case execution.Inquire:
		p.dispatch.Inquire(r, f)
	case execution.CancelRunning:
		p.exchange.Control(f)
	case execution.EnterLock:
		if l := r.State.LockOf(f.Key, f.Asked); l != nil && r.Open() {
			p.keys.EnterLock(r, l, t, e.Cause == nil)
		}
	case execution.AskState:
		if q := r.State.Requests[f.ScheduledID]; q != nil && r.Open() {
			p.keys.AskState(r, q, t, e.Cause == nil)
		}
	case execution.LeaveLock:
		at := keyed.Place{WorkflowID: r.WorkflowID, Asked: f.Asked}
		p.keys.LeaveLock(f.Lock, f.Scope, at, t, e.Cause == nil)
	default:
		p.exchange.Perform(r.State, e, t)
	}
}

func (p *Partition) permit(f execution.Permit) {
	if !subject.Answerable(f.To) {
		return
	}
	permission := f.Permission
	permission.V = schemas.Version
	body, err := schemas.MarshalJSON(&permission)
	if err == nil {
		err = p.Env.Conn.Publish(f.To, nil, body)
	}
	if err != nil {
		p.Log.WithError(err).Warn("a worker's question cannot be answered; it will ask again")
	}
}

// bury parks a message that cannot be applied. The entry's subject tells where the message stood,
// so it is written once, however often the message is read. The message's position waits for it.
func (p *Partition) bury(e *actor.Message, reason, details string) {
	p.Log.WithField("subject", e.Subject).WithField("reason", reason).
		Warn("dead letter: " + details)
	p.Env.Options.Stats.Buried(reason, e.Log == signalLog)
	p.letters.Note(e.WorkflowID, e.Event, e.At, reason, details)
	letter := schemas.DeadLetter{
		Reason: reason, Details: details, Subject: e.Subject, Time: e.Stored(), Body: e.Body,
	}
	place := p.place(e)
	subj, h, body, err := dead.Compose(p.Env.NS, place, letter, p.Env.Conn.MaxPayload())
	if err != nil {
		p.Log.WithError(err).Error("a dead letter cannot be encoded")
		e.Judged()
		return
	}
	natsconn.ExpectNone(h, p.Env.NS.DeadAt(place.Tokens()...))
	e.Completion.Retain()
	p.dispatch.Send(subj, "", h, body, func(uint64) { e.Judged(); e.Completion.Release() })
}
