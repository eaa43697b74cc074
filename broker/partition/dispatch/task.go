package dispatch

import (
	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/partition/watermark"
	"github.com/droverhq/drover/schemas"
)

// Task offers an activity's task to idle workers, or puts it on its list: with store always that.
// With ask whoever gets it must ask before it begins: a worker may be at it. t is held until its
// message is stored, or its outcome is in the history.
func (d *Dispatch) Task(
	r *actor.Run, a *execution.Activity, t *watermark.Completion, store, ask bool,
) {
	if store {
		d.host.StoredAfter(r, a)
	}
	if store || !d.offerable(a) || !d.host.OfferAhead(r, a, t) {
		d.ToAnyone(r, a, t, store, ask)
	}
}

// ToAnyone is Task without a preference.
func (d *Dispatch) ToAnyone(
	r *actor.Run, a *execution.Activity, t *watermark.Completion, store, ask bool,
) {
	o := a.Scheduled
	task := d.ActivityTask(r, a, ask)
	body, err := schemas.MarshalJSON(&task)
	if err == nil && len(body) > d.Env.Largest() && len(task.HeartbeatDetails) > 0 {
		// the input alone fits
		task.HeartbeatDetails = nil
		d.Log.WithField("workflow", r.WorkflowID).WithField("activity", o.ActivityID).Warn(
			"the details of the last heartbeat do not fit the task beside its input; the attempt begins without")
		body, err = schemas.MarshalJSON(&task)
	}
	if err != nil {
		d.Log.WithError(err).WithField("workflow", r.WorkflowID).Error("a task cannot be encoded")
		return
	}
	if !store && d.offerable(a) && d.offer(r, a, body, t) {
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
	d.Send(d.Env.NS.Task(o.List, o.TaskPriority), o.List, nil, body, func(seq uint64) {
		d.Env.LookAtList(c.List, env.ListLook)
		if t.Release(); t == nil && r.State.Run == c.Run {
			// else the run has ended, and its count with it
			r.Tasks.Loose--
			d.host.Mark(r)
		}
		if c.Seq = seq; ask && seq > 0 {
			d.copied(r, c)
		}
	})
}

// ActivityTask is what the worker of an activity is told.
func (d *Dispatch) ActivityTask(
	r *actor.Run, a *execution.Activity, ask bool,
) schemas.ActivityTask {
	o := a.Scheduled
	task := schemas.ActivityTask{
		V: schemas.Version, Namespace: d.Env.Options.Namespace, WorkflowID: r.WorkflowID,
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
		Fence: d.host.Fence(), Report: d.Env.NS.ActOutcome(d.Partition, r.WorkflowID, o.List),
		Beat: d.Env.NS.Beat(
			d.Partition,
			r.WorkflowID,
			o.List,
		), StartToClose: max(o.StartToCloseTimeout, 0),
		Heartbeat: max(o.HeartbeatTimeout, 0),
	}
	if o.ScheduleToCloseTimeout.Limited() {
		task.CloseBy = a.ScheduledBase.Add(o.ScheduleToCloseTimeout)
	}
	if now := d.host.Now(); now.Sub(a.ScheduledBase) >= offerPatience/2 {
		task.DispatchedAt = now
	}
	return task
}
