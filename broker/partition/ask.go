package partition

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/deciders"
	"github.com/droverhq/drover/broker/partition/dispatch"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/schemas"
)

// consult asks the decider if one is wanted. Everything is committed: what the decider sees is in
// the history.
func (p *Partition) consult(r *actor.Run) {
	if r.Decider.Ask != nil || r.Decider.NoPoller || p.leaving != nil {
		return
	}
	w, wanted := r.State.WantsDecider(p.b.Config())
	if !wanted {
		return
	}
	if wait := w.NotBefore.Sub(p.now()); w.NotBefore != 0 && wait > 0 {
		p.backOff(r, wait)
		return
	}
	if r.Window.From > r.State.Decision.Previous {
		p.loadWindow(r)
		return
	}
	p.route(r, false)
	p.request(r, w)
}

// wantsNow tells whether the decider would be asked if the run stood still.
func (p *Partition) wantsNow(r *actor.Run) bool {
	if r.Decider.Ask != nil || r.Decider.NoPoller || !r.Open() {
		return false
	}
	w, wanted := r.State.WantsDecider(p.b.Config())
	return wanted && w.NotBefore <= p.now()
}

func (p *Partition) backOff(r *actor.Run, wait time.Duration) {
	if r.Decider.BackingOff {
		return
	}
	r.Decider.BackingOff = true
	p.loop.After(wait, func() {
		r.Decider.BackingOff = false
		p.mark(r)
	})
}

// loadWindow reads the events that the window needs and the snapshot did not bring.
func (p *Partition) loadWindow(r *actor.Run) {
	r.Loading = true
	previous, upTo, id := r.State.Decision.Previous, r.Window.From, r.State.Run
	env.ReadAsync(p.b, p.loop, func(ctx context.Context) ([]schemas.Event, error) {
		events, _, err := p.b.Histories.Events(ctx, p.n, r.WorkflowID, id,
			runs.Span{After: previous, UpTo: upTo, Least: upTo})
		return events, err
	}, func(events []schemas.Event, err error) {
		if err == nil && int64(len(events)) != upTo-previous {
			err = fmt.Errorf("%w: %d events between %d and %d",
				runs.ErrDamaged, len(events), previous, upTo)
		}
		if err != nil {
			p.unread(r, err, func() {
				if r.Damage.Err != nil {
					p.loadWindow(r)
					return
				}
				r.Loading = false
				p.mark(r)
			})
			return
		}
		if !p.isIntact(r) {
			return
		}
		r.Window.Events, r.Window.From, r.Loading = append(events, r.Window.Events...), previous,
			false
		p.loadedNow(r)
	})
}

// errWindowTooLarge says that a decision task does not fit a message as it is.
var errWindowTooLarge = errors.New("the window does not fit")

// request sends the decision task: to the worker that answered last if it asked for that, else to
// whoever listens.
func (p *Partition) request(r *actor.Run, w execution.Wanted) {
	if !p.canWrite() {
		return
	}
	p.nextAsk++
	a := &actor.Ask{
		ID: p.nextAsk, StartedID: w.StartedID, At: p.now(), Sticky: r.Decider.Sticky != "",
		Confirmed: w.Started,
	}
	a.Token = r.State.Run + "." + strconv.FormatInt(a.StartedID, 10) + "." +
		strconv.FormatUint(p.fence, 36) + "." + strconv.FormatUint(a.ID, 36)
	subj, encode := p.b.NS.Decide(r.State.Start.WorkflowType), schemas.MarshalJSONTo
	if a.Sticky {
		subj, encode = p.b.NS.DecideSticky(r.State.Start.WorkflowType, r.Decider.Sticky),
			schemas.MarshalTo
	}
	task := p.task(r, a)
	send := func(body []byte) error {
		if len(body) > p.b.Largest() && len(task.Events) > 0 {
			return errWindowTooLarge
		}
		r.Decider.Ask, r.Decider.Queued = a, false
		p.asks[a.ID] = r
		if err := p.b.Conn.PublishReply(subj, p.replies+strconv.FormatUint(a.ID, 36), nil, body); err != nil {
			p.log.WithError(err).Warn("a decision task cannot be sent")
		}
		return nil
	}
	err := encode(task, send)
	if errors.Is(err, errWindowTooLarge) {
		// beside a large context, or since JSON makes much of what the window has: all of it is
		// read by pages then
		task.Events, task.More = task.Events[:0], true // not nil, which is null in JSON
		err = encode(task, send)
	}
	if err != nil {
		p.log.WithError(err).
			WithField("workflow", r.WorkflowID).Error("a decision task cannot be encoded")
		return
	}
	p.sweepLater()
	p.scheduleProbes(deciders.ProbeAfter)
}

