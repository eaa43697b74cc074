package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/droverhq/drover/internal/sleep"
	"github.com/droverhq/drover/schemas"
)

// alarmSlack is how much later than needed an alarm may be: what is due moves a little while it is
// looked at.
const alarmSlack = schemas.Duration(time.Second)

// lookAtRuns looks at the open runs and the alarms of a partition. The alarms are read before the
// runs: a run of an alarm that was seen has begun.
func (a *Auditor) lookAtRuns(ctx context.Context, v *view, p int, s *suspects) error {
	if err := v.readAlarms(ctx, p); err != nil {
		return err
	}
	late := overdue{a: a, now: v.began}
	for _, alarm := range v.alarms {
		late.note(alarm.due)
	}
	late.tell(p, v.ringers[p], s)
	open, n, err := a.openRuns(ctx, p)
	if err != nil {
		return err
	}
	v.open += n
	if err := a.judgeAll(ctx, v, p, open, s); err != nil {
		return err
	}
	return a.lookAtStale(ctx, v, p, s)
}

// lookAtStale asks for the runs of the alarms that are left: they belong to none that was open.
func (a *Auditor) lookAtStale(ctx context.Context, v *view, p int, s *suspects) error {
	var unread error
	left := v.namesOf(ctx, p, slices.SortedFunc(maps.Values(v.alarms), armed.compare), &unread)
	err := a.askAll(ctx, v, p, left,
		func(_ *schemas.AuditResponse, asked schemas.Execution, r *schemas.AuditRun) error {
			if r.Busy || r.Unreadable != "" || r.Run == asked.Run && !r.Status.Closed() {
				return nil
			}
			alarm := v.alarms[v.key(asked.WorkflowID, asked.Run)]
			if age := v.began.Sub(alarm.due); age >= 0 && age <= a.o.Overdue {
				return nil // it has just rung; its worker deletes it in a moment
			}
			s.add(Finding{
				Kind: KindAlarmStale, Severity: Notice, WorkflowID: asked.WorkflowID,
				Run: asked.Run, Partition: &p, Since: alarm.due,
				Text: fmt.Sprintf("workflow %q run %s is not open and has an alarm for %s",
					asked.WorkflowID, asked.Run, alarm.due),
				detail: fmt.Sprint(alarm.seq),
				remove: &message{
					stream: a.ns.StreamAlarms(p), seq: alarm.seq,
					subject: a.ns.Alarm(p, asked.WorkflowID, asked.Run), due: alarm.due,
				},
			})
			return nil
		})
	return errors.Join(err, unread)
}

// distinct sorts runs and names each once.
func distinct(all []schemas.Execution) iter.Seq[schemas.Execution] {
	slices.SortFunc(all, func(a, b schemas.Execution) int {
		return cmp.Or(strings.Compare(a.WorkflowID, b.WorkflowID), strings.Compare(a.Run, b.Run))
	})
	return slices.Values(slices.Compact(all))
}

// askAll asks the owner of a partition for runs, a few at a time and at a bounded rate. An answer
// about another run than the one that was asked for says that this one is not the latest of its id,
// or never was. If the owner does not answer, the partition is left out of this look.
func (a *Auditor) askAll(
	ctx context.Context, v *view, p int, of iter.Seq[schemas.Execution],
	fn func(owner *schemas.AuditResponse, asked schemas.Execution, r *schemas.AuditRun) error,
) error {
	next, stop := iter.Pull(of)
	defer stop()
	var asked []schemas.Execution
	for v.silent[p] == nil {
		began := time.Now()
		for len(asked) < schemas.MaxAudit {
			x, ok := next()
			if !ok {
				break
			}
			asked = append(asked, x)
		}
		if len(asked) == 0 {
			return nil
		}
		out, err := a.askFor(ctx, p, asked)
		if err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			v.silence(p, err)
			return nil
		}
		for i := range out.Runs {
			if err := fn(out, asked[i], &out.Runs[i]); err != nil {
				return err
			}
		}
		asked = slices.Delete(asked, 0, len(out.Runs))
		if rest := time.Duration(len(out.Runs))*time.Second/time.Duration(a.o.Rate) - time.Since(began); rest > 0 {
			if err := sleep.For(ctx, rest); err != nil {
				return err
			}
		}
	}
	return nil
}

