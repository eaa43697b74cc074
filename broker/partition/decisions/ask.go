package decisions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/droverhq/drover/broker/dead"
	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/deciders"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/partition/intake"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/schemas"
)

// mostTwice bounds the questions whose second answer is expected. That of others becomes a dead
// letter.
const mostTwice = 4096

// Consult asks the decider if one is wanted. Everything is committed: what the decider sees is in
// the history.
func (ds *Decisions) Consult(r *actor.Run) {
	if !r.Decider.Asking.None() || ds.host.Leaving() {
		return
	}
	w, wanted := r.State.WantsDecider(ds.Env.Config())
	if !wanted {
		return
	}
	if wait := w.NotBefore.Sub(ds.host.Now()); w.NotBefore != 0 && wait > 0 {
		ds.backOff(r, wait)
		return
	}
	if r.Window.From > r.State.Decision.Previous {
		ds.LoadWindow(r)
		return
	}
	ds.route(r, false)
	ds.request(r, w)
}

// WantsNow tells whether the decider would be asked if the run stood still.
func (ds *Decisions) WantsNow(r *actor.Run) bool {
	if !r.Decider.Asking.None() || !r.Open() {
		return false
	}
	w, wanted := r.State.WantsDecider(ds.Env.Config())
	return wanted && w.NotBefore <= ds.host.Now()
}

func (ds *Decisions) backOff(r *actor.Run, wait time.Duration) {
	if r.Decider.BackingOff {
		return
	}
	r.Decider.BackingOff = true
	ds.Loop.After(wait, func() {
		r.Decider.BackingOff = false
		ds.host.Mark(r)
	})
}

// LoadWindow reads the events that the window needs and the snapshot did not bring.
func (ds *Decisions) LoadWindow(r *actor.Run) {
	r.Load.Begin()
	previous, upTo, id := r.State.Decision.Previous, r.Window.From, r.State.Run
	env.ReadAsync(ds.Env, ds.Loop, func(ctx context.Context) ([]schemas.Event, error) {
		events, _, err := ds.Env.Histories.Events(ctx, ds.Partition, r.WorkflowID, id,
			runs.Span{After: previous, UpTo: upTo, Least: upTo})
		return events, err
	}, func(events []schemas.Event, err error) {
		if err == nil && int64(len(events)) != upTo-previous {
			err = fmt.Errorf("%w: %d events between %d and %d",
				runs.ErrDamaged, len(events), previous, upTo)
		}
		if err != nil {
			ds.host.Unread(r, err, func() {
				if r.Load.IsUnreadable() {
					ds.LoadWindow(r)
					return
				}
				r.Load.End()
				ds.host.Mark(r)
			})
			return
		}
		if !ds.host.IsIntact(r) {
			return
		}
		r.Window.Events, r.Window.From = append(events, r.Window.Events...), previous
		r.Load.End()
		ds.host.Loaded(r)
	})
}

// errWindowTooLarge says that a decision task does not fit a message as it is.
var errWindowTooLarge = errors.New("the window does not fit")

