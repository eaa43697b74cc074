package partition

import (
	"fmt"
	"slices"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/schemas"
)

// deliver hands a message to its run, or lets it wait there.
func (p *Partition) deliver(r *run, e *message) {
	if r.broken != nil && (r.aside || !p.keeps(r, e)) {
		if r.aside {
			p.turnAway(r, e)
		}
		return
	}
	if len(r.mailbox) > 0 || r.waitsWith(e) {
		r.mailbox = append(r.mailbox, e)
		p.confirm(r)
		return
	}
	p.step(r, e)
}

// drain steps what waits in the mailbox, as far as it may.
func (p *Partition) drain(r *run) {
	for len(r.mailbox) > 0 && !r.waitsWith(r.mailbox[0]) {
		e := r.mailbox[0]
		r.mailbox[0] = nil
		if r.mailbox = r.mailbox[1:]; len(r.mailbox) == 0 {
			r.mailbox = nil
		}
		p.step(r, e)
	}
	p.confirm(r)
}

// mark makes flush look at the run, which is in the memory until then.
func (p *Partition) mark(r *run) {
	if !r.marked {
		r.marked = true
		p.dirty = append(p.dirty, r)
	}
}

// step judges whether a message may happen to the run, and lets it.
func (p *Partition) step(r *run, e *message) {
	p.judge(r, e)
	if !e.kept {
		e.judged()
	}
}

func (p *Partition) judge(r *run, e *message) {
	if p.remembered(r, e) {
		return
	}
	if e.log != noLog && r.live() && !r.positions[e.log].Before(e.pos) {
		p.repeated(r, e)
		return
	}
	if e.refuse != nil && !p.applies(r, e) {
		e.refuse()
		return
	}
	if p.aboutAnotherRun(r, e) {
		return
	}
	start, isStart := e.event.(execution.Start)
	switch {
	case isStart && !p.startDecides(r, e, start.Request):
		return
	case !r.live() && !isStart, e.log == signalLog && r.state.Closed():
		if e.log == signalLog && !e.final {
			p.orphan(e)
			return
		}
		if !r.live() {
			p.unknown(r, e)
			return
		}
	}
	if _, fires := e.event.(execution.AlarmFired); fires &&
		(r.inflight != nil || len(r.pending) > 0) {
		e.event = execution.AlarmFired{Uncommitted: r.committed + 1}
	}
	if e.ahead == nil || !p.decideAhead(r, e) {
		p.happen(r, e)
	}
}

// happen lets a message happen. Its events are in the state at once and in the history once a
// record with them is acknowledged; its effects come after that.
func (p *Partition) happen(r *run, e *message) {
	events, effects := r.state.Step(p.b.Config(), e.event, e.at)
	switch {
	case e.log == noLog:
	case len(events) == 0 && slices.ContainsFunc(effects, onlyOnce):
		p.owe(r, e)
	default:
		r.positions[e.log] = e.pos
	}
	// Events may say more than their message does: what comes from memory, and what has defaults.
	g := group{events: events, size: max(len(e.body)+256*len(events), runs.SizeOfAll(events))}
	_, g.alarmFired = e.event.(execution.AlarmFired)
	for _, f := range effects {
		g.effects = append(g.effects, effect{Effect: f, cause: e})
	}
	if e.completion != nil {
		g.completions = append(g.completions, e.completion)
	}
	if e.answer != nil {
		g.answers = append(g.answers, func() { e.answer(r, events) })
	}
	p.queue(r, g)
	p.expire(r)
}

// repeated handles a message that the history has already: it is read again after a take-over.
// Whoever waits for an answer may not have it yet.
func (p *Partition) repeated(r *run, e *message) {
	switch m := e.event.(type) {
	case execution.Start:
		switch {
		case m.Request.Origin != nil:
			p.answerChildLate(r, e, m.Request)
		case e.answer != nil && sameStart(r.state.Start, m.Request):
			e.verdict = verdict{run: r.state.Start.Run}
			e.answer(r, nil)
		}
	default:
		for _, a := range r.state.AnswerAgain(e.event) {
			p.perform(r, effect{Effect: a, cause: e}, nil)
		}
	}
	e.completion.Release()
}

// queue adds what a message has caused to the run's next record; what has no event rides with the
// one before it.
func (p *Partition) queue(r *run, g group) {
	switch {
	case len(g.events) > 0:
		g.positions = r.positions
		if r.pending == nil {
			r.pending = p.groups.take()
		}
		r.pending = append(r.pending, g)
	case len(r.pending) > 0:
		last := &r.pending[len(r.pending)-1]
		last.positions, last.alarmFired = r.positions, last.alarmFired && g.alarmFired
		last.effects = append(last.effects, g.effects...)
		last.completions = append(last.completions, g.completions...)
		last.answers = append(last.answers, g.answers...)
	case r.inflight != nil:
		r.inflight.adopt(g)
	case len(g.answers) > 0 && !p.canWrite():
		// nothing but memory says so (P-16); the next owner reads it again, or is asked
		return
	default:
		p.settled(r, g, nil)
	}
	p.mark(r)
}

// loadedNow runs what waited for a read about the run to end.
func (p *Partition) loadedNow(r *run) {
	then := r.then
	r.then = nil
	for _, w := range then {
		w.run()
	}
	p.drain(r)
	p.mark(r)
}

// unknown parks what came for a workflow id without a run.
func (p *Partition) unknown(r *run, e *message) {
	switch m := e.event.(type) {
	case execution.AlarmFired, execution.Child, execution.External:
	case execution.Cancel:
		if o := m.Request.Origin; o != nil && o.Execution != nil && o.ScheduledEventID != 0 {
			p.answerUnknown(e, *o.Execution, o.ScheduledEventID)
		}
		if e.answer != nil {
			e.answer(r, nil)
		}
	case execution.Report:
		answer := schemas.Permission{Nonce: m.Report.Nonce, Reason: "the workflow is unknown"}
		switch m.Report.Kind {
		case schemas.ReportLost:
			answer.Done = schemas.LostGone
			fallthrough
		case schemas.ReportBegin:
			p.perform(r, effect{Effect: execution.Permit{To: m.Report.ReplyTo, Permission: answer}, cause: e}, nil)
			e.completion.Release()
			return
		}
		p.owe(r, e)
		p.bury(e, deadUnknown, unknownID(r.wid))
	case execution.Signal:
		if m.External != nil {
			p.answerUnknown(e, m.External.Source, m.External.ScheduledEventID)
			break
		}
		p.owe(r, e)
		p.bury(e, deadUnknown, unknownID(r.wid)+"; start it first, and signal again")
	default:
		if e.answer != nil {
			e.answer(r, nil)
		}
	}
	e.completion.Release()
}

const deadUnknown = "unknown-workflow"

// unknownID says that there is no run of a workflow id: what has closed may have been purged since.
func unknownID(wid string) string {
	return fmt.Sprintf("there is no workflow with the id %q: it was never started, or is purged",
		wid)
}

// deadUndecodable is that of what says nothing to anybody.
const deadUndecodable = "undecodable"

// deadForeign is that of what nobody has meant for its subject, deadTooLarge of what fits into no
// task.
const (
	deadForeign  = "stray"
	deadTooLarge = "too-large"
)
