package audit

import (
	"context"
	"fmt"
	"slices"

	"github.com/droverhq/drover/schemas"
)

// lookAtTasks looks at the tasks that no open run was seen to wait for, and at the children that
// runs wait for.
func (a *Auditor) lookAtTasks(ctx context.Context, v *view, s *suspects) error {
	unwanted, runs := map[int]map[string][]*task{}, map[int][]schemas.Execution{}
	for _, t := range v.tasks {
		if t.wanted {
			continue
		}
		p := a.partitionOf(t.WorkflowID)
		if unwanted[p] == nil {
			unwanted[p] = map[string][]*task{}
		}
		key := runKey(t.WorkflowID, t.Run)
		unwanted[p][key] = append(unwanted[p][key], t)
		runs[p] = append(runs[p], schemas.Execution{WorkflowID: t.WorkflowID, Run: t.Run})
	}
	for p, of := range unwanted {
		err := a.askAll(ctx, v, p, distinct(runs[p]),
			func(owner *schemas.AuditResponse, asked schemas.Execution, r *schemas.AuditRun) error {
				if r.Busy || r.Unreadable != "" {
					return nil
				}
				for _, t := range of[runKey(asked.WorkflowID, asked.Run)] {
					if !slices.ContainsFunc(r.Activities, func(act schemas.AuditActivity) bool {
						return restsOn(&act, place{t.list, t.seq}, t.Token)
					}) {
						s.add(a.staleTask(t, p, owner.Time, r))
					}
				}
				return nil
			})
		if err != nil {
			return err
		}
	}
	return a.lookAtChildren(ctx, v, s)
}

// staleTask is a task that no run waits for.
func (a *Auditor) staleTask(t *task, p int, now schemas.Timestamp, r *schemas.AuditRun) Finding {
	why := "does not wait for it any more"
	switch {
	case r.Run == "":
		why = "was never started"
	case r.Run != t.Run || r.Status.Closed():
		why = "is closed"
	}
	return Finding{
		Kind: KindTaskStale, Severity: Notice, WorkflowID: t.WorkflowID, Run: t.Run, Partition: &p,
		List: t.list, Since: t.at,
		Text: fmt.Sprintf(
			"list %q has a task for activity %q of workflow %q since %s, whose run %s %s",
			t.list, t.ActivityID, t.WorkflowID, when(now, t.at), t.Run, why),
		detail: fmt.Sprint(t.seq),
		remove: &message{
			stream: a.ns.StreamTasks(t.list), seq: t.seq, subject: t.subject, token: t.Token,
		},
	}
}

// expect notes that a run waits for a child that has begun.
func (v *view) expect(c schemas.OpenChild, r *schemas.AuditRun) {
	p := v.a.partitionOf(c.WorkflowID)
	if v.children[p] == nil {
		v.children[p] = map[string][]parent{}
	}
	key := runKey(c.WorkflowID, c.Run)
	v.children[p][key] = append(v.children[p][key],
		parent{workflowID: r.WorkflowID, run: r.Run, child: c})
}

// lookAtChildren asks for the children that runs wait for. One that has closed has told its parent,
// or is about to; if the parent still waits at the second look its word is lost. Only the latest
// run of an id can be asked to say it again.
func (a *Auditor) lookAtChildren(ctx context.Context, v *view, s *suspects) error {
	for p, of := range v.children {
		var runs []schemas.Execution
		for _, parents := range of {
			runs = append(runs, schemas.Execution{
				WorkflowID: parents[0].child.WorkflowID, Run: parents[0].child.Run,
			})
		}
		err := a.askAll(ctx, v, p, distinct(runs),
			func(_ *schemas.AuditResponse, asked schemas.Execution, r *schemas.AuditRun) error {
				if r.Busy || !r.Status.Closed() || r.Status == schemas.StatusContinuedAsNew ||
					r.Run != asked.Run {
					return nil // it runs, it continued as new, or its id was used again
				}
				for _, w := range of[runKey(asked.WorkflowID, asked.Run)] {
					parent := a.partitionOf(w.workflowID)
					s.add(Finding{
						Kind: KindChildEndLost, Severity: Fault, WorkflowID: w.workflowID,
						Run: w.run, Partition: &parent, Since: w.child.ScheduledAt,
						Text: fmt.Sprintf(
							"workflow %q waits for its child %q, which is closed (%s)",
							w.workflowID, r.WorkflowID, r.Status),
						detail: r.WorkflowID, repair: r.WorkflowID,
					})
				}
				return nil
			})
		if err != nil {
			return err
		}
	}
	return nil
}
