package partition

import (
	"crypto/rand"
	"errors"
	"slices"
	"strconv"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/natsconn"
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

func aheadTypeOf(r *run, a *execution.Activity) aheadType {
	return aheadType{r.state.Start.WorkflowType, a.Scheduled.ActivityType}
}

var errWindowIncomplete = errors.New("the window is not whole")

// offerAhead tells whether an activity's task was offered to the worker that keeps the run.
func (p *Partition) offerAhead(r *run, a *execution.Activity, t *completion) bool {
	if !p.foreseeable(r, a) {
		return false
	}
	return p.sendOffer(r, a, t, func(f *offer) error {
		f.ahead = &ahead{worker: r.sticky, last: r.state.LastID}
		of := &ask{
			startedID: f.ahead.last + schemas.AheadEvents, at: p.now(), sticky: true,
			confirmed: true,
		}
		// Random for each offer: a decider that is shown one knows nothing of those of other types.
		of.token = r.state.Run + "." + strconv.FormatInt(of.startedID, 10) + "." +
			strconv.FormatUint(p.fence, 36) + "." + rand.Text()
		f.ahead.token = of.token
		task := p.task(r, of)
		if task.More {
			return errWindowIncomplete
		}
		task.Deadline = 0
		p.scratch.ahead = schemas.AheadTask{
			Task:      p.activityTask(r, a, false),
			At:        of.at,
			Scheduled: *r.state.NextDecider(p.b.Config()),
		}
		task.Ahead = &p.scratch.ahead
		task.Ahead.Task.Input, task.Context = nil, nil // both stand in the window
		to := p.b.NS.DecideSticky(r.state.Start.WorkflowType, r.sticky)
		return schemas.MarshalTo(task, func(body []byte) error {
			return p.b.Conn.PublishReply(to, p.offerReply(f),
				natsconn.Header{schemas.AheadHeader: {a.Scheduled.List, a.Scheduled.ActivityType}},
				body)
		})
	})
}

// foreseeable tells whether it is known what follows the success of an activity, and who could
// decide upon it.
func (p *Partition) foreseeable(r *run, a *execution.Activity) bool {
	s := r.state
	if r.sticky == "" || !p.deciders.Workers.TakesTasks(r.sticky, a.Scheduled.List) {
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
	if len(r.pending) > 0 || r.inflight != nil || r.ask != nil || len(r.mailbox) > 0 ||
		r.windowFrom > d.Previous {
		return false
	}
	return len(s.Context)+runs.SizeOfAll(r.window) <= min(deferSize, p.b.BodyLimit()/4) &&
		!p.vain.Skip(aheadTypeOf(r, a))
}

// decideAhead lets the outcome of a task happen together with the decision that its worker sent
// with it. It reports whether it has.
func (p *Partition) decideAhead(r *run, e *message) bool {
	f, reply := p.foreseen(r, e)
	if f == nil {
		return false
	}
	token, last := f.ahead.token, f.ahead.last
	stands := r.state.LastID == last && len(r.pending) == 0 && r.inflight == nil && r.ask == nil &&
		!r.noPoller && p.leaving == nil && r.state.LastTime <= e.ahead.At && e.ahead.At <= e.at
	p.notedAhead(r, f.activity, stands)
	if !stands {
		return false
	}
	e.at = e.ahead.At
	p.happen(r, e)
	w, wanted := r.state.WantsDecider(p.b.Config())
	if !wanted || w.Started || w.NotBefore != 0 || w.StartedID != last+schemas.AheadEvents {
		return true
	}
	p.step(r, &message{
		wid: r.wid, event: execution.Taken{Identity: reply.Identity}, at: e.at, log: noLog,
	})
	p.conclude(r, reply, token, true,
		&message{wid: r.wid, at: e.at, log: noLog, subject: e.subject, body: e.ahead.Reply})
	return true
}

// foreseen finds the offer that a decision was sent for.
func (p *Partition) foreseen(r *run, e *message) (*offer, *schemas.DecisionReply) {
	m, ok := e.event.(execution.Report)
	if !ok || e.ahead == nil || m.Report.Kind != schemas.ReportSuccess {
		return nil, nil
	}
	i := slices.IndexFunc(r.offers,
		func(f *offer) bool { return f.ahead != nil && f.ahead.token == e.ahead.Token })
	if i < 0 {
		return nil, nil
	}
	f := r.offers[i]
	reply := &schemas.DecisionReply{}
	if a := r.state.Awaits(m); a == nil || a != f.activity || a.Started != 0 || !f.wanted() ||
		runs.Decode(e.ahead.Reply, reply) != nil || reply.Error != nil {
		return nil, nil
	}
	return f, reply
}

// notedAhead notes whether it was worth deciding ahead. What was in vain is left to the ordinary
// way for a while.
func (p *Partition) notedAhead(r *run, a *execution.Activity, worth bool) {
	p.vain.Note(aheadTypeOf(r, a), worth)
}

// refusedAhead: the worker has no room, or has gone. Others may be idle.
func (p *Partition) refusedAhead(f *offer, nobody bool) {
	p.deciders.Workers.Refused(f.ahead.worker, nobody, busyPause)
	p.notedAhead(f.run, f.activity, false) // or it does not know the type
	if f.endIsComing() {
		return
	}
	if f.wanted() && f.activity.Started == 0 && f.run.open() {
		p.dispatchAnyone(f.run, f.activity, f.completion, false, false)
	}
	p.mark(f.run)
	p.endOffer(f)
}

// storedAfter: the message of an activity is stored. If its worker was to decide ahead it has
// announced the start, given the task back, or is silent.
func (p *Partition) storedAfter(r *run, a *execution.Activity) {
	for _, f := range r.offers {
		if f.activity != a || f.attempt != a.Attempt {
			continue
		}
		f.stored = true
		if f.ahead != nil {
			p.notedAhead(r, a, false)
		}
	}
}
