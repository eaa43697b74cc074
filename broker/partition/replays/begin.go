package replays

import (
	"errors"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/intake"
	"github.com/droverhq/drover/schemas"
)

// begin lets the new run begin. It is judged as any start: another run of the id may be open
// by now.
func (rs *Replays) begin(y *replay, reply func(any)) {
	q := y.start()
	body, err := schemas.Marshal(q)
	if err == nil && len(body) > rs.Env.MessageLimit() {
		err = schemas.Errorf(schemas.CodeTooLarge,
			"the start of the new run takes %d bytes; at most %d fit",
			len(body), rs.Env.MessageLimit()).About(q.WorkflowID, y.old.Run)
	}
	if err != nil {
		refused, ok := errors.AsType[*schemas.Error](err)
		if !ok {
			refused = schemas.Errorf(schemas.CodeInternal, "%v", err)
		}
		reply(y.refuse(refused))
		return
	}
	if y.force {
		rs.Log.WithField("workflow", q.WorkflowID).WithField("run", y.old.Run).WithField("from",
			y.from()).WithField("identity", y.q.Identity).
			Warn("a replay is forced: idempotence and replay points are not minded")
	}
	start := execution.Start{Request: q}
	if y.goesOn { // it is kept as what it goes on with
		start.Retention, start.ParentRetention = y.old.Retention, y.old.Start.ParentRetention
	}
	e := &actor.Message{
		WorkflowID: q.WorkflowID,
		Event:      start,
		At:         rs.Env.Now(),
		Log:        intake.None,
		Subject:    rs.Env.NS.API(actor.KindReplay),
		Body:       body,
	}
	e.Answer = func(*actor.Run, []schemas.Event) {
		if e.Verdict.Refused != nil {
			reply(y.refuse(e.Verdict.Refused))
			return
		}
		reply(y.answer(e.Verdict.Run, e.Verdict.Started))
	}
	r := rs.host.Get(q.WorkflowID)
	rs.host.WhenSound(r, reply, func() { rs.host.Deliver(r, e) })
}
