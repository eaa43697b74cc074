package partition

import (
	"context"
	"time"

	"github.com/droverhq/drover/broker/explain"
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
			run.RequestIDsSince = p.intake.Requests.Since(wid, p.now())
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
func (p *Partition) audited(r *run) schemas.AuditRun {
	a := schemas.AuditRun{WorkflowID: r.wid}
	if r.broken != nil { // also while messages wait for it
		a.Unreadable = r.broken.Error()
		return a
	}
	if !r.live() {
		a.Busy = r.loading || len(r.mailbox) > 0
		return a
	}
	explain.Audit(&a, r.state, p.b.Config(), p.now())
	a.Busy = r.loading || r.inflight != nil ||
		len(r.pending)+len(r.mailbox)+len(r.uncovered)+len(r.offers) > 0 || r.alarm.way != nil ||
		r.alarm.queued || r.continues() || p.locking(r) || p.stating(r)
	switch {
	case r.noPoller: // what is armed may be of a time when the backlog was longer
		a.Due = explain.DueAtLast(r.state, p.b.Config(), p.now(), mostReask)
	case r.open():
		a.Due = p.wantedAlarm(r)
	}
	if a.Decision != "" { // a paused run wants none
		a.Decision = explain.Decision(r.state, p.situation(r))
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
		case !r.live():
			refuse(notFound(q.WorkflowID, ""))
			return
		case q.Run != "" && q.Run != r.state.Run:
			refuse(schemas.Errorf(schemas.CodeConflict, "run %s is not the latest of workflow %q",
				q.Run, r.wid).
				About(r.wid, r.state.Run).WithHint("leave the run out to repair the latest"))
			return
		}
		p.wait(r, repairWait, (*run).isSettled, func(r *run) {
			if !r.isSettled() {
				refuse(schemas.Errorf(schemas.CodeUnavailable, "workflow %q is busy", r.wid).
					About(r.wid, r.state.Run).
					WithHint("it moves, so it may need no repair; look again"))
				return
			}
			p.log.WithField("workflow", r.wid).WithField("run", r.state.Run).WithField("by",
				q.Identity).WithField("reason", q.Reason).
				Info("repeating the open effects of a run")
			p.repairRun(r)
			reply(&schemas.AckResponse{V: schemas.Version, Run: r.state.Run})
		})
	})
}

// repairWhen runs f once the run is loaded. One whose history could not be followed is read again
// now: it may have been restored.
func (p *Partition) repairWhen(r *run, reply func(any), f func()) {
	if r.broken == nil {
		p.whenSound(r, reply, f)
		return
	}
	r.then = append(r.then, awaited{
		run:    f,
		broken: func() { reply(&schemas.AckResponse{V: schemas.Version, Error: damagedError(r)}) },
	})
	p.lookNow(r)
}

func (p *Partition) repairRun(r *run) {
	for _, e := range r.state.OpenEffects(p.now()) {
		p.perform(r, effect{Effect: e}, nil)
	}
	p.judgeLocksOf(r)
	p.leaveBacklog(r) // ask again: a decider may listen by now
	if r.alarm.way == nil {
		r.alarm.due = 0 // what was armed may be gone; arming it again finds out
	}
	p.mark(r)
}
