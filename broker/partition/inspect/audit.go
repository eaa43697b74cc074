package inspect

import (
	"context"

	"github.com/droverhq/drover/broker/explain"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/schemas"
)

const VerbAudit = "audit"

// auditBudget bounds the open activities and children of one answer; a run alone may have more.
const auditBudget = 1500

// Audit answers for workflows of the partition. Those that are not in memory are read by one reader
// and forgotten again (auditunread.go): an audit of all open runs must not push those out that are
// at work, nor take all readers.
func (ins *Inspector) Audit(q *schemas.AuditRequest, reply func(any)) {
	a := &schemas.AuditResponse{
		V: schemas.Version, Partition: ins.Partition, Owner: ins.Env.Options.Node, Time: ins.Env.Now(),
		Recovering: ins.host.Recovering(), Inbox: ins.host.InboxRead(),
		Runs: make([]schemas.AuditRun, 0, len(q.Workflows)),
	}
	var unread []unread
	for quota, i := auditBudget, 0; i < len(q.Workflows) && (quota > 0 || i == 0); i++ {
		wid := q.Workflows[i]
		run := schemas.AuditRun{WorkflowID: wid}
		if r := ins.host.InMemory(wid); r == nil {
			unread = append(unread, ins.unreadOf(q, i))
			quota -= 4 // most are small
		} else {
			run = ins.audited(r)
			run.RequestIDsSince = ins.host.RequestIDsSince(wid)
			quota -= len(run.Activities) + len(run.Children) + len(run.Locks)
		}
		a.Runs = append(a.Runs, run)
	}
	if len(unread) == 0 {
		reply(a)
		return
	}
	ins.Env.Scans.Enter("audit", func(done func()) {
		ins.Env.Answering.Run(func() {
			defer done()
			ctx, cancel := context.WithTimeout(ins.Env.Background, env.ReadTimeout)
			defer cancel()
			ins.readAll(ctx, unread, a.Runs)
			reply(a)
		})
	}, func() { reply(&schemas.AuditResponse{V: schemas.Version, Error: runs.TooMany()}) })
}

// audited is what a run in memory waits for.
func (ins *Inspector) audited(r *actor.Run) schemas.AuditRun {
	a := schemas.AuditRun{WorkflowID: r.WorkflowID}
	if r.Load.IsUnreadable() { // also while messages wait for it
		a.Unreadable = r.Damage.Err.Error()
		return a
	}
	if !r.Live() {
		a.Busy = r.Load.Waits() || len(r.Mailbox) > 0
		return a
	}
	explain.Audit(&a, r.State, ins.Env.Config(), ins.Env.Now())
	a.Busy = r.Load.Waits() || r.Inflight != nil ||
		len(r.Pending)+len(r.Mailbox)+len(r.Uncovered)+len(r.Tasks.Offers) > 0 ||
		r.Alarm.Way != nil || r.Alarm.Queued || r.Continues() || ins.host.KeysBusy(r)
	switch {
	case r.Decider.Asking.NoPoller(): // what is armed may be of a time when the backlog was longer
		a.Due = explain.DueAtLast(r.State, ins.Env.Config(), ins.Env.Now(), mostReask)
	case r.Open():
		a.Due = ins.host.WantedAlarm(r)
	}
	if a.Decision != "" { // a paused run wants none
		a.Decision = explain.Decision(r.State, ins.situation(r))
	}
	return a
}