// task builds what the decider is asked, on the scratch. The window ends with the DeciderStarted
// that the answer will bring.
func (p *Partition) task(r *actor.Run, a *actor.Ask) *schemas.DecisionTask {
	d, t := &r.State.Decision, &p.scratch.task
	*t = schemas.DecisionTask{
		V: schemas.Version, Namespace: p.b.Options.Namespace, WorkflowID: r.WorkflowID,
		Run: r.State.Run, Type: r.State.Start.WorkflowType,
		TypeVersion: r.State.Start.WorkflowTypeVersion, PreviousStartedID: d.Previous,
		StartedID: a.StartedID, Token: a.Token, Context: r.State.Context, Attempt: d.Failures + 1,
		StartMode: r.State.Start.Mode(),
	}
	t.EventsLeft = p.b.Config().EventsLeft(r.State.LastID)
	t.ContinueReasons = continueReasons(r.State, t.EventsLeft)
	t.SuggestContinueAsNew = len(t.ContinueReasons) > 0
	t.Deadline = p.answerBy(r, a)
	if r.State.Base.CompletedID != 0 {
		p.scratch.base = r.State.Base
		t.Base = &p.scratch.base
	}
	quota := p.b.BodyLimit()/2 - len(t.Context)
	events := p.scratch.emptyEvents()
	for e := range r.Unseen() {
		if e.ID <= d.Previous {
			continue
		}
		if e.ID > a.StartedID {
			break
		}
		if quota -= runs.SizeOf(e); quota < 0 && len(events) > 0 {
			t.More = true
			break
		}
		events = append(events, e)
	}
	if !a.Confirmed && !t.More {
		p.scratch.started = schemas.DeciderStarted{ScheduledEventID: d.Scheduled}
		events = append(events, schemas.Event{
			ID: a.StartedID, Time: max(a.At, r.State.LastTime), Attributes: &p.scratch.started,
		})
	}
	p.scratch.setEvents(events)
	return t
}

// continueReasons are why the run is to continue as new; nil if it need not.
func continueReasons(s *execution.State, left int64) []string {
	reasons := s.ContinueReasons()
	if left > 0 {
		reasons = append(slices.Clone(reasons), schemas.ContinueHistory)
	}
	return reasons
}

// answerBy is the deadline of an ask; 0 if it has none.
func (p *Partition) answerBy(r *actor.Run, a *actor.Ask) schemas.Timestamp {
	switch limit := r.State.Start.TaskStartToCloseTimeout; {
	case limit.Limited():
		return a.At.Add(limit)
	case limit == 0:
		return a.At.Add(p.b.Config().DeciderTimeout)
	}
	return 0
}

