package ahead

import (
	"crypto/rand"
	"errors"
	"slices"
	"strconv"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/decisions"
	"github.com/droverhq/drover/broker/partition/dispatch"
	"github.com/droverhq/drover/broker/partition/intake"
	"github.com/droverhq/drover/broker/partition/watermark"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/schemas"
)

// A sticky worker that also works the list of a quick task is offered that, with what the decision
// after it needs. It answers with the outcome and the decision that follows, and both become one
// record without a question (ADR 0031).
//
//   - The decision counts only if the run stands where it stood when the task was offered, so that
//     the history becomes what the worker assumed, event by event, with its times. They lie between
//     the last event and now by our clock, or the decision is dropped.
//   - What is dropped leaves no trace. The outcome is taken as any other, and the decider asked.
//   - The offer itself is one as all are: refused or late, the task goes another way.

// aheadType is a type of work, and who decides after it.
type aheadType struct{ workflow, activity string }

func aheadTypeOf(r *actor.Run, a *execution.Activity) aheadType {
	return aheadType{r.State.Start.WorkflowType, a.Scheduled.ActivityType}
}

var errWindowIncomplete = errors.New("the window is not whole")

// Offer tells whether an activity's task was offered to the worker that keeps the run.
func (ah *Ahead) Offer(r *actor.Run, a *execution.Activity, t *watermark.Completion) bool {
	if !ah.foreseeable(r, a) {
		return false
	}
	return ah.dispatch.SendOffer(r, a, t, func(f *actor.Offer) error {
		f.Ahead = &actor.Ahead{Worker: r.Decider.Sticky, Last: r.State.LastID}
		of := &actor.Ask{
			StartedID: f.Ahead.Last + schemas.AheadEvents, At: ah.host.Now(), Sticky: true,
		}
		// Random for each offer: a decider that is shown one knows nothing of those of other types.
		of.Token = r.State.Run + "." + strconv.FormatInt(of.StartedID, 10) + "." +
			strconv.FormatUint(ah.host.Fence(), 36) + "." + rand.Text()
		f.Ahead.Token = of.Token
		task := ah.decisions.Task(r, of, true)
		if task.More {
			return errWindowIncomplete
		}
		task.Deadline = 0
		ah.aheadTask = schemas.AheadTask{
			Task:      ah.dispatch.ActivityTask(r, a, false),
			At:        of.At,
			Scheduled: *r.State.NextDecider(ah.Env.Config()),
		}
		task.Ahead = &ah.aheadTask
		task.Ahead.Task.Input, task.Context = nil, nil // both stand in the window
		to := ah.Env.NS.DecideSticky(r.State.Start.WorkflowType, r.Decider.Sticky)
		return schemas.MarshalTo(task, func(body []byte) error {
			return ah.Env.Conn.PublishReply(to, ah.dispatch.OfferReply(f),
				natsconn.Header{schemas.AheadHeader: {a.Scheduled.List, a.Scheduled.ActivityType}},
				body)
		})
	})
}

// foreseeable tells whether it is known what follows the success of an activity, and who could
// decide upon it.
func (ah *Ahead) foreseeable(r *actor.Run, a *execution.Activity) bool {
	s := r.State
	if r.Decider.Sticky == "" ||
		!ah.decisions.Deciders.Workers.TakesTasks(r.Decider.Sticky, a.Scheduled.List) {
		return false
	}
	d := &s.Decision
	if a.ScheduledID <= d.Previous {
		return false // the window has no ActivityScheduled, from which the worker takes the input
	}
	if len(s.Activities) != 1 || a.Scheduled.NotIdempotent || d.Scheduled != 0 || d.Started != 0 ||
		s.Paused != nil || a.CancelRequested != 0 || d.Failures != 0 {
		return false
	}
	if len(r.Pending) > 0 || r.Inflight != nil || r.Decider.Asking.Open() || len(r.Mailbox) > 0 ||
		r.Window.From > d.Previous {
		return false
	}
	return len(s.Context)+runs.SizeOfAll(r.Window.Events) <=
		min(decisions.DeferSize, ah.Env.BodyLimit()/4) && !ah.vain.Skip(aheadTypeOf(r, a))
}

