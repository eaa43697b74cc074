package partition

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/explain"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/schemas"
)

// maxWait bounds how long an answer is held back; the client asks again.
const maxWait = time.Minute

// wait answers a request now, or when ready first holds, or at the latest when the wait is over.
func (p *Partition) wait(r *run, wait schemas.Duration, ready func(*run) bool, answer func(*run)) {
	if wait <= 0 || ready(r) || p.leaving != nil {
		answer(r)
		return
	}
	w := &waiter{answer: answer, ready: ready}
	r.waiters = append(r.waiters, w)
	w.end = p.loop.After(min(wait.Std(), maxWait), func() {
		if i := slices.Index(r.waiters, w); i >= 0 {
			r.waiters = slices.Delete(r.waiters, i, i+1)
			answer(r)
		}
	})
}

// notify looks whether a commit is what somebody waits for.
func (p *Partition) notify(r *run) {
	if len(r.waiters) == 0 {
		return
	}
	kept := r.waiters[:0]
	for _, w := range r.waiters {
		if !w.ready(r) {
			kept = append(kept, w)
			continue
		}
		p.loop.Cancel(w.end)
		w.answer(r)
	}
	clear(r.waiters[len(kept):])
	if r.waiters = kept; len(kept) == 0 {
		r.waiters = nil
	}
}

// asked takes a request that another broker has passed on to the partition's owner.
func (p *Partition) asked(m natsconn.Msg) {
	if to := m.Header.Get(env.ReplyHeader); to != "" {
		m.Reply = to
	}
	p.Serve(m)
}

// whileOurs runs f on the loop, unless the claim is over by then: an owner answers from memory,
// which is worth no more than its claim. A process that was stopped, or a machine that was
// suspended, wakes up with the requests that came meanwhile, and may read them before any clock of
// its own has told it how late it is (P-16). What is dropped here is asked again.
func (p *Partition) whileOurs(f func()) {
	p.loop.Post(func() {
		if p.canWrite() {
			f()
		}
	})
}

// Serve answers a request, or reports that the partition is another's by now. It may be called by
// any goroutine.
func (p *Partition) Serve(m natsconn.Msg) bool {
	if !p.lease.Valid() || !p.requests.add(m) {
		return false
	}
	content := m.Header.Get(schemas.ContentTypeHeader)
	reply := func(v any) {
		p.requests.done(m.Reply)
		p.b.Respond(m.Reply, content, v)
	}
	// that is a part of every answer
	refuse := func(err error) { reply(&schemas.AckResponse{V: schemas.Version, Error: env.Invalid(err)}) }
	switch verb := m.Header.Get(VerbHeader); verb {
	case verbDecided:
		p.requests.done(m.Reply)
		p.decided(m)
	case KindStart:
		var q schemas.StartRequest
		if err := schemas.Unmarshal(m.Data, &q); err != nil {
			refuse(err)
			break
		}
		q.ReplyTo, q.Content = m.Reply, content
		p.whileOurs(func() { p.start(&q, m.Data) })
	case "history":
		var q schemas.HistoryRequest
		if err := schemas.Unmarshal(m.Data, &q); err != nil {
			refuse(err)
			break
		}
		p.whileOurs(func() { p.serveHistory(&q, reply) })
	case "signal":
		var q schemas.SignalRequest
		if err := schemas.Unmarshal(m.Data, &q); err != nil {
			refuse(err)
			break
		}
		p.whileOurs(func() { p.serveSignal(&q, reply) })
	case KindReplay, KindReplayForce:
		var q schemas.ReplayRequest
		if err := schemas.Unmarshal(m.Data, &q); err != nil {
			refuse(err)
			break
		}
		p.whileOurs(func() { p.replay(&q, verb == KindReplayForce, reply) })
	case VerbAudit:
		var q schemas.AuditRequest
		if err := schemas.Unmarshal(m.Data, &q); err != nil {
			refuse(err)
			break
		}
		p.whileOurs(func() { p.audit(&q, reply) })
	default:
		var q schemas.ExecutionRequest
		if err := schemas.Unmarshal(m.Data, &q); err != nil {
			refuse(err)
			break
		}
		switch verb {
		case VerbRepair:
			p.whileOurs(func() { p.repair(&q, reply) })
		case "pause", "resume", VerbHold, VerbRelease, KindCancel, KindEnd, KindBreakLock:
			q.ReplyTo, q.Content = m.Reply, content
			p.whileOurs(func() { p.operate(verb, &q, reply) })
		default:
			p.whileOurs(func() { p.serveExecution(verb, &q, reply) })
		}
	}
	return true
}

// afterPending answers a request once what the run shows is in the history. If that is refused,
// nothing is answered: whoever asked asks again, and sees the run as the history has it.
func (p *Partition) afterPending(r *run, answer func()) {
	p.queue(r, group{answers: []func(){answer}})
}

// serveExecution answers describe, result and why.
func (p *Partition) serveExecution(verb string, q *schemas.ExecutionRequest, reply func(any)) {
	if verb == VerbResult && q.Inline > 0 {
		reply = inline(q.Inline, reply)
	}
	if verb == VerbResult && p.nothingKnown(q.WorkflowID) {
		p.readResult(q, reply, func() { p.serveActor(verb, q, reply) })
		return
	}
	p.serveActor(verb, q, reply)
}