// answered receives everything that comes back to our reply subjects, on the connection's
// goroutine.
func (p *Partition) answered(m natsconn.Msg) {
	key := strings.TrimPrefix(m.Subject, p.replies)
	if id, marker := strings.CutPrefix(key, env.MarkerPrefix+"."); marker {
		n, err := strconv.ParseUint(id, 36, 64)
		if err == nil {
			p.loop.Post(func() { p.marked(n) })
		}
		return
	}
	if _, ok := m.FromStream(); ok {
		return // somebody keeps what deciders and workers are asked; these answer after it
	}
	nobody := m.NobodyListens()
	if !nobody && natsconn.Given(m.Reply, m.Header) != "" {
		return // workers know these subjects, and may name them for what the server gives out
	}
	if id, forward := strings.CutPrefix(key, passedPrefix+"."); forward {
		n, err := strconv.ParseUint(id, 36, 64)
		if err == nil && !nobody {
			p.loop.Post(func() { p.passed(n) })
		}
		return
	}
	if id, offer := strings.CutPrefix(key, dispatch.OfferPrefix+"."); offer {
		n, err := strconv.ParseUint(id, 36, 64)
		if err == nil {
			p.loop.Post(func() { p.dispatch.Refused(n, nobody) })
		}
		return
	}
	if id, call := strings.CutPrefix(key, probeWorkerPrefix+"."); call {
		n, err := strconv.ParseUint(id, 36, 64)
		if err == nil && nobody {
			p.loop.Post(func() { p.loop.After(leaveTaking, func() { p.workerGone(n) }) })
		}
		return
	}
	if former, probe := strings.CutPrefix(key, probePrefix+"."); probe {
		if nobody {
			p.loop.Post(func() { p.formerGone(former) })
		}
		return
	}
	id, err := strconv.ParseUint(key, 36, 64)
	if err != nil {
		return
	}
	if nobody {
		p.loop.Post(func() { p.nobody(id) })
		return
	}
	reply := &schemas.DecisionReply{}
	err = env.DecodeSent(m.Header, m.Data, reply)
	p.loop.Post(func() { p.replied(id, reply, m, err) })
}

// confirm sends the marker if the mailbox waits for it.
func (p *Partition) confirm(r *actor.Run) {
	if a := r.Decider.Ask; a != nil && !a.Confirmed && !a.Marked && len(r.Mailbox) > 0 {
		p.sendMarker(a)
	}
}

func (p *Partition) sendMarker(a *actor.Ask) {
	a.Marked = true
	if err := p.b.Conn.Publish(p.replies+env.MarkerPrefix+"."+strconv.FormatUint(a.ID, 36), nil, nil); err != nil {
		p.log.WithError(err).Warn("a marker cannot be sent")
	}
}

// marked: the request was taken, else the refusal would have come before the marker.
func (p *Partition) marked(id uint64) {
	r := p.asks[id]
	if r == nil || r.Decider.Ask == nil || r.Decider.Ask.ID != id || r.Decider.Ask.Confirmed {
		return
	}
	r.Decider.Ask.Confirmed = true
	p.step(r, &actor.Message{
		WorkflowID: r.WorkflowID,
		Event:      execution.Taken{},
		At:         r.Decider.Ask.At,
		Log:        noLog,
	})
	p.drain(r)
}

// sweepLater confirms decisions that take long, so that their DeciderStarted and its deadline are
// in the history.
func (p *Partition) sweepLater() {
	if p.sweeping {
		return
	}
	p.sweeping = true
	p.loop.After(deciders.ConfirmAfter, func() {
		p.sweeping = false
		old := p.now().Add(-schemas.Duration(deciders.ConfirmAfter))
		waiting := false
		for _, r := range p.asks {
			if a := r.Decider.Ask; a != nil && !a.Confirmed {
				waiting = true
				// A marker that was lost with its connection is sent again.
				if a.At <= old {
					p.sendMarker(a)
				}
			}
		}
		if waiting {
			p.sweepLater()
		}
	})
}

// nobody: no decider of the type listens, or the sticky worker is gone.
func (p *Partition) nobody(id uint64) {
	r := p.asks[id]
	if r == nil || r.Decider.Ask == nil || r.Decider.Ask.ID != id {
		return
	}
	a := r.Decider.Ask
	p.unask(r)
	if a.Sticky {
		p.deciders.Workers.NotHeard(r.Decider.Sticky, r.State.Start.WorkflowType)
		r.Decider.Sticky = ""
		p.mark(r)
		return
	}
	p.enterBacklog(r)
	p.drain(r)
	p.mark(r)
}

