package broker

import (
	"context"
	"errors"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/post"
	"github.com/droverhq/drover/schemas"
)

// deliver hands a message to its run, or lets it wait there.
func (p *partition) deliver(r *run, e *envelope) {
	if len(r.mailbox) > 0 || r.waits() {
		r.mailbox = append(r.mailbox, e)
		p.confirm(r)
		return
	}
	p.step(r, e)
}

// drain steps what waits in the mailbox, as far as it may.
func (p *partition) drain(r *run) {
	for len(r.mailbox) > 0 && !r.waits() {
		e := r.mailbox[0]
		r.mailbox[0] = nil
		if r.mailbox = r.mailbox[1:]; len(r.mailbox) == 0 {
			r.mailbox = nil
		}
		p.step(r, e)
	}
	p.confirm(r)
}

// mark makes flush look at the run.
func (p *partition) mark(r *run) { p.dirty = append(p.dirty, r) }

// step lets a message happen. Its events are in the state at once and in the history once a record with them is
// acknowledged; its effects come after that.
func (p *partition) step(r *run, e *envelope) {
	if e.log != noLog {
		if !r.positions[e.log].Before(e.pos) && r.live() {
			p.repeated(r, e)
			return
		}
	}
	start, isStart := e.msg.(execution.Start)
	switch {
	case isStart && !p.begins(r, e, start):
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
	if _, rings := e.msg.(execution.Ring); rings && (r.inflight != nil || len(r.pending) > 0) {
		e.msg = execution.Ring{Uncommitted: r.committed + 1}
	}
	events, effects := r.state.Step(&p.b.o.Execution, e.msg, e.at)
	if e.log != noLog {
		r.positions[e.log] = e.pos
	}
	g := group{events: events, size: len(e.body) + 256*len(events)}
	for _, f := range effects {
		g.effects = append(g.effects, effect{Effect: f, cause: e})
	}
	if e.ticket != nil {
		g.tickets = append(g.tickets, e.ticket)
	}
	if e.answer != nil {
		g.answers = append(g.answers, func() { e.answer(r, events) })
	}
	p.queue(r, g)
	p.expire(r)
}

// repeated handles a message that the history has already: it is read again after a take-over. Whoever asked for a start
// may not have its answer yet.
func (p *partition) repeated(r *run, e *envelope) {
	if start, ok := e.msg.(execution.Start); ok && e.answer != nil && sameStart(r.state.Start, start.Request) {
		e.answer(r, nil)
	}
	e.ticket.release()
}

// queue adds what a message has caused to the run's next record; what has no event rides with the one before it.
func (p *partition) queue(r *run, g group) {
	switch {
	case len(g.events) > 0:
		r.pending = append(r.pending, g)
	case len(r.pending) > 0:
		last := &r.pending[len(r.pending)-1]
		last.effects = append(last.effects, g.effects...)
		last.tickets = append(last.tickets, g.tickets...)
		last.answers = append(last.answers, g.answers...)
	case r.inflight != nil:
		r.inflight.adopt(g)
	default:
		p.settled(r, g, nil)
	}
	p.mark(r)
}

// begins decides what a start does to a workflow id: it begins a run, repeats an earlier answer, or is refused.
func (p *partition) begins(r *run, e *envelope, m execution.Start) bool {
	if r.live() && !e.fresh && !sameStart(r.state.Start, m.Request) {
		p.checkFresh(r, e, m)
		return false
	}
	if r.live() && (!r.state.Closed() || sameStart(r.state.Start, m.Request)) {
		g := group{tickets: []*ticket{e.ticket}}
		if e.answer != nil {
			g.answers = append(g.answers, func() { e.answer(r, nil) })
		}
		r.positions[e.log] = e.pos
		p.queue(r, g)
		return false
	}
	if r.live() && (r.inflight != nil || len(r.pending) > 0) {
		// The close is on its way; the new run has a subject of its own and begins behind it.
		r.held = true
		r.mailbox = append([]*envelope{e}, r.mailbox...)
		p.mark(r)
		return false
	}
	p.reset(r, e, m)
	return true
}

// checkFresh makes sure that a new run of a known id does not bear the run id of an older one: then the start is a late
// repeat, and gets that run's answer (P-5).
func (p *partition) checkFresh(r *run, e *envelope, m execution.Start) {
	r.loading = true
	r.mailbox = append([]*envelope{e}, r.mailbox...)
	readAsync(p.b, p.loop, func(ctx context.Context) (bool, error) {
		_, err := p.b.reads.LastBySubject(ctx, p.b.ns.StreamHistory(p.n), p.b.ns.History(p.n, r.wid, m.Request.Run))
		if errors.Is(err, post.ErrNotFound) {
			return false, nil
		}
		return err == nil, err
	}, func(exists bool, err error) {
		r.loading = false
		switch {
		case err != nil:
			p.log.WithError(err).WithField("workflow", r.wid).Warn("a run id cannot be looked up; trying again")
			r.loading = true
			p.loop.after(loadRetry, func() { r.loading = false; p.mark(r) })
			return
		case exists:
			r.mailbox = r.mailbox[1:]
			p.b.respond(m.Request.ReplyTo, m.Request.Content, &schemas.StartResponse{V: schemas.Version, WorkflowID: r.wid, Run: m.Request.Run})
			e.ticket.release()
		default:
			e.fresh = true
		}
		p.loadedNow(r)
	})
}

// loadedNow runs what waited for a read about the run to end.
func (p *partition) loadedNow(r *run) {
	then := r.then
	r.then = nil
	for _, f := range then {
		f()
	}
	p.drain(r)
	p.mark(r)
}

// reset gives the workflow id a new run. It inherits the positions of its predecessor and of the owner in both logs, so
// that nothing its predecessor has consumed is applied again (P-3); only signals that waited for this very start are not
// behind it.
func (p *partition) reset(r *run, e *envelope, m execution.Start) {
	signals := p.intakes[signalLog].read
	waiting := p.takeOrphans(r.wid)
	if len(waiting) > 0 {
		signals = waiting[0].pos
		signals.Sequence--
	}
	for _, w := range r.mailbox {
		if w.log == signalLog && !signals.Before(w.pos) {
			signals = w.pos
			signals.Sequence--
		}
	}
	if r.alarm.seq != 0 {
		p.dropAlarm(r)
	}
	fresh := run{
		wid: r.wid, state: execution.New(r.wid, m.Request.Run), mailbox: append(waiting, r.mailbox...),
		positions: [2]schemas.Position{r.positions[inboxLog].Later(e.pos), r.positions[signalLog].Later(signals)},
		waiters:   r.waiters, element: r.element, uncovered: r.uncovered,
	}
	*r = fresh
	p.mark(r)
}

func sameStart(s *schemas.WorkflowStarted, q *schemas.StartRequest) bool {
	return s.Run == q.Run || s.RequestID != "" && s.RequestID == q.RequestID
}

// unknown parks what came for a workflow id without a run.
func (p *partition) unknown(r *run, e *envelope) {
	switch m := e.msg.(type) {
	case execution.Ring:
	case execution.Report:
		if m.Report.Kind == schemas.ReportBegin {
			p.perform(r, effect{Effect: execution.Permit{To: m.Report.ReplyTo, Permission: schemas.Permission{Nonce: m.Report.Nonce, Reason: "the workflow is unknown"}}, cause: e}, nil)
			break
		}
		p.bury(e, deadUnknown, "no workflow with the id "+r.wid+" has ever been started")
	case execution.Signal:
		p.bury(e, deadUnknown, "no workflow with the id "+r.wid+" has ever been started; start it first, and signal again")
	default:
		if e.answer != nil {
			e.answer(r, nil)
		}
	}
	e.ticket.release()
}

const deadUnknown = "unknown-workflow"
