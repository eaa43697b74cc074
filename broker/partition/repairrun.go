package partition

import (
	"time"

	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/schemas"
)

const VerbRepair = "repair"

// repairWait is how long a repair may wait for the commits of a run.
const repairWait = schemas.Duration(5 * time.Second)

// repair repeats every open effect of a run: its tasks, its alarm, the question to its decider, its
// messages to other workflows. Those who receive one twice recognise it, so it does no harm to a
// run that lacks nothing. It waits for the run's commits: an effect never precedes its record.
func (p *Partition) repair(q *schemas.ExecutionRequest, reply func(any)) {
	refuse := func(e *schemas.Error) { reply(&schemas.AckResponse{V: schemas.Version, Error: e}) }
	r := p.cache.Get(q.WorkflowID)
	p.repairWhen(r, reply, func() {
		switch {
		case !r.Live():
			refuse(env.NotFound(q.WorkflowID, ""))
			return
		case q.Run != "" && q.Run != r.State.Run:
			refuse(schemas.Errorf(schemas.CodeConflict, "run %s is not the latest of workflow %q",
				q.Run, r.WorkflowID).About(r.WorkflowID, r.State.Run).
				WithHint("leave the run out to repair the latest"))
			return
		}
		p.wait(r, repairWait, (*actor.Run).IsSettled, func(r *actor.Run) {
			if !r.IsSettled() {
				refuse(schemas.Errorf(schemas.CodeUnavailable, "workflow %q is busy", r.WorkflowID).
					About(r.WorkflowID, r.State.Run).
					WithHint("it moves, so it may need no repair; look again"))
				return
			}
			p.Log.WithField("workflow", r.WorkflowID).WithField("run", r.State.Run).WithField("by",
				q.Identity).WithField("reason", q.Reason).
				Info("repeating the open effects of a run")
			p.repairRun(r)
			reply(&schemas.AckResponse{V: schemas.Version, Run: r.State.Run})
		})
	})
}

// repairWhen runs f once the run is loaded. One whose history could not be followed is read again
// now: it may have been restored.
func (p *Partition) repairWhen(r *actor.Run, reply func(any), f func()) {
	if !r.Load.IsUnreadable() {
		p.whenSound(r, reply, f)
		return
	}
	r.Then = append(r.Then, actor.Awaited{
		Run:    f,
		Broken: func() { reply(&schemas.AckResponse{V: schemas.Version, Error: damagedError(r)}) },
	})
	p.cache.LookNow(r)
}

func (p *Partition) repairRun(r *actor.Run) {
	for _, e := range r.State.OpenEffects(p.now()) {
		p.perform(r, actor.Effect{Effect: e}, nil)
	}
	p.keys.JudgeLocksOf(r)
	p.decisions.LeaveBacklog(r) // ask again: a decider may listen by now
	if r.Alarm.Way == nil {
		r.Alarm.Due = 0 // what was armed may be gone; arming it again finds out
	}
	p.mark(r)
}
