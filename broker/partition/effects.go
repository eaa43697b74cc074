package partition

import (
	"context"
	"errors"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/broker/dead"
	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/partition/keyed"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
)

// refusedListKept is longer than the try that follows a refusal may take.
const refusedListKept = time.Minute

// perform does one effect of a committed step. t is held until it is acknowledged.
func (p *Partition) perform(r *actor.Run, e actor.Effect, t *completion) {
	switch f := e.Effect.(type) {
	case execution.Dispatch:
		if r.Open() {
			if a := r.State.Activities[f.ScheduledID]; a != nil {
				p.dispatch(r, a, t, f.Store, a.Started != 0)
			}
		}
	case execution.Permit:
		p.permit(f)
	case execution.Dead:
		p.buryUntold(r, e.Cause, f)
	case execution.Inquire:
		p.inquire(r, f)
	case execution.CancelRunning:
		p.control(f)
	case execution.EnterLock:
		if l := r.State.LockOf(f.Key, f.Asked); l != nil && r.Open() {
			p.keys.EnterLock(r, l, t, e.Cause == nil)
		}
	case execution.AskState:
		if q := r.State.Requests[f.ScheduledID]; q != nil && r.Open() {
			p.keys.AskState(r, q, t, e.Cause == nil)
		}
	case execution.LeaveLock:
		p.keys.LeaveLock(f.Lock, f.Scope, keyed.Place{WorkflowID: r.WorkflowID, Asked: f.Asked}, t, e.Cause == nil)
	default:
		p.exchange(r.State, e, t)
	}
}

// dispatch offers an activity's task to idle workers, or puts it on its list. With ask whoever gets
// it must ask before it begins: a worker may be at it.
func (p *Partition) dispatch(r *actor.Run, a *execution.Activity, t *completion, store, ask bool) {
	if store {
		p.storedAfter(r, a)
	}
	if store || !p.offerable(a) || !p.offerAhead(r, a, t) {
		p.dispatchAnyone(r, a, t, store, ask)
	}
}

// dispatchAnyone is dispatch without a preference.
func (p *Partition) dispatchAnyone(
	r *actor.Run, a *execution.Activity, t *completion, store, ask bool,
) {
	o := a.Scheduled
	task := p.activityTask(r, a, ask)
	body, err := schemas.MarshalJSON(&task)
	if err == nil && len(body) > p.b.Largest() && len(task.HeartbeatDetails) > 0 {
		// the input alone fits
		task.HeartbeatDetails = nil
		p.log.WithField("workflow", r.WorkflowID).WithField("activity", o.ActivityID).Warn(
			"the details of the last heartbeat do not fit the task beside its input; the attempt begins without")
		body, err = schemas.MarshalJSON(&task)
	}
	if err != nil {
		p.log.WithError(err).WithField("workflow", r.WorkflowID).Error("a task cannot be encoded")
		return
	}
	if !store && p.offerable(a) && p.offer(r, a, body, t) {
		return
	}
	if t.Retain(); t == nil {
		r.Tasks.Loose++
	}
	c := actor.TaskCopy{
		Run:       r.State.Run,
		List:      o.List,
		Scheduled: a.ScheduledID,
		Attempt:   a.Attempt,
	}
	p.send(p.b.NS.Task(o.List, o.TaskPriority), o.List, nil, body, func(seq uint64) {
		p.b.LookAtList(c.List, env.ListLook)
		if t.Release(); t == nil && r.State.Run == c.Run {
			// else the run has ended, and its count with it
			r.Tasks.Loose--
			p.mark(r)
		}
		if c.Seq = seq; ask && seq > 0 {
			p.copied(r, c)
		}
	})
}

// activityTask is what the worker of an activity is told.
func (p *Partition) activityTask(
	r *actor.Run, a *execution.Activity, ask bool,
) schemas.ActivityTask {
	o := a.Scheduled
	task := schemas.ActivityTask{
		V: schemas.Version, Namespace: p.b.Options.Namespace, WorkflowID: r.WorkflowID,
		Run: r.State.Run, WorkflowType: r.State.Start.WorkflowType, ActivityID: o.ActivityID,
		Type: o.ActivityType, TypeVersion: o.ActivityTypeVersion, Input: o.Input, List: o.List,
		Attempt: a.Attempt, ScheduledEventID: a.ScheduledID, ScheduledAt: a.ScheduledBase,
		NotIdempotent:  o.NotIdempotent || ask,
		IdempotencyKey: execution.Token(r.State.Run, a.ScheduledID, 0),
		Token: execution.Token(
			r.State.Run,
			a.ScheduledID,
			a.Attempt,
		), HeartbeatDetails: a.Resume,
		Fence: p.fence, Report: p.b.NS.ActOutcome(p.n, r.WorkflowID, o.List),
		Beat: p.b.NS.Beat(p.n, r.WorkflowID, o.List), StartToClose: max(o.StartToCloseTimeout, 0),
		Heartbeat: max(o.HeartbeatTimeout, 0),
	}
	if o.ScheduleToCloseTimeout.Limited() {
		task.CloseBy = a.ScheduledBase.Add(o.ScheduleToCloseTimeout)
	}
	if now := p.now(); now.Sub(a.ScheduledBase) >= offerPatience/2 {
		task.DispatchedAt = now
	}
	return task
}

