package partition

import (
	"slices"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/schemas"
)

// deliver hands a message to its run, or lets it wait there.
func (p *Partition) deliver(r *actor.Run, e *actor.Message) {
	if r.Load.IsUnreadable() && (r.Load.IsAside() || !p.keeps(r, e)) {
		if r.Load.IsAside() {
			p.turnAway(r, e)
		}
		return
	}
	if len(r.Mailbox) > 0 || r.WaitsWith(e) {
		r.Mailbox = append(r.Mailbox, e)
		p.decisions.Confirm(r)
		return
	}
	p.step(r, e)
}

// drain steps what waits in the mailbox, as far as it may.
func (p *Partition) drain(r *actor.Run) {
	for len(r.Mailbox) > 0 && !r.WaitsWith(r.Mailbox[0]) {
		e := r.Mailbox[0]
		r.Mailbox[0] = nil
		if r.Mailbox = r.Mailbox[1:]; len(r.Mailbox) == 0 {
			r.Mailbox = nil
		}
		p.step(r, e)
	}
	p.decisions.Confirm(r)
}

// mark makes flush look at the run, which is in the memory until then.
func (p *Partition) mark(r *actor.Run) { p.marks.add(r) }

// step judges whether a message may happen to the run, and lets it.
func (p *Partition) step(r *actor.Run, e *actor.Message) {
	p.judge(r, e)
	if !e.Kept {
		e.Judged()
	}
}

func (p *Partition) judge(r *actor.Run, e *actor.Message) {
	if p.repeats.Take(r, e) {
		return
	}
	if e.Log != noLog && r.Live() && !r.Positions[e.Log].Before(e.Position) {
		p.repeated(r, e)
		return
	}
	if e.Refuse != nil && !p.applies(r, e) {
		e.Refuse()
		return
	}
	if p.exchange.AboutAnotherRun(r, e) {
		return
	}
	start, isStart := e.Event.(execution.Start)
	switch {
	case isStart && !p.startDecides(r, e, start.Request):
		return
	case !r.Live() && !isStart, e.Log == signalLog && r.State.Closed():
		if e.Log == signalLog && !e.Final {
			p.orphan(e)
			return
		}
		if !r.Live() {
			p.unknown(r, e)
			return
		}
	}
	if _, fires := e.Event.(execution.AlarmFired); fires &&
		(r.Inflight != nil || len(r.Pending) > 0) {
		e.Event = execution.AlarmFired{Uncommitted: r.Committed + 1}
	}
	if e.Ahead == nil || !p.ahead.Decide(r, e) {
		p.happen(r, e)
	}
}

// happen lets a message happen. Its events are in the state at once and in the history once a
// record with them is acknowledged; its effects come after that.
func (p *Partition) happen(r *actor.Run, e *actor.Message) {
	events, effects := r.State.Step(p.Env.Config(), e.Event, e.At)
	switch {
	case e.Log == noLog:
	case len(events) == 0 && slices.ContainsFunc(effects, onlyOnce):
		p.owe(r, e)
	default:
		r.Positions[e.Log] = e.Position
	}
	// Events may say more than their message does: what comes from memory, and what has defaults.
	g := actor.Group{Events: events, Size: max(len(e.Body)+256*len(events), runs.SizeOfAll(events))}
	for _, f := range effects {
		g.Effects = append(g.Effects, actor.Effect{Effect: f, Cause: e})
	}
	if e.Completion != nil {
		g.Completions = append(g.Completions, e.Completion)
	}
	if e.Answer != nil {
		g.Answers = append(g.Answers, func() { e.Answer(r, events) })
	}
	p.queue(r, g)
	p.decisions.Expire(r)
}

// repeated handles a message that the history has already: it is read again after a take-over.
// Whoever waits for an answer may not have it yet.
func (p *Partition) repeated(r *actor.Run, e *actor.Message) {
	switch m := e.Event.(type) {
	case execution.Start:
		switch {
		case m.Request.Origin != nil:
			p.exchange.AnswerChildLate(r, e, m.Request)
		case e.Answer != nil && execution.SameStart(r.State.Start, m.Request):
			e.Verdict = actor.Verdict{Run: r.State.Start.Run}
			e.Answer(r, nil)
		}
	default:
		for _, a := range r.State.AnswerAgain(e.Event) {
			p.perform(r, actor.Effect{Effect: a, Cause: e}, nil)
		}
	}
	e.Completion.Release()
}

// queue adds what a message has caused to the run's next record; what has no event rides with the
// one before it.
func (p *Partition) queue(r *actor.Run, g actor.Group) {
	switch {
	case len(g.Events) > 0:
		p.writer.Add(r, g)
	case len(r.Pending) > 0:
		last := &r.Pending[len(r.Pending)-1]
		last.Positions = r.Positions
		last.Effects = append(last.Effects, g.Effects...)
		last.Completions = append(last.Completions, g.Completions...)
		last.Answers = append(last.Answers, g.Answers...)
	case r.Inflight != nil:
		r.Inflight.Adopt(g)
	case len(g.Answers) > 0 && !p.canWrite():
		// nothing but memory says so (P-16); the next owner reads it again, or is asked
		return
	default:
		p.settled(r, g, nil)
	}
	p.mark(r)
}

// loadedNow runs what waited for a read about the run to end.
func (p *Partition) loadedNow(r *actor.Run) {
	then := r.Then
	r.Then = nil
	for _, w := range then {
		w.Run()
	}
	p.drain(r)
	p.mark(r)
}

// unknown parks what came for a workflow id without a run.
func (p *Partition) unknown(r *actor.Run, e *actor.Message) {
	switch m := e.Event.(type) {
	case execution.AlarmFired, execution.Child, execution.External:
	case execution.Cancel:
		if o := m.Request.Origin; o != nil && o.Execution != nil && o.ScheduledEventID != 0 {
			p.exchange.AnswerUnknown(e, *o.Execution, o.ScheduledEventID)
		}
		if e.Answer != nil {
			e.Answer(r, nil)
		}
	case execution.Report:
		answer := schemas.Permission{Nonce: m.Report.Nonce, Reason: "the workflow is unknown"}
		switch m.Report.Kind {
		case schemas.ReportLost:
			answer.Done = schemas.LostGone
			fallthrough
		case schemas.ReportBegin:
			p.perform(r, actor.Effect{
				Effect: execution.Permit{To: m.Report.ReplyTo, Permission: answer}, Cause: e,
			}, nil)
			e.Completion.Release()
			return
		}
		p.owe(r, e)
		p.bury(e, deadUnknown, env.UnknownID(r.WorkflowID))
	case execution.Signal:
		if m.External != nil {
			p.exchange.AnswerUnknown(e, m.External.Source, m.External.ScheduledEventID)
			break
		}
		p.owe(r, e)
		p.bury(e, deadUnknown, env.UnknownID(r.WorkflowID)+"; start it first, and signal again")
	default:
		if e.Answer != nil {
			e.Answer(r, nil)
		}
	}
	e.Completion.Release()
}

const deadUnknown = "unknown-workflow"

// deadForeign is that of what nobody has meant for its subject, deadTooLarge of what fits into no
// task.
const (
	deadForeign  = "stray"
	deadTooLarge = "too-large"
)
