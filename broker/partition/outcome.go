package partition

import (
	"errors"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
)

// Starts, outcomes and some questions (ADR 0058) come straight to the owner, which answers once
// they are in the history (ADR 0021). Until then whoever sent one has it: a client asks again with
// the same run id, a worker keeps its task and puts the outcome into the inbox if the owner does
// not take it. So the inbox holds only what nobody waits for.

// outcome takes an outcome, or a question, that its worker did not put into the inbox. What is
// unusual about it is left to that way.
func (p *Partition) outcome(m natsconn.Msg) {
	r, of := &schemas.Report{}, execution.Attempt{}
	_, wid, list, err := subject.ParseOutcome(m.Subject)
	if err == nil {
		err = env.DecodeSent(m.Header, m.Data, r)
	}
	if errors.Is(err, schemas.ErrUnknownField) {
		// in the inbox it would be a dead letter
		p.tellOutcome(m.Reply, 0, schemas.Errorf(schemas.CodeInvalid, "%v", err))
		return
	}
	if err == nil {
		of.Run, of.ScheduledID, of.Attempt, err = execution.ParseToken(r.Token)
	}
	if err != nil || len(m.Data) > min(schemas.PayloadThreshold, p.Env.MessageLimit()) ||
		p.Env.Outgrows(r.Result) > 0 || p.Env.Outgrows(r.Details) > 0 {
		p.tellOutcome(m.Reply, 0, errNotTaken)
		return
	}
	p.Loop.Post(func() {
		if p.sealed() {
			p.tellOutcome(m.Reply, 0, errNotTaken)
			return
		}
		to := p.cache.Get(wid)
		if to.Load.IsUnreadable() {
			p.tellOutcome(m.Reply, 0, errNotTaken)
			return
		}
		p.reports[m.Reply] = struct{}{}
		e := &actor.Message{
			WorkflowID: wid, Event: execution.Report{Report: r, List: list, Of: of}, At: p.now(),
			Log: noLog, Subject: m.Subject, Body: m.Data, Ahead: r.Ahead,
		}
		e.Answer = func(r *actor.Run, _ []schemas.Event) {
			p.answerOutcome(m.Reply, r.End.Sequence, nil)
		}
		e.Refuse = func() { p.answerOutcome(m.Reply, 0, errNotTaken) }
		p.deliver(to, e)
	})
}

// applies tells whether an outcome is the one that the run waits for, and whether the answer to a
// question is simply yes.
func (p *Partition) applies(r *actor.Run, e *actor.Message) bool {
	m, ok := e.Event.(execution.Report)
	if !ok {
		return true
	}
	if !r.Open() {
		return false
	}
	if m.Report.Kind == schemas.ReportBegin {
		return r.State.Grants(m, e.At)
	}
	a := r.State.Awaits(m)
	if a != nil {
		p.dispatch.Took(a.Scheduled.ActivityType, m.Report.Elapsed)
	}
	return a != nil
}

// errNotTaken sends a worker to the inbox.
var errNotTaken = schemas.Errorf(schemas.CodeConflict, "the owner does not take the report").
	WithHint("publish it to the task's report subject")

// answerOutcome tells a worker which record holds its outcome, or its start, or why none does.
func (p *Partition) answerOutcome(to string, sequence uint64, why *schemas.Error) {
	delete(p.reports, to)
	p.tellOutcome(to, sequence, why)
}

// tellOutcome is answerOutcome for a worker that nobody has noted.
func (p *Partition) tellOutcome(to string, sequence uint64, why *schemas.Error) {
	if !subject.Answerable(to) {
		return
	}
	err := schemas.MarshalJSONTo(&schemas.OutcomeAnswer{
		V: schemas.Version, Sequence: sequence, Error: why,
	}, func(body []byte) error { return p.Env.Conn.Publish(to, nil, body) })
	if err != nil {
		p.Log.WithError(err).
			Debug("a worker is not told what became of its outcome; it puts it into the inbox")
	}
}

// refuseReports sends back what this owner will not store any more.
func (p *Partition) refuseReports() {
	for to := range p.reports {
		p.answerOutcome(to, 0, errNotTaken)
	}
}