// askFor asks the owner of a partition for runs. It answers for the first of them, one at least.
func (a *Auditor) askFor(
	ctx context.Context, p int, of []schemas.Execution,
) (*schemas.AuditResponse, error) {
	q := &schemas.AuditRequest{V: schemas.Version, Partition: p}
	for _, x := range of {
		q.Workflows, q.Runs = append(q.Workflows, x.WorkflowID), append(q.Runs, x.Run)
	}
	out, err := ask(ctx, a, "audit", q,
		func(r *schemas.AuditResponse) *schemas.Error { return r.Error })
	if err == nil && (len(out.Runs) == 0 || len(out.Runs) > len(of)) {
		err = fmt.Errorf("the owner of partition %d answered for %d workflows of %d",
			p, len(out.Runs), len(of))
	}
	return out, err
}

// judgeAll asks for workflows and judges what their runs wait for.
func (a *Auditor) judgeAll(
	ctx context.Context, v *view, p int, of iter.Seq[schemas.Execution], s *suspects,
) error {
	var late *bool // whether the owner lags, asked once a look
	return a.askAll(ctx, v, p, of,
		func(owner *schemas.AuditResponse, asked schemas.Execution, r *schemas.AuditRun) error {
			if v.second {
				v.runs[runKey(asked.WorkflowID, asked.Run)] = r
			} else {
				v.count(r)
			}
			if late == nil || *late { // it may catch up between two answers
				later, err := v.lags(ctx, p, owner)
				if err != nil {
					return err
				}
				late = &later
			}
			if *late {
				v.undecided++
				r.Busy, v.unseen.runs[p] = true, true
			}
			return a.judge(ctx, v, p, owner.Time, r, s)
		})
}

// count counts a run that is paused.
func (v *view) count(r *schemas.AuditRun) {
	if r.Unreadable == "" && r.Status == schemas.StatusPaused {
		v.paused[cmp.Or(r.PausedCause, schemas.CauseOperatorInitiated)]++
	}
}

// judge finds what is wrong with one run.
func (a *Auditor) judge(
	ctx context.Context, v *view, p int, now schemas.Timestamp, r *schemas.AuditRun, s *suspects,
) error {
	about := Finding{WorkflowID: r.WorkflowID, Run: r.Run, Partition: &p}
	if r.Unreadable != "" {
		f := about
		f.Kind, f.Severity, f.Text = KindUnreadable, Fault,
			fmt.Sprintf("the history of workflow %q cannot be read: %s; look with: drover verify",
				r.WorkflowID, r.Unreadable)
		s.add(f)
		return nil
	}
	if !v.second && !r.Status.Closed() {
		defer delete(v.alarms, v.key(r.WorkflowID, r.Run)) // what is left belongs to no open run
	}
	a.judgeTasks(v, now, r, about, s)
	judgeRequests(now, r, about, s)
	if r.Busy || r.Run == "" || r.Status.Closed() {
		return nil
	}
	a.judgeWaits(v, now, r, about, s)
	a.judgeLocks(v, r, about, s)
	if r.Due == 0 {
		return nil
	}
	alarm, ok, err := v.alarmOf(ctx, p, r.WorkflowID, r.Run)
	if err != nil || ok && alarm.due <= r.Due.Add(alarmSlack) {
		return err
	}
	f := about
	f.Kind, f.Severity, f.Since, f.repair = KindAlarmMissing, Fault, r.Due, r.WorkflowID
	f.Text = fmt.Sprintf("workflow %q run %s has no alarm, and something is due at %s",
		r.WorkflowID, r.Run, r.Due)
	if ok {
		f.Text = fmt.Sprintf("workflow %q run %s has an alarm for %s, and something is due at %s",
			r.WorkflowID, r.Run, alarm.due, r.Due)
	}
	s.add(f)
	return nil
}

// judgeRequests tells of a run whose repeats are known for less than they should be.
func judgeRequests(now schemas.Timestamp, r *schemas.AuditRun, f Finding, s *suspects) {
	if r.RequestIDsSince == 0 || r.Status.Closed() {
		return
	}
	f.Kind, f.Severity = KindRequestsForgotten, Notice
	f.Text = fmt.Sprintf(
		"workflow %q gets so many requests with ids that only those since %s are remembered, "+
			"not those of the last ten minutes: one that is repeated later than that may count twice",
		r.WorkflowID,
		when(now, r.RequestIDsSince),
	)
	s.add(f)
}

