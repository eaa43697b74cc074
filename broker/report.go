package broker

import (
	"encoding/json"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/post"
	"github.com/droverhq/drover/schemas"
)

// Starts and outcomes come straight to the owner, which answers once they are in the history (ADR 0021). Until then whoever
// sent one has it: a client asks again with the same run id, a worker keeps its task and puts the outcome into the inbox if the
// owner does not take it. So the inbox holds only what nobody waits for.

// start takes a start that came from the API.
func (p *partition) start(q *schemas.StartRequest, body []byte, refuse func(any)) {
	q.Origin = nil
	r := p.get(q.WorkflowID)
	if r.broken != nil {
		refuse(&schemas.StartResponse{V: schemas.Version, WorkflowID: q.WorkflowID, Error: damagedError(r)})
		return
	}
	e := &envelope{wid: q.WorkflowID, msg: execution.Start{Request: q}, at: p.now(), log: noLog, subject: p.b.ns.API(kindStart), body: body}
	e.answer = p.answerStart(e, q)
	p.deliver(r, e)
}

// reported takes an outcome that its worker did not put into the inbox. What is unusual about it is left to that way.
func (p *partition) reported(m post.Msg, wid, list string, err error) {
	r := &schemas.Report{}
	if err == nil {
		err = schemas.Unmarshal(m.Data, r)
	}
	if err != nil || len(m.Data) > min(schemas.PayloadThreshold, p.b.messageLimit()) {
		p.tellWorker(m.Reply, false)
		return
	}
	p.loop.post(func() {
		if p.sealed() {
			p.tellWorker(m.Reply, false)
			return
		}
		p.reports[m.Reply] = struct{}{}
		e := &envelope{wid: wid, msg: execution.Report{Report: r, List: list}, at: p.now(), log: noLog, subject: m.Subject, body: m.Data}
		e.answer = func(*run, []schemas.Event) { p.answerReport(m.Reply, true) }
		e.refuse = func() { p.answerReport(m.Reply, false) }
		p.deliver(p.get(wid), e)
	})
}

// applies tells whether an outcome is the one that the run waits for.
func (p *partition) applies(r *run, e *envelope) bool {
	m, ok := e.msg.(execution.Report)
	return !ok || r.open() && r.state.Awaits(m)
}

func (p *partition) answerReport(to string, stored bool) {
	delete(p.reports, to)
	p.tellWorker(to, stored)
}

func (p *partition) tellWorker(to string, stored bool) {
	if !answerable(to) {
		return
	}
	body, err := json.Marshal(&schemas.ReportAnswer{V: schemas.Version, Stored: stored})
	if err == nil {
		err = p.b.conn.Publish(to, nil, body)
	}
	if err != nil {
		p.log.WithError(err).Debug("a worker is not told what became of its outcome; it puts it into the inbox")
	}
}

// refuseReports sends back what this owner will not store any more.
func (p *partition) refuseReports() {
	for to := range p.reports {
		p.answerReport(to, false)
	}
}