// Decide lets the outcome of a task happen together with the decision that its worker sent
// with it. It reports whether it has.
func (ah *Ahead) Decide(r *actor.Run, e *actor.Message) bool {
	f, reply := ah.foreseen(r, e)
	if f == nil {
		return false
	}
	token, last := f.Ahead.Token, f.Ahead.Last
	stands := r.State.LastID == last && len(r.Pending) == 0 && r.Inflight == nil &&
		r.Decider.Asking.None() && !ah.host.Leaving() &&
		r.State.LastTime <= e.Ahead.At && e.Ahead.At <= e.At
	ah.notedAhead(r, f.Activity, stands)
	if !stands {
		return false
	}
	e.At = e.Ahead.At
	ah.host.Happen(r, e)
	w, wanted := r.State.WantsDecider(ah.Env.Config())
	if !wanted || w.Started || w.NotBefore != 0 || w.StartedID != last+schemas.AheadEvents {
		return true
	}
	ah.host.Step(r, &actor.Message{
		WorkflowID: r.WorkflowID, Event: execution.Taken{Identity: reply.Identity}, At: e.At,
		Log: intake.None,
	})
	ah.decisions.Conclude(r, reply, token, true, &actor.Message{
		WorkflowID: r.WorkflowID,
		At:         e.At,
		Log:        intake.None,
		Subject:    e.Subject,
		Body:       e.Ahead.Reply,
	})
	return true
}

// foreseen finds the offer that a decision was sent for.
func (ah *Ahead) foreseen(r *actor.Run, e *actor.Message) (*actor.Offer, *schemas.DecisionReply) {
	m, ok := e.Event.(execution.Report)
	if !ok || e.Ahead == nil || m.Report.Kind != schemas.ReportSuccess {
		return nil, nil
	}
	i := slices.IndexFunc(r.Tasks.Offers,
		func(f *actor.Offer) bool { return f.Ahead != nil && f.Ahead.Token == e.Ahead.Token })
	if i < 0 {
		return nil, nil
	}
	f := r.Tasks.Offers[i]
	reply := &schemas.DecisionReply{}
	if a := r.State.Awaits(m); a == nil || a != f.Activity || a.Started != 0 || !f.Wanted() ||
		runs.Decode(e.Ahead.Reply, reply) != nil || reply.Error != nil {
		return nil, nil
	}
	return f, reply
}

// notedAhead notes whether it was worth deciding ahead. What was in vain is left to the ordinary
// way for a while.
func (ah *Ahead) notedAhead(r *actor.Run, a *execution.Activity, worth bool) {
	ah.vain.Note(aheadTypeOf(r, a), worth)
}

// Refused: the worker has no room, or has gone. Others may be idle.
func (ah *Ahead) Refused(f *actor.Offer, nobody bool) {
	ah.decisions.Deciders.Workers.Refused(f.Ahead.Worker, nobody, dispatch.BusyPause)
	ah.notedAhead(f.Run, f.Activity, false) // or it does not know the type
	if f.EndIsComing() {
		return
	}
	if f.Wanted() && f.Activity.Started == 0 && f.Run.Open() {
		ah.dispatch.ToAnyone(f.Run, f.Activity, f.Completion, false, false)
	}
	ah.host.Mark(f.Run)
	ah.dispatch.EndOffer(f)
}

// Stored: the message of an activity is stored. If its worker was to decide ahead it has
// announced the start, given the task back, or is silent.
func (ah *Ahead) Stored(r *actor.Run, a *execution.Activity) {
	for _, f := range r.Tasks.Offers {
		if f.Activity != a || f.Attempt != a.Attempt {
			continue
		}
		f.Stored = true
		if f.Ahead != nil {
			ah.notedAhead(r, a, false)
		}
	}
}
