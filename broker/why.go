package broker

import (
	"cmp"
	"fmt"
	"time"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/schemas"
)

// because explains in one sentence what a run waits for, with the names and times that matter.
func (p *partition) because(r *run) string {
	s := r.state
	switch {
	case s.Closed():
		return closedBecause(s)
	case s.Paused != nil && s.Paused.Cause == schemas.CauseDeciderAttempts:
		return fmt.Sprintf("it is parked: %s; mend the decider of type %q, then: drover resume %s", s.Paused.Reason, s.Start.WorkflowType, s.WorkflowID)
	case s.Paused != nil:
		return fmt.Sprintf("it is paused%s; go on with: drover resume %s", reason(s.Paused.Reason), s.WorkflowID)
	case r.forlorn:
		return fmt.Sprintf("no decider for type %q is listening (decision wanted since %s); start one in namespace %q",
			s.Start.WorkflowType, ago(p.now(), s.Decision.ScheduledBase), p.b.o.Namespace)
	case r.backingUp:
		return fmt.Sprintf("its decider of type %q failed or timed out %d times in a row and is asked again soon", s.Start.WorkflowType, s.Decision.Failures)
	case r.ask != nil && !r.ask.confirmed:
		return fmt.Sprintf("a decider of type %q is being asked since %s", s.Start.WorkflowType, ago(p.now(), r.ask.at))
	case r.ask != nil:
		return fmt.Sprintf("a decider of type %q is deciding since %s", s.Start.WorkflowType, ago(p.now(), r.ask.at))
	}
	return openBecause(s, p.b.config(), p.now())
}

func closedBecause(s *execution.State) string {
	if s.Close == nil {
		return "it is closed"
	}
	because := fmt.Sprintf("it is closed: %s at %s", s.Status, s.Close.Time)
	if r := resultOf(s); r.Reason != "" {
		because += ", reason: " + r.Reason
	}
	return because
}

// openBecause reads off the state what an open run waits for.
func openBecause(s *execution.State, c *execution.Config, now schemas.Timestamp) string {
	open := s.OpenActivities()
	var waiting, running *execution.Activity
	for _, a := range open {
		if a.Started == 0 && waiting == nil {
			waiting = a
		}
		if a.Started != 0 && running == nil {
			running = a
		}
	}
	switch {
	case running != nil:
		return fmt.Sprintf("activity %q of type %q runs on %s since %s, attempt %d%s", running.Scheduled.ActivityID, running.Scheduled.ActivityType,
			cmp.Or(running.Worker, "a worker"), ago(now, running.StartedBase), running.Attempt, more(len(open)-1, "activity", "activities"))
	case waiting != nil && waiting.NotBefore > now:
		return fmt.Sprintf("activity %q begins its attempt %d at %s%s", waiting.Scheduled.ActivityID, waiting.Attempt, waiting.NotBefore, more(len(open)-1, "activity", "activities"))
	case waiting != nil:
		return fmt.Sprintf("no worker has taken activity %q of type %q from list %q since %s; start a worker of that list%s", waiting.Scheduled.ActivityID,
			waiting.Scheduled.ActivityType, waiting.Scheduled.List, ago(now, waiting.ScheduledBase), more(len(open)-1, "activity", "activities"))
	case len(s.Timers) > 0:
		id, next := "", schemas.Timestamp(0)
		for name, t := range s.Timers {
			if next == 0 || t.Due() < next {
				id, next = name, t.Due()
			}
		}
		return fmt.Sprintf("timer %q expires at %s%s", id, next, more(len(s.Timers)-1, "timer", "timers"))
	case len(s.Children) > 0:
		c := s.OpenChildren()[0]
		return fmt.Sprintf("child workflow %q of type %q %s since %s%s", c.Scheduled.WorkflowID, c.Scheduled.WorkflowType,
			map[bool]string{true: "runs", false: "is to start"}[c.Started != 0], ago(now, c.At), more(len(s.Children)-1, "child", "children"))
	case len(s.Externals) > 0:
		kind, target, _ := s.RequestOf(s.OpenExternals()[0])
		return fmt.Sprintf("its %s to workflow %q is not answered yet%s", kind, target, more(len(s.Externals)-1, "request", "requests"))
	case s.Decision.Scheduled != 0 || s.Decision.Started != 0:
		return fmt.Sprintf("a decider of type %q is about to be asked", s.Start.WorkflowType)
	}
	return fmt.Sprintf("its decider left nothing open: it waits for a signal, or times out at %s", s.StartBase.Add(s.Start.ExecutionStartToCloseTimeout))
}

func reason(r string) string {
	if r == "" {
		return ""
	}
	return " (" + r + ")"
}

func more(n int, one, many string) string {
	switch {
	case n <= 0:
		return ""
	case n == 1:
		return fmt.Sprintf("; 1 more %s is open", one)
	default:
		return fmt.Sprintf("; %d more %s are open", n, many)
	}
}

func ago(now, then schemas.Timestamp) string {
	d := now.Sub(then)
	if d < 0 {
		d = 0
	}
	return fmt.Sprintf("%s (%s)", then.Time().Format(time.RFC3339), d.Round(time.Millisecond))
}

// decision says in a word where the run stands with its decider.
func (p *partition) decision(r *run) string {
	d := &r.state.Decision
	switch {
	case r.forlorn:
		return "nobody listens"
	case r.backingUp:
		return "backing off"
	case r.ask != nil || d.Started != 0:
		return "started"
	case d.Scheduled != 0:
		return "scheduled"
	}
	return ""
}

// describeState tells what a state shows.
func describeState(s *execution.State, c *execution.Config) *schemas.DescribeResponse {
	a := &schemas.DescribeResponse{
		V: schemas.Version, Execution: infoOf(s), LatestContext: s.Context, Input: s.Start.Input, Started: *s.Start,
		CancelRequested: s.CancelRequested, DeciderAttempt: s.Decision.Failures + 1,
	}
	if d := s.Start.ExecutionStartToCloseTimeout; d.Limited() {
		a.Timeout = s.StartBase.Add(d)
	}
	if s.Paused != nil {
		a.PausedCause, a.PausedDetails = s.Paused.Reason, s.Paused.Details
	}
	for _, act := range s.OpenActivities() {
		o := schemas.OpenActivity{
			ActivityID: act.Scheduled.ActivityID, Type: act.Scheduled.ActivityType, List: act.Scheduled.List,
			ScheduledEventID: act.ScheduledID, ScheduledAt: act.ScheduledBase, StartedAt: act.StartedBase, Worker: act.Worker,
			Attempt: act.Attempt, CancelRequested: act.CancelRequested != 0,
		}
		if act.Started != 0 && act.Scheduled.StartToCloseTimeout.Limited() {
			o.Deadline = act.StartedBase.Add(act.Scheduled.StartToCloseTimeout)
		}
		a.Activities = append(a.Activities, o)
	}
	for _, c := range s.OpenChildren() {
		a.Children = append(a.Children, schemas.OpenChild{
			WorkflowID: c.Scheduled.WorkflowID, Run: c.Scheduled.Run, Type: c.Scheduled.WorkflowType, ScheduledEventID: c.ScheduledID,
			ScheduledAt: c.At, Started: c.Started != 0,
		})
	}
	for id, t := range s.Timers {
		a.Timers = append(a.Timers, schemas.OpenTimer{TimerID: id, Due: t.Due()})
	}
	return a
}
