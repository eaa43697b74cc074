package partition

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/decisions"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/partition/inspect"
	"github.com/droverhq/drover/schemas"
)

// maxWait bounds how long an answer is held back; the client asks again.
const maxWait = time.Minute

// wait answers a request now, or when ready first holds, or at the latest when the wait is over.
func (p *Partition) wait(
	r *actor.Run, wait schemas.Duration, ready func(*actor.Run) bool, answer func(*actor.Run),
) {
	if wait <= 0 || ready(r) || p.leaving != nil {
		answer(r)
		return
	}
	w := &actor.Waiter{Answer: answer, Ready: ready}
	r.Waiters = append(r.Waiters, w)
	w.End = p.Loop.After(min(wait.Std(), maxWait), func() {
		if i := slices.Index(r.Waiters, w); i >= 0 {
			r.Waiters = slices.Delete(r.Waiters, i, i+1)
			answer(r)
		}
	})
}

// notify looks whether a commit is what somebody waits for.
func (p *Partition) notify(r *actor.Run) {
	if len(r.Waiters) == 0 {
		return
	}
	kept := r.Waiters[:0]
	for _, w := range r.Waiters {
		if !w.Ready(r) {
			kept = append(kept, w)
			continue
		}
		p.Loop.Cancel(w.End)
		w.Answer(r)
	}
	clear(r.Waiters[len(kept):])
	if r.Waiters = kept; len(kept) == 0 {
		r.Waiters = nil
	}
}

// asked takes a request that another broker has passed on to the partition's owner.
func (p *Partition) asked(m natsconn.Msg) {
	if to := m.Header.Get(env.ReplyHeader); to != "" {
		m.Reply = to
	}
	if verb := m.Header.Get(actor.VerbHeader); verb != decisions.VerbDecided {
		p.Env.Options.Stats.Asked(m.Reply, verb)
	}
	p.Serve(m)
}

// whileOurs runs f on the loop, unless the claim is over by then: an owner answers from memory,
// which is worth no more than its claim. A process that was stopped, or a machine that was
// suspended, wakes up with the requests that came meanwhile, and may read them before any clock of
// its own has told it how late it is (P-16). What is dropped here is asked again.
func (p *Partition) whileOurs(f func()) {
	p.Loop.Post(func() {
		if p.canWrite() {
			f()
		}
	})
}

// Serve answers a request, or reports that the partition is another's by now. It may be called by
// any goroutine.
func (p *Partition) Serve(m natsconn.Msg) bool {
	if !p.lease.Valid() || !p.inputs.requests.add(m) {
		return false
	}
	content := m.Header.Get(schemas.ContentTypeHeader)
	reply := func(v any) {
		p.inputs.requests.done(m.Reply)
		p.Env.Respond(m.Reply, content, v)
	}
	// that is a part of every answer
	refuse := func(err error) { reply(&schemas.AckResponse{V: schemas.Version, Error: env.Invalid(err)}) }
	switch verb := m.Header.Get(actor.VerbHeader); verb {
	case decisions.VerbDecided:
		p.inputs.requests.done(m.Reply)
		p.decisions.Decided(m)
	case actor.KindStart:
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
		p.whileOurs(func() { p.inspector.History(&q, reply) })
	case "signal":
		var q schemas.SignalRequest
		if err := schemas.Unmarshal(m.Data, &q); err != nil {
			refuse(err)
			break
		}
		p.whileOurs(func() { p.serveSignal(&q, reply) })
	case actor.KindReplay, actor.KindReplayForce:
		var q schemas.ReplayRequest
		if err := schemas.Unmarshal(m.Data, &q); err != nil {
			refuse(err)
			break
		}
		p.whileOurs(func() { p.replays.Answer(&q, verb == actor.KindReplayForce, reply) })
	case inspect.VerbAudit:
		var q schemas.AuditRequest
		if err := schemas.Unmarshal(m.Data, &q); err != nil {
			refuse(err)
			break
		}
		p.whileOurs(func() { p.inspector.Audit(&q, reply) })
	default:
		var q schemas.ExecutionRequest
		if err := schemas.Unmarshal(m.Data, &q); err != nil {
			refuse(err)
			break
		}
		switch verb {
		case VerbRepair:
			p.whileOurs(func() { p.repair(&q, reply) })
		case "pause",
			"resume",
			actor.VerbHold,
			actor.VerbRelease,
			actor.KindCancel,
			actor.KindEnd,
			actor.KindBreakLock:
			q.ReplyTo, q.Content = m.Reply, content
			p.whileOurs(func() { p.operate(verb, &q, reply) })
		default:
			p.whileOurs(func() { p.inspector.Execution(verb, &q, reply) })
		}
	}
	return true
}

// afterPending answers a request once what the run shows is in the history. If that is refused,
// nothing is answered: whoever asked asks again, and sees the run as the history has it.
func (p *Partition) afterPending(r *actor.Run, answer func()) {
	p.queue(r, actor.Group{Answers: []func(){answer}})
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
	r := p.cache.Get(q.WorkflowID)
	p.whenSound(r, reply, func() {
		a := &schemas.SignalResponse{V: schemas.Version}
		switch {
		case !r.Live():
			a.Error = env.NotFound(q.WorkflowID, "")
		case r.Closed():
			p.repeats.HadBefore(r, execution.RequestID{Signal: true, ID: q.RequestID},
				func(known bool) {
					// Of a repeat the first was stored, its answer was lost, and the run has ended
					// since (P-5).
					if a.Run = r.State.Run; !known {
						a.Error = closedError(r.WorkflowID, r.State)
					}
					p.afterPending(r, func() { reply(a) })
				})
			return
		case p.writer.Full():
			a.Run, a.Error = r.State.Run, p.writer.Refusal().About(r.WorkflowID, r.State.Run)
		default:
			a.Run = r.State.Run
			var h natsconn.Header
			if q.RequestID != "" {
				h = natsconn.Header{schemas.RequestIDHeader: {q.RequestID}}
			}
			p.outside.Send(p.Env.NS.Signal(q.WorkflowID, q.Name), h, q.Input,
				func(ack natsconn.Ack) {
					switch {
					case errors.Is(ack.Err, natsconn.ErrFull):
						a.Error = p.Env.FullError(ack.Err)
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

// whenSound is whenKnown for those who want an answer: a run whose history is damaged gives them a
// refusal.
func (p *Partition) whenSound(r *actor.Run, reply func(any), f func()) {
	p.cache.WhenKnown(r, f,
		func() { reply(&schemas.AckResponse{V: schemas.Version, Error: damagedError(r)}) })
}
