package partition

import (
	"encoding/json"
	"errors"
	"strconv"

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

// start takes a start that came from the API.
func (p *Partition) start(q *schemas.StartRequest, body []byte) {
	q.Origin, q.Replays = nil, nil
	var r *actor.Run
	if len(body) <= p.b.SmallBody() {
		// else the id is waited for, and others may ask for it meanwhile
		r = p.fresh(q)
	}
	if r == nil {
		r = p.get(q.WorkflowID)
	}
	if r.Damage.Err != nil {
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
		Subject:    p.b.NS.API(KindStart),
		Body:       body,
	}
	e.Answer = p.answerStart(e, q)
	p.deliver(r, e)
}

// reported takes an outcome, or a question, that its worker did not put into the inbox. What is
// unusual about it is left to that way.
func (p *Partition) reported(m natsconn.Msg, wid, list string, err error) {
	r, of := &schemas.Report{}, execution.Attempt{}
	if err == nil {
		err = env.DecodeSent(m.Header, m.Data, r)
	}
	if errors.Is(err, schemas.ErrUnknownField) {
		p.tellRefused(m.Reply, err)
		return
	}
	if err == nil {
		of.Run, of.ScheduledID, of.Attempt, err = execution.ParseToken(r.Token)
	}
	if err != nil || len(m.Data) > min(schemas.PayloadThreshold, p.b.MessageLimit()) ||
		p.b.Outgrows(r.Result) > 0 || p.b.Outgrows(r.Details) > 0 {
		p.tellWorker(m.Reply, 0)
		return
	}
	p.loop.Post(func() {
		if p.sealed() {
			p.tellWorker(m.Reply, 0)
			return
		}
		to := p.get(wid)
		if to.Damage.Err != nil {
			p.tellWorker(m.Reply, 0)
			return
		}
		p.reports[m.Reply] = struct{}{}
		e := &actor.Message{
			WorkflowID: wid, Event: execution.Report{Report: r, List: list, Of: of}, At: p.now(),
			Log: noLog, Subject: m.Subject, Body: m.Data, Ahead: r.Ahead,
		}
		e.Answer = func(r *actor.Run, _ []schemas.Event) { p.answerReport(m.Reply, r.End.Sequence) }
		e.Refuse = func() { p.answerReport(m.Reply, 0) }
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
		p.offers.policy.took(a.Scheduled.ActivityType, m.Report.Elapsed)
	}
	return a != nil
}

// answerReport tells a worker which record holds its outcome, or its start; 0 says that none does.
func (p *Partition) answerReport(to string, sequence uint64) {
	delete(p.reports, to)
	p.tellWorker(to, sequence)
}

func (p *Partition) tellWorker(to string, sequence uint64) {
	if !subject.Answerable(to) {
		return
	}
	body := []byte(
		`{"error":{"code":409,"description":"not taken: publish the report to the task's report subject"}}`)
	if sequence > 0 {
		// its letters need no escape
		body = append(append(make([]byte, 0, 96), `{"stream":"`...), p.b.NS.StreamHistory(p.n)...)
		body = append(strconv.AppendUint(append(body, `","seq":`...), sequence, 10), '}')
	}
	if err := p.b.Conn.Publish(to, nil, body); err != nil {
		p.log.WithError(err).
			Debug("a worker is not told what became of its outcome; it puts it into the inbox")
	}
}

// tellRefused tells a worker what is wrong with its outcome. In the inbox it would be a dead
// letter.
func (p *Partition) tellRefused(to string, wrong error) {
	if !subject.Answerable(to) {
		return
	}
	var a struct {
		Error struct {
			Code        int    `json:"code"`
			Description string `json:"description"`
		} `json:"error"`
	}
	a.Error.Code, a.Error.Description = 400, wrong.Error()
	body, err := json.Marshal(&a)
	if err == nil {
		err = p.b.Conn.Publish(to, nil, body)
	}
	if err != nil {
		p.log.WithError(err).Debug("a worker is not told what is wrong with its outcome")
	}
}

// refuseReports sends back what this owner will not store any more.
func (p *Partition) refuseReports() {
	for to := range p.reports {
		p.answerReport(to, 0)
	}
}
