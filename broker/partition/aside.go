package partition

import (
	"strconv"

	"github.com/droverhq/drover/broker/dead"
	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/schemas"
)

// mostKept bounds what waits in the mailbox of a run that a later version may have written. What is
// beyond is read again, by the next owner or after the recovery: its position waits.
const mostKept = 256

// setAside lets nothing wait for a run whose history is damaged.
func (p *Partition) setAside(r *actor.Run) {
	p.sayDamaged(p.Env.NS.HistoryOfWorkflow(p.Partition, r.WorkflowID), r.Damage.Err)
	delete(p.decisions.Inheriting, r.WorkflowID)
	p.alarms.Uncover(r)
}

// turnAwayAll tells those who wait for a run that its history cannot be followed.
func (p *Partition) turnAwayAll(r *actor.Run) {
	then := r.Then
	r.Then = nil
	for _, w := range then {
		switch {
		case !r.Load.IsAside() && w.Patient:
			r.Then = append(r.Then, w)
		case w.Broken != nil:
			w.Broken()
		}
	}
	mailbox := r.Mailbox
	r.Mailbox = nil
	for _, e := range mailbox {
		switch {
		case r.Load.IsAside():
			p.turnAway(r, e)
		case p.keeps(r, e):
			r.Mailbox = append(r.Mailbox, e)
		}
	}
}

// keeps tells whether a message may wait for a run of a later version. One that came straight to
// the owner may not: its sender waits, and is told.
func (p *Partition) keeps(r *actor.Run, e *actor.Message) bool {
	e.Judged() // so that the log goes on
	if p.sendBack(r, e) {
		return false
	}
	if len(r.Mailbox) >= mostKept {
		r.Damage.Overflown = r.Damage.Overflown || e.Log != noLog
		return false
	}
	return true
}

// sendBack refuses what came by no log, if its sender hears of it.
func (p *Partition) sendBack(r *actor.Run, e *actor.Message) bool {
	if e.Log != noLog {
		return false
	}
	switch e.Event.(type) {
	case execution.Start:
		e.Verdict = actor.Verdict{Refused: damagedError(r)}
		if e.Answer != nil {
			e.Answer(r, nil)
		}
	case execution.Report:
		e.Refuse()
	default:
		return false
	}
	return true
}

// turnAway ends what came for a run that is set aside. Whoever waits for an answer gets one. What
// is the last of its kind becomes a dead letter; what a repair repeats does not.
func (p *Partition) turnAway(r *actor.Run, e *actor.Message) {
	defer func() {
		if !e.Kept {
			e.Judged()
		}
	}()
	defer e.Completion.Release()
	if p.sendBack(r, e) {
		return
	}
	if e.Log == noLog {
		if e.Refuse != nil {
			e.Refuse()
		}
		return
	}
	switch m := e.Event.(type) {
	case execution.AlarmFired:
		return
	case execution.Start:
		if q := m.Request; q.ReplyTo != "" && (q.Origin == nil || q.Origin.Parent == nil) {
			p.tellStarter(q, &schemas.StartResponse{
				V: schemas.Version, WorkflowID: r.WorkflowID, Error: damagedError(r),
			})
			return
		}
	default:
		if q := requestIn(m); q != nil && q.ReplyTo != "" {
			p.Env.Respond(q.ReplyTo, q.Content, &schemas.AckResponse{V: schemas.Version, Error: damagedError(r)})
			return
		}
	}
	p.owe(r, e)
	p.bury(e, dead.ReasonDamaged, r.Damage.Err.Error())
}

// requestIn is what an operator asks for, or a broker in the name of a workflow; nil if the message
// is something else.
func requestIn(m execution.Message) *schemas.ExecutionRequest {
	switch m := m.(type) {
	case execution.Pause:
		return m.Request
	case execution.Resume:
		return m.Request
	case execution.Cancel:
		return m.Request
	case execution.Terminate:
		return m.Request
	case execution.Hold:
		return m.Request
	case execution.Release:
		return m.Request
	case execution.BreakLock:
		return m.Request
	}
	return nil
}

// sayDamaged writes a dead letter about a history, of which the subject is given. It is written
// once for each damage, whichever owner meets it. The effects position waits for it.
func (p *Partition) sayDamaged(subj string, err error) {
	letter := schemas.DeadLetter{
		Reason: dead.ReasonDamaged, Subject: subj, Time: p.now(), Details: err.Error(),
	}
	place := dead.Place{
		Partition: strconv.Itoa(p.Partition), Stream: "history",
		Incarnation: dead.Digest(subj, []byte(err.Error())),
	}
	to, h, body, err := dead.Compose(p.Env.NS, place, letter, p.Env.Conn.MaxPayload())
	if err != nil {
		p.Log.WithError(err).Error("a dead letter cannot be encoded")
		return
	}
	p.handover.Recovery.Retain()
	p.dispatch.Send(to, "", h, body, func(uint64) { p.handover.Recovery.Release() })
}

// goOn repeats what a run has open that was set aside.
func (p *Partition) goOn(r *actor.Run) {
	p.afterPending(r, func() {
		if r.Live() && r.IsSettled() && p.cache.InMemory(r.WorkflowID) == r {
			p.repairRun(r)
		}
	})
}

func damagedError(r *actor.Run) *schemas.Error {
	return env.DamageOf(r.Damage.Err, "workflow %q does not go on: %v", r.WorkflowID, r.Damage.Err).
		InField("workflowId").About(r.WorkflowID, "")
}