// serveActor answers by the actor of the workflow id.
func (p *Partition) serveActor(verb string, q *schemas.ExecutionRequest, reply func(any)) {
	r := p.get(q.WorkflowID)
	p.whenSound(r, reply, func() {
		if q.Run != "" && (!r.live() || r.state.Run != q.Run) {
			p.serveOld(verb, q, reply)
			return
		}
		if !r.live() {
			p.serveSoft(verb, q, reply)
			return
		}
		if p.maybePurged(r) {
			p.serveOld(verb, &schemas.ExecutionRequest{WorkflowID: q.WorkflowID, Run: r.state.Run},
				reply)
			return
		}
		switch verb {
		case VerbResult:
			id := r.state.Run
			p.wait(r, q.Wait, func(r *run) bool {
				return r.state.Run != id ||
					r.state.Closed() && r.inflight == nil && len(r.pending) == 0
			}, func(r *run) {
				if r.state.Run != id {
					p.serveOld(verb, &schemas.ExecutionRequest{WorkflowID: q.WorkflowID, Run: id},
						reply)
					return
				}
				if r.state.Closed() && (r.inflight != nil || len(r.pending) > 0) {
					// decided, but not in the history yet
					reply(&schemas.ResultResponse{
						V: schemas.Version, Run: id, Status: schemas.StatusOpen,
					})
					return
				}
				reply(explain.Result(r.state))
			})
		case "why":
			p.why(r, func(v any) { p.afterPending(r, func() { reply(v) }) })
		default:
			d := explain.Describe(r.state)
			if r.open() {
				d.EventsLeft = p.b.Config().EventsLeft(r.state.LastID)
			}
			d.Partition, d.Owner, d.Alarm, d.Decision = p.n, p.b.Options.Node, r.alarm.due,
				explain.Decision(r.state, p.situation(r))
			d.RequestIDsSince = p.intake.Requests.Since(r.wid, p.now())
			p.afterPending(r, func() {
				if d.Started.Replays == nil { // nothing repeats the latest run either
					reply(d)
					return
				}
				p.withAttempts(d, reply)
			})
		}
	})
}

// serveOld answers for a run that is not the latest of its id: it is closed, so reading it once is
// enough.
func (p *Partition) serveOld(verb string, q *schemas.ExecutionRequest, reply func(any)) {
	if verb == VerbResult {
		p.readResult(q, reply, func() { p.foldOld(verb, q, reply) })
		return
	}
	p.foldOld(verb, q, reply)
}

// foldOld is serveOld by all that the history says.
func (p *Partition) foldOld(verb string, q *schemas.ExecutionRequest, reply func(any)) {
	env.ReadAsync(p.b, p.loop, func(ctx context.Context) (*runs.Run, error) {
		return p.loadRun(ctx, q.WorkflowID, q.Run)
	}, func(l *runs.Run, err error) {
		switch {
		case err != nil:
			reply(&schemas.AckResponse{V: schemas.Version, Error: env.Unavailable(err)})
		case l == nil:
			p.serveSoft(verb, q, reply)
		case verb == VerbResult:
			reply(explain.Result(l.State))
		default:
			d := explain.Describe(l.State)
			d.Partition, d.Owner = p.n, p.b.Options.Node
			p.withAttempts(d, func(v any) {
				if verb == "why" && v == any(d) {
					p.whyAlwaysOn(l.State, func(clause string) {
						because := explain.Closed(l.State) +
							explain.Replayed(runs.ReplayOf(d.Attempts, l.State.Run)) + clause
						reply(&schemas.WhyResponse{
							V: schemas.Version, Run: l.State.Run, Status: l.State.Status,
							Because: because,
						})
					})
					return
				}
				reply(v)
			})
		}
	})
}

// requestIDOf is the id of a stored signal: one that bears the id of another that the run has is
// dropped. Whoever publishes without a library may give NATS's own, by which the server drops what
// comes within its window, for whichever workflow it is.
func requestIDOf(h natsconn.Header) string {
	return cmp.Or(h.Get(schemas.RequestIDHeader), h.Get(msgIDHeader))
}

const msgIDHeader = "Nats-Msg-Id"

// serveSignal stores a signal for an open workflow. Unlike a plain publish it tells at once when
// there is none.
func (p *Partition) serveSignal(q *schemas.SignalRequest, reply func(any)) {
	r := p.get(q.WorkflowID)
	p.whenSound(r, reply, func() {
		a := &schemas.SignalResponse{V: schemas.Version}
		switch {
		case !r.live():
			a.Error = notFound(q.WorkflowID, "")
		case r.closed():
			p.hadBefore(r, execution.RequestID{Signal: true, ID: q.RequestID}, func(known bool) {
				// Of a repeat the first was stored, its answer was lost, and the run has ended
				// since (P-5).
				if a.Run = r.state.Run; !known {
					a.Error = closedError(r.wid, r.state)
				}
				p.afterPending(r, func() { reply(a) })
			})
			return
		case p.full():
			a.Run, a.Error = r.state.Run, p.refusal().About(r.wid, r.state.Run)
		default:
			a.Run = r.state.Run
			var h natsconn.Header
			if q.RequestID != "" {
				h = natsconn.Header{schemas.RequestIDHeader: {q.RequestID}}
			}
			p.outside.Send(p.b.NS.Signal(q.WorkflowID, q.Name), h, q.Input, func(ack natsconn.Ack) {
				switch {
				case errors.Is(ack.Err, natsconn.ErrFull):
					a.Error = p.b.FullError(ack.Err)
				case ack.Err != nil:
					a.Error = schemas.Errorf(schemas.CodeUnavailable,
						"the signal was not acknowledged: %v", ack.Err).
						WithHint("it may or may not be stored; look with: drover history %s",
							q.WorkflowID)
				}
				a.Sequence = ack.Seq
				reply(a)
			})
			return
		}
		p.afterPending(r, func() { reply(a) })
	})
}