func (p *Partition) unask(r *actor.Run) {
	if r.Decider.Ask != nil {
		delete(p.asks, r.Decider.Ask.ID)
		r.Decider.Ask = nil
	}
}

// replied applies a decider's answer. What came before it goes first: a close must not overtake a
// signal.
func (p *Partition) replied(
	id uint64, reply *schemas.DecisionReply, m natsconn.Msg, undecodable error,
) {
	r := p.asks[id]
	if r == nil || r.Decider.Ask == nil || r.Decider.Ask.ID != id {
		if _, twice := p.twice[id]; twice {
			delete(p.twice, id)
			return
		}
		p.late(m)
		return
	}
	a := r.Decider.Ask
	if p.sealed() {
		p.passOn(a, m)
		return
	}
	e := &actor.Message{
		WorkflowID: r.WorkflowID,
		At:         p.now(),
		Log:        noLog,
		Subject:    m.Subject,
		Body:       m.Data,
	}
	if !a.Confirmed {
		a.Confirmed = true
		p.step(r, &actor.Message{
			WorkflowID: r.WorkflowID, Event: execution.Taken{Identity: reply.Identity}, At: a.At,
			Log: noLog,
		})
	}
	p.drain(r)
	if r.Decider.Ask != a { // what came before has ended this decision
		p.late(m)
		return
	}
	if r.Decider.Deferral.Waits() {
		p.noteLatency(r, true)
	}
	if r.Decider.Recalled != nil {
		r.Decider.Recalled.Answered(schemas.Duration(p.now().Sub(a.At)))
		p.endRecall(r)
	}
	p.unask(r)
	if undecodable != nil {
		p.bury(e, deadUndecodable, undecodable.Error())
		e.Event = execution.Refuse{
			Cause:  schemas.CauseInvalidDecision,
			Reason: "the reply cannot be decoded: " + undecodable.Error(),
		}
		r.Decider.Sticky, r.Decider.Reasks = "", 0
		p.deciders.Backlog.Announced(r.State.Start.WorkflowType)
		p.step(r, e)
		return
	}
	typ := r.State.Start.WorkflowType
	p.conclude(r, reply, a.Token, a.Former == "", e)
	if a.Former == "" && !a.Sticky {
		p.deciders.Workers.SharedAnswered(typ, reply.Sticky)
	}
}

// conclude applies a reply to the decision task with a token. One that was passed on by a former
// owner is not first-hand. e has its body, and becomes its message.
func (p *Partition) conclude(
	r *actor.Run, reply *schemas.DecisionReply, token string, firstHand bool, e *actor.Message,
) {
	r.Decider.Reasks = 0
	p.stick(r, reply, firstHand)
	p.deciders.Backlog.Announced(r.State.Start.WorkflowType)
	switch {
	case reply.Token != token:
		e.Event = execution.Refuse{
			Cause:    schemas.CauseInvalidDecision,
			Reason:   "the reply's token is not the one of the task; return it as it came",
			Identity: reply.Identity,
		}
	default:
		p.large.JudgeReply(r, reply, e, len(e.Body))
		return
	}
	p.step(r, e)
}

// late parks an answer that nobody waits for any more.
func (p *Partition) late(m natsconn.Msg) {
	p.bury(
		&actor.Message{Log: noLog, At: p.now(), Subject: m.Subject, Body: m.Data},
		execution.DeadLateDecision,
		"the decision came after its deadline, or was answered by another; the history has no trace of it",
	)
}

// expire forgets an ask whose decision has ended some other way: timed out, or closed with the run.
func (p *Partition) expire(r *actor.Run) {
	if a := r.Decider.Ask; a != nil && a.Confirmed &&
		(!r.Open() || r.State.Decision.Started != a.StartedID) {
		p.unask(r)
		if a.Sticky { // it may hang, or be dead while somebody else listens to its subject
			if r.Open() {
				p.deciders.Workers.Overdue(r.Decider.Sticky)
			}
			r.Decider.Sticky = ""
		}
	}
	if !r.Open() {
		p.leaveBacklog(r)
	}
}
