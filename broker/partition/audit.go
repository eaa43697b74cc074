package partition

import (
	"context"
	"time"

	"github.com/droverhq/drover/broker/explain"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/schemas"
)

const (
	VerbAudit  = "audit"
	VerbRepair = "repair"
	// auditBudget bounds the open activities and children of one answer; a run alone may have more.
	auditBudget = 1500
	// repairWait is how long a repair may wait for the commits of a run.
	repairWait = schemas.Duration(5 * time.Second)
)

// audit answers for workflows of the partition. Those that are not in memory are read by one reader
// and forgotten again (auditunread.go): an audit of all open runs must not push those out that are
// at work, nor take all readers.
func (p *Partition) audit(q *schemas.AuditRequest, reply func(any)) {
	a := &schemas.AuditResponse{
		V: schemas.Version, Partition: p.n, Owner: p.b.Options.Node, Time: p.now(),
		Recovering: p.recovering(), Inbox: p.intake.Logs[inboxLog].At(),
		Runs: make([]schemas.AuditRun, 0, len(q.Workflows)),
	}
	var unread []unread
	for quota, i := auditBudget, 0; i < len(q.Workflows) && (quota > 0 || i == 0); i++ {
		wid := q.Workflows[i]
		run := schemas.AuditRun{WorkflowID: wid}
		if r := p.runs[wid]; r == nil {
			unread = append(unread, p.unreadOf(q, i))
			quota -= 4 // most are small
		} else {
			run = p.audited(r)
			run.RequestIDsSince = p.repeats.Since(wid)
			quota -= len(run.Activities) + len(run.Children) + len(run.Locks)
		}
		a.Runs = append(a.Runs, run)
	}
	if len(unread) == 0 {
		reply(a)
		return
	}
	p.b.Scans.Enter("audit", func(done func()) {
		p.b.Answering.Run(func() {
			defer done()
			ctx, cancel := context.WithTimeout(p.b.Background, env.ReadTimeout)
			defer cancel()
			p.auditUnread(ctx, unread, a.Runs)
			reply(a)
		})
	}, func() { reply(&schemas.AuditResponse{V: schemas.Version, Error: runs.TooMany()}) })
}

// audited is what a run in memory waits for.
func (p *Partition) audited(r *actor.Run) schemas.AuditRun {
	a := schemas.AuditRun{WorkflowID: r.WorkflowID}
	if r.Damage.Err != nil { // also while messages wait for it
		a.Unreadable = r.Damage.Err.Error()
		return a
	}
	if !r.Live() {
		a.Busy = r.Loading || len(r.Mailbox) > 0
		return a
	}
	explain.Audit(&a, r.State, p.b.Config(), p.now())
	a.Busy = r.Loading || r.Inflight != nil ||
		len(r.Pending)+len(r.Mailbox)+len(r.Uncovered)+len(r.Tasks.Offers) > 0 ||
		r.Alarm.Way != nil || r.Alarm.Queued || r.Continues() || p.keys.Locking(r) ||
		p.keys.Stating(r)
	switch {
	case r.Decider.NoPoller: // what is armed may be of a time when the backlog was longer
		a.Due = explain.DueAtLast(r.State, p.b.Config(), p.now(), mostReask)
	case r.Open():
		a.Due = p.alarms.Wanted(r)
	}
	if a.Decision != "" { // a paused run wants none
		a.Decision = explain.Decision(r.State, p.situation(r))
	}
	return a
}

// repair repeats every open effect of a run: its tasks, its alarm, the question to its decider, its
// messages to other workflows. Those who receive one twice recognise it, so it does no harm to a
// run that lacks nothing. It waits for the run's commits: an effect never precedes its record.
func (p *Partition) repair(q *schemas.ExecutionRequest, reply func(any)) {
	refuse := func(e *schemas.Error) { reply(&schemas.AckResponse{V: schemas.Version, Error: e}) }
	r := p.get(q.WorkflowID)
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
			p.log.WithField("workflow", r.WorkflowID).WithField("run", r.State.Run).WithField("by",
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
	if r.Damage.Err == nil {
		p.whenSound(r, reply, f)
		return
	}
	r.Then = append(r.Then, actor.Awaited{
		Run:    f,
		Broken: func() { reply(&schemas.AckResponse{V: schemas.Version, Error: damagedError(r)}) },
	})
	p.lookNow(r)
}

func (p *Partition) repairRun(r *actor.Run) {
	for _, e := range r.State.OpenEffects(p.now()) {
		p.perform(r, actor.Effect{Effect: e}, nil)
	}
	p.keys.JudgeLocksOf(r)
	p.leaveBacklog(r) // ask again: a decider may listen by now
	if r.Alarm.Way == nil {
		r.Alarm.Due = 0 // what was armed may be gone; arming it again finds out
	}
	p.mark(r)
}