// send publishes outside the history until it is acknowledged, then calls done with the sequence; 0
// if the message was there already. A task list whose stream is missing is made first.
func (p *Partition) send(subj, list string, h natsconn.Header, body []byte, done func(seq uint64)) {
	p.sendUntil(subj, list, h, body, done, func(again func()) { again() })
}

// sendUntil is send for what may be wrong to publish again, since what became of the first is not
// known: retry is called in place of that, and calls again if it is to be.
func (p *Partition) sendUntil(
	subj, list string, h natsconn.Header, body []byte, done func(seq uint64),
	retry func(again func()),
) {
	if !p.canWrite() {
		return
	}
	p.sends++
	p.outside.Send(subj, h, body, func(a natsconn.Ack) {
		p.loop.Post(func() {
			p.sends--
			again := func() { p.sendUntil(subj, list, h, body, done, retry) }
			var exists *natsconn.SequenceError
			switch {
			case a.Err == nil || errors.As(a.Err, &exists): // already there: it is written once
				done(a.Seq)
			case errors.Is(a.Err, natsconn.ErrNoStream) && list != "":
				p.openList(list, again)
			default:
				p.log.WithError(a.Err).WithField("subject", subj).
					Warn("not acknowledged; publishing again")
				p.loop.After(env.EffectRetry, func() { retry(again) })
			}
		})
	})
}

// openList makes the stream of a task list; whoever asks meanwhile waits for the same answer.
func (p *Partition) openList(list string, then func()) {
	p.missingStreams[list] = append(p.missingStreams[list], then)
	if len(p.missingStreams[list]) > 1 {
		return
	}
	env.WriteAsync(p.b, p.loop, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, p.b.EnsureList(ctx, list)
	}, func(_ struct{}, err error) {
		waiting, before := p.missingStreams[list], p.refusedLists[list]
		delete(p.missingStreams, list)
		delete(p.refusedLists, list)
		delay := time.Duration(0)
		if err != nil {
			p.refuseList(list, err)
			level := logrus.ErrorLevel
			if before != nil && before.err.Error() == err.Error() {
				// told already: somebody must change something first
				level = logrus.DebugLevel
			}
			p.log.WithError(err).
				WithField("list", list).Log(level, "the task list cannot be made; trying again")
			delay = 5 * env.EffectRetry
		}
		for _, f := range waiting {
			p.loop.After(delay, f)
		}
	})
}

// refusedList is why a list could not be made the last time.
type refusedList struct{ err error }

// refuseList remembers it for as long as somebody may try again: those who do so no more leave
// nothing after.
func (p *Partition) refuseList(list string, err error) {
	r := &refusedList{err}
	p.refusedLists[list] = r
	p.loop.After(refusedListKept, func() {
		if p.refusedLists[list] == r {
			delete(p.refusedLists, list)
		}
	})
}

func (p *Partition) permit(f execution.Permit) {
	if !subject.Answerable(f.To) {
		return
	}
	permission := f.Permission
	permission.V = schemas.Version
	body, err := schemas.MarshalJSON(&permission)
	if err == nil {
		err = p.b.Conn.Publish(f.To, nil, body)
	}
	if err != nil {
		p.log.WithError(err).Warn("a worker's question cannot be answered; it will ask again")
	}
}

// bury parks a message that cannot be applied. The entry's subject tells where the message stood,
// so it is written once, however often the message is read. The message's position waits for it.
func (p *Partition) bury(e *actor.Message, reason, details string) {
	p.log.WithField("subject", e.Subject).WithField("reason", reason).
		Warn("dead letter: " + details)
	p.letters.Note(e.WorkflowID, e.Event, e.At, reason, details)
	letter := schemas.DeadLetter{
		Reason: reason, Details: details, Subject: e.Subject, Time: e.Stored(), Body: e.Body,
	}
	place := p.place(e)
	subj, h, body, err := dead.Compose(p.b.NS, place, letter, p.b.Conn.MaxPayload())
	if err != nil {
		p.log.WithError(err).Error("a dead letter cannot be encoded")
		e.Judged()
		return
	}
	natsconn.ExpectNone(h, p.b.NS.DeadAt(place.Tokens()...))
	e.Completion.Retain()
	p.send(subj, "", h, body, func(uint64) { e.Judged(); e.Completion.Release() })
}