// request sends the decision task: to the worker that answered last if it asked for that, else to
// whoever listens.
func (ds *Decisions) request(r *actor.Run, w execution.Wanted) {
	if !ds.host.CanWrite() {
		return
	}
	ds.nextAsk++
	a := &actor.Ask{
		ID: ds.nextAsk, StartedID: w.StartedID, At: ds.host.Now(), Sticky: r.Decider.Sticky != "",
	}
	a.Token = r.State.Run + "." + strconv.FormatInt(a.StartedID, 10) + "." +
		strconv.FormatUint(ds.host.Fence(), 36) + "." + strconv.FormatUint(a.ID, 36)
	subj, encode := ds.Env.NS.Decide(r.State.Start.WorkflowType), schemas.MarshalJSONTo
	if a.Sticky {
		subj, encode = ds.Env.NS.DecideSticky(r.State.Start.WorkflowType, r.Decider.Sticky),
			schemas.MarshalTo
	}
	task := ds.Task(r, a, w.Started)
	send := func(body []byte) error {
		if len(body) > ds.Env.Largest() && len(task.Events) > 0 {
			return errWindowTooLarge
		}
		r.Decider.Sent(a, w.Started)
		r.Decider.Queued = false
		ds.Asks[a.ID] = r
		reply := ds.host.Replies() + strconv.FormatUint(a.ID, 36)
		if err := ds.Env.Conn.PublishReply(subj, reply, nil, body); err != nil {
			ds.Log.WithError(err).Warn("a decision task cannot be sent")
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
		ds.Log.WithError(err).WithField("workflow", r.WorkflowID).
			Error("a decision task cannot be encoded")
		return
	}
	ds.sweepLater()
	ds.host.ScheduleProbes(deciders.ProbeAfter)
}

// Task builds what the decider is asked, on the scratch. The window ends with the DeciderStarted
// that the answer will bring, unless the decision has started already.
func (ds *Decisions) Task(r *actor.Run, a *actor.Ask, started bool) *schemas.DecisionTask {
	d, t := &r.State.Decision, &ds.scratch.task
	*t = schemas.DecisionTask{
		V: schemas.Version, Namespace: ds.Env.Options.Namespace, WorkflowID: r.WorkflowID,
		Run: r.State.Run, Type: r.State.Start.WorkflowType,
		TypeVersion: r.State.Start.WorkflowTypeVersion, PreviousStartedID: d.Previous,
		StartedID: a.StartedID, Token: a.Token, Context: r.State.Context, Attempt: d.Failures + 1,
		StartMode: r.State.Start.Mode(),
	}
	t.EventsLeft = ds.Env.Config().EventsLeft(r.State.LastID)
	t.ContinueReasons = continueReasons(r.State, t.EventsLeft)
	t.SuggestContinueAsNew = len(t.ContinueReasons) > 0
	t.Deadline = ds.answerBy(r, a)
	t.StartedAt = startedAt(r, a, started)
	if r.State.Base.CompletedID != 0 {
		ds.scratch.base = r.State.Base
		t.Base = &ds.scratch.base
	}
	quota := ds.Env.BodyLimit()/2 - len(t.Context)
	events := ds.scratch.emptyEvents()
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
	if !started && !t.More {
		ds.scratch.started = schemas.DeciderStarted{ScheduledEventID: d.Scheduled}
		events = append(events, schemas.Event{
			ID: a.StartedID, Time: t.StartedAt, Attributes: &ds.scratch.started,
		})
	}
	ds.scratch.setEvents(events)
	return t
}

// startedAt is the time of the DeciderStarted that the answer to an ask will bring, or that the
// history has; 0 if neither is so.
func startedAt(r *actor.Run, a *actor.Ask, started bool) schemas.Timestamp {
	if !started {
		return max(a.At, r.State.LastTime)
	}
	for e := range r.Unseen() {
		if e.ID == a.StartedID {
			return e.Time
		}
	}
	return 0
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
func (ds *Decisions) answerBy(r *actor.Run, a *actor.Ask) schemas.Timestamp {
	switch limit := r.State.Start.TaskStartToCloseTimeout; {
	case limit.Limited():
		return a.At.Add(limit)
	case limit == 0:
		return a.At.Add(ds.Env.Config().DeciderTimeout)
	}
	return 0
}

// Confirm sends the marker if the mailbox waits for it.
func (ds *Decisions) Confirm(r *actor.Run) {
	if r.Decider.Asking.Unconfirmed() && !r.Decider.Ask.Marked && len(r.Mailbox) > 0 {
		ds.SendMarker(r.Decider.Ask)
	}
}

func (ds *Decisions) SendMarker(a *actor.Ask) {
	a.Marked = true
	if err := ds.Env.Conn.Publish(ds.host.Replies()+env.MarkerPrefix+"."+strconv.FormatUint(a.ID, 36),
		nil, nil); err != nil {
		ds.Log.WithError(err).Warn("a marker cannot be sent")
	}
}

// Marked: the request was taken, else the refusal would have come before the marker.
func (ds *Decisions) Marked(id uint64) {
	r := ds.Asks[id]
	if r == nil || r.Decider.Ask == nil || r.Decider.Ask.ID != id || r.Decider.Asking.Confirmed() {
		return
	}
	r.Decider.Taken()
	ds.host.Step(r, &actor.Message{
		WorkflowID: r.WorkflowID,
		Event:      execution.Taken{},
		At:         r.Decider.Ask.At,
		Log:        intake.None,
	})
	ds.host.Drain(r)
}

// sweepLater confirms decisions that take long, so that their DeciderStarted and its deadline are
// in the history.
func (ds *Decisions) sweepLater() {
	if ds.sweeping {
		return
	}
	ds.sweeping = true
	ds.Loop.After(deciders.ConfirmAfter, func() {
		ds.sweeping = false
		old := ds.host.Now().Add(-schemas.Duration(deciders.ConfirmAfter))
		waiting := false
		for _, r := range ds.Asks {
			if r.Decider.Asking.Unconfirmed() {
				waiting = true
				// A marker that was lost with its connection is sent again.
				if a := r.Decider.Ask; a.At <= old {
					ds.SendMarker(a)
				}
			}
		}
		if waiting {
			ds.sweepLater()
		}
	})
}

// Nobody: no decider of the type listens, or the sticky worker is gone.
func (ds *Decisions) Nobody(id uint64) {
	r := ds.Asks[id]
	if r == nil || r.Decider.Ask == nil || r.Decider.Ask.ID != id {
		return
	}
	a := r.Decider.Ask
	ds.unask(r)
	if a.Sticky {
		ds.Deciders.Workers.NotHeard(r.Decider.Sticky, r.State.Start.WorkflowType)
		r.Decider.Sticky = ""
		ds.host.Mark(r)
		return
	}
	ds.enterBacklog(r)
	ds.host.Drain(r)
	ds.host.Mark(r)
}

func (ds *Decisions) unask(r *actor.Run) {
	if r.Decider.Ask != nil {
		delete(ds.Asks, r.Decider.Ask.ID)
		r.Decider.Over()
	}
}

// Replied applies a decider's answer. What came before it goes first: a close must not overtake a
// signal.
func (ds *Decisions) Replied(
	id uint64, reply *schemas.DecisionReply, m natsconn.Msg, undecodable error,
) {
	r := ds.Asks[id]
	if r == nil || r.Decider.Ask == nil || r.Decider.Ask.ID != id {
		if _, twice := ds.twice[id]; twice {
			delete(ds.twice, id)
			return
		}
		ds.late(m)
		return
	}
	a := r.Decider.Ask
	if ds.host.Sealed() {
		ds.passOn(a, m)
		return
	}
	e := &actor.Message{
		WorkflowID: r.WorkflowID,
		At:         ds.host.Now(),
		Log:        intake.None,
		Subject:    m.Subject,
		Body:       m.Data,
	}
	if !r.Decider.Asking.Confirmed() {
		r.Decider.Taken()
		ds.host.Step(r, &actor.Message{
			WorkflowID: r.WorkflowID, Event: execution.Taken{Identity: reply.Identity}, At: a.At,
			Log: intake.None,
		})
	}
	ds.host.Drain(r)
	if r.Decider.Ask != a { // what came before has ended this decision
		ds.late(m)
		return
	}
	if r.Decider.Deferral.Waits() {
		ds.noteLatency(r, true)
	}
	if r.Decider.Recalled != nil {
		r.Decider.Recalled.Answered(schemas.Duration(ds.host.Now().Sub(a.At)))
		ds.EndRecall(r)
	}
	ds.unask(r)
	if undecodable != nil {
		ds.host.Bury(e, dead.ReasonUndecodable, undecodable.Error())
		e.Event = execution.Refuse{
			Cause:  schemas.CauseInvalidDecision,
			Reason: "the reply cannot be decoded: " + undecodable.Error(),
		}
		r.Decider.Sticky, r.Decider.Reasks = "", 0
		ds.Deciders.Backlog.Announced(r.State.Start.WorkflowType)
		ds.host.Step(r, e)
		return
	}
	typ := r.State.Start.WorkflowType
	ds.Conclude(r, reply, a.Token, a.Former == "", e)
	if a.Former == "" && !a.Sticky {
		ds.Deciders.Workers.SharedAnswered(typ, reply.Sticky)
	}
}

// Conclude applies a reply to the decision task with a token. One that was passed on by a former
// owner is not first-hand. e has its body, and becomes its message.
func (ds *Decisions) Conclude(
	r *actor.Run, reply *schemas.DecisionReply, token string, firstHand bool, e *actor.Message,
) {
	r.Decider.Reasks = 0
	asked := r.Decider.Sticky
	ds.stick(r, reply, firstHand)
	ds.avoid(r, reply, asked)
	ds.Deciders.Backlog.Announced(r.State.Start.WorkflowType)
	switch {
	case reply.Token != token:
		e.Event = execution.Refuse{
			Cause:    schemas.CauseInvalidDecision,
			Reason:   "the reply's token is not the one of the task; return it as it came",
			Identity: reply.Identity,
		}
	default:
		ds.host.JudgeReply(r, reply, e, len(e.Body))
		return
	}
	ds.host.Step(r, e)
}

// late parks an answer that nobody waits for any more.
func (ds *Decisions) late(m natsconn.Msg) {
	ds.host.Bury(
		&actor.Message{
			Log: intake.None, At: ds.host.Now(), Subject: m.Subject, Body: m.Data,
		},
		execution.DeadLateDecision,
		"the decision came after its deadline, or was answered by another; the history has no trace of it",
	)
}

// Expire forgets an ask whose decision has ended some other way: timed out, or closed with the run.
func (ds *Decisions) Expire(r *actor.Run) {
	if a := r.Decider.Ask; r.Decider.Asking.Confirmed() &&
		(!r.Open() || r.State.Decision.Started != a.StartedID) {
		ds.unask(r)
		if a.Sticky { // it may hang, or be dead while somebody else listens to its subject
			if r.Open() {
				ds.Deciders.Workers.Overdue(r.Decider.Sticky)
			}
			r.Decider.Sticky = ""
		}
	}
	if !r.Open() {
		ds.LeaveBacklog(r)
	}
}

// AskAgain sends a decision task to whoever listens, though somebody may be at it.
func (ds *Decisions) AskAgain(r *actor.Run) {
	a := r.Decider.Ask
	r.Decider.Sticky, a.Sticky = "", false
	if r.Window.From > r.State.Decision.Previous { // the window must be read first
		ds.unask(r)
		ds.host.Mark(r)
		return
	}
	body, err := schemas.MarshalJSON(ds.Task(r, a, r.Decider.Asking.Confirmed()))
	if err != nil {
		ds.Log.WithError(err).WithField("workflow", r.WorkflowID).
			Error("a decision task cannot be encoded")
		return
	}
	if ds.twice == nil || len(ds.twice) >= mostTwice {
		ds.twice = make(map[uint64]struct{})
	}
	ds.twice[a.ID] = struct{}{}
	if err := ds.Env.Conn.PublishReply(ds.Env.NS.Decide(r.State.Start.WorkflowType),
		ds.host.Replies()+strconv.FormatUint(a.ID, 36), nil, body); err != nil {
		ds.Log.WithError(err).Warn("a decision task cannot be sent")
	}
}