// judgeTasks compares the activities of a run with the tasks on the lists.
func (a *Auditor) judgeTasks(
	v *view, now schemas.Timestamp, r *schemas.AuditRun, about Finding, s *suspects,
) {
	for _, act := range r.Activities {
		t := v.taskOf(&act)
		if t != nil {
			t.wanted = true
		}
		f := about
		f.List, f.detail = act.List, act.Token
		list, _ := v.listOf(act.List)
		switch {
		case r.Busy:
		case t == nil && act.StartedAt == 0 && act.NotBefore == 0 && !v.partial[act.List] && !v.unlisted:
			f.Kind, f.Severity, f.Since, f.repair = KindTaskMissing, Fault, act.ScheduledAt, r.WorkflowID
			f.Text = fmt.Sprintf(
				"activity %q of workflow %q waits for a worker of list %q since %s and has no task there",
				act.ActivityID, r.WorkflowID, act.List, when(now, act.ScheduledAt))
			s.add(f)
		case t != nil && act.StartedAt != 0 && list.Working == 0 && list.Workers == 0 && !v.unlisted:
			f.Kind, f.Severity, f.Since = KindNobodyGoesOn, Notice, act.StartedAt
			f.Text = fmt.Sprintf(
				"activity %q of workflow %q runs on %s since %s, whose lease is over, and list "+
					"%q has no worker to go on%s", act.ActivityID, r.WorkflowID,
				workerName(act.Worker), when(now, act.StartedAt), act.List, timesOut(act.Deadline))
			s.add(f)
		}
	}
}

func workerName(w string) string {
	if w == "" {
		return "a worker"
	}
	return w
}

func timesOut(at schemas.Timestamp) string {
	if at == 0 {
		return "; it has no deadline"
	}
	return fmt.Sprintf("; it times out at %s", at)
}

// judgeWaits looks at the decision and at whether anything is open.
func (a *Auditor) judgeWaits(
	v *view, now schemas.Timestamp, r *schemas.AuditRun, f Finding, s *suspects,
) {
	for _, c := range r.Children {
		if c.Started {
			v.expect(c, r)
		}
	}
	if r.EventsLeft > 0 {
		n := f
		n.Kind, n.Severity, n.Since = KindNearsLimit, Notice, r.StartedAt
		n.Text = fmt.Sprintf(
			"workflow %q of type %q is terminated after %s: its decider must continue as new "+
				"before; look with: drover why %s", r.WorkflowID, r.Type,
			plural(int(r.EventsLeft), "more event", "more events"), r.WorkflowID)
		s.add(n)
	}
	switch {
	case r.PausedCause == schemas.CauseDeciderAttempts:
		f.Kind, f.Severity = KindParked, Warning
		f.Text = fmt.Sprintf(
			"workflow %q is parked: %s; mend the decider of type %q, then: drover resume %s",
			r.WorkflowID, r.PausedReason, r.Type, r.WorkflowID)
		s.add(f)
	case r.Decision == schemas.DecisionScheduled:
		f.Kind, f.Severity, f.Since, f.repair, f.detail = KindDecisionNotAsked, Fault,
			r.DecisionSince, r.WorkflowID, r.DecisionSince.String()
		f.Text = fmt.Sprintf(
			"workflow %q wants a decision since %s and no decider of type %q is asked",
			r.WorkflowID, when(now, r.DecisionSince), r.Type)
		s.add(f)
	case r.Decision == schemas.DecisionForlorn:
		v.nobodyDecides(r)
	case r.WaitsForNothing():
		f.Kind, f.Severity, f.Since = KindWaitsForNothing, Notice, r.StartedAt
		end := "never times out"
		if r.Timeout != 0 {
			end = "times out at " + r.Timeout.String()
		}
		f.Text = fmt.Sprintf(
			"workflow %q of type %q has nothing open: only a signal or an operator can move it, and it %s",
			r.WorkflowID, r.Type, end)
		s.add(f)
	}
}

// nobodyDecides counts a run whose decision nobody listens for: one finding for each type.
func (v *view) nobodyDecides(r *schemas.AuditRun) {
	w := v.deciders[r.Type]
	if w == nil {
		w = &waiting{since: r.DecisionSince, example: r.WorkflowID}
		v.deciders[r.Type] = w
	}
	if w.runs++; r.DecisionSince < w.since {
		w.since, w.example = r.DecisionSince, r.WorkflowID
	}
}

// tellDeciders tells of the types that no decider listens for.
func (v *view) tellDeciders(s *suspects) {
	for typ, w := range v.deciders {
		s.add(Finding{
			Kind: KindNoDecider, Severity: Notice, Since: w.since, detail: typ,
			Text: fmt.Sprintf(
				"no decider of type %q listens: %s for one, workflow %q longest, since %s; start a worker for it",
				typ, plural(w.runs, "run waits", "runs wait"), w.example, w.since),
			WorkflowID: w.example,
		})
	}
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
