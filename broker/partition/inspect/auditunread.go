package inspect

import (
	"context"

	"github.com/droverhq/drover/broker/explain"
	"github.com/droverhq/drover/broker/partition/alarms"
	"github.com/droverhq/drover/broker/partition/deciders"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/schemas"
)

// unread is a run that an audit asks for and that is in no memory.
type unread struct {
	place    int // in the answer
	wid, run string
	noPoller bool // it is in the backlog of its type
	// requestsSince is RequestIDsSince of schemas.AuditRun.
	requestsSince schemas.Timestamp
}

// unreadOf is what the loop knows of the run in a place of a question. The run is empty if the
// latest is meant.
func (ins *Inspector) unreadOf(q *schemas.AuditRequest, place int) unread {
	wid := q.Workflows[place]
	u := unread{
		place:         place,
		wid:           wid,
		noPoller:      ins.host.InBacklog(wid),
		requestsSince: ins.host.RequestIDsSince(wid),
	}
	if place < len(q.Runs) {
		u.run = q.Runs[place]
	}
	return u
}

// readAll answers for runs in their places. It reads one after another, by its subject.
func (ins *Inspector) readAll(ctx context.Context, all []unread, answer []schemas.AuditRun) {
	for _, u := range all {
		l, err := ins.loadStored(ctx, u.wid, u.run)
		answer[u.place] = ins.auditLoaded(&u, l, err)
	}
}

// loadStored reads a run that is in no memory; nil if there is none. One that is named is read by
// its literal subject, which the server finds at once; an open one is the latest. In place of one
// that has continued as new the latest is read, which is the same one only until its successor has
// begun.
func (ins *Inspector) loadStored(ctx context.Context, wid, run string) (*runs.Run, error) {
	if run != "" {
		if l, err := ins.host.LoadRun(ctx, wid, run); err != nil ||
			l != nil && l.State.Status != schemas.StatusContinuedAsNew {
			return l, err
		}
	}
	return ins.Env.Histories.Latest(ctx, ins.Partition, wid, ins.host.SingleReplica())
}

// auditLoaded is what a run waits for that was read from its history. It was in no memory, so
// nobody is asked for it, and nothing of it is on its way.
func (ins *Inspector) auditLoaded(u *unread, l *runs.Run, err error) schemas.AuditRun {
	b := ins.Env
	a := schemas.AuditRun{WorkflowID: u.wid}
	switch {
	case err != nil:
		a.Unreadable = err.Error()
		return a
	case l == nil || l.State.Start == nil:
		return a
	}
	explain.AuditStored(&a, l.State, b.Config(), b.Now(), u.noPoller, mostReask)
	a.RequestIDsSince = u.requestsSince
	return a
}

// mostReask is how far away the alarm is at most that asks for a decision again.
const mostReask = alarms.AskCover + deciders.LongestReask
