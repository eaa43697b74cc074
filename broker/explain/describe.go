package explain

import (
	"maps"
	"slices"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/schemas"
)

// Describe tells what a state shows.
func Describe(s *execution.State) *schemas.DescribeResponse {
	a := &schemas.DescribeResponse{
		V: schemas.Version, Execution: Info(s), LatestContext: s.Context, Input: s.Start.Input,
		Started: *s.Start, CancelRequested: s.CancelRequested,
		DeciderAttempt: s.Decision.Failures + 1, Held: s.Continuing.Held,
	}
	if d := s.Start.ExecutionStartToCloseTimeout; d.Limited() {
		a.Timeout = s.StartBase.Add(d)
	}
	if s.Paused != nil {
		a.PausedCause, a.PausedDetails = s.Paused.Reason, s.Paused.Details
	}
	for _, act := range s.OpenActivities() {
		o := schemas.OpenActivity{
			ActivityID: act.Scheduled.ActivityID, Type: act.Scheduled.ActivityType,
			List: act.Scheduled.List, ScheduledEventID: act.ScheduledID,
			ScheduledAt: act.ScheduledBase, StartedAt: act.StartedBase, Worker: act.Worker,
			Attempt: act.Attempt, CancelRequested: act.CancelRequested != 0,
		}
		if act.Started != 0 && act.Scheduled.StartToCloseTimeout.Limited() {
			o.Deadline = act.StartedBase.Add(act.Scheduled.StartToCloseTimeout)
		}
		a.Activities = append(a.Activities, o)
	}
	for _, c := range s.OpenChildren() {
		child := openChild(c)
		child.Policy = s.ChildrenTreated()
		a.Children = append(a.Children, child)
	}
	for _, id := range slices.Sorted(maps.Keys(s.Timers)) {
		a.Timers = append(a.Timers, schemas.OpenTimer{TimerID: id, Due: s.Timers[id].Due()})
	}
	a.Locks, a.ReplayPoints = openLocksOf(s), s.ReplayPoints
	return a
}

// Info is the line of a run in a list.
func Info(s *execution.State) schemas.ExecutionInfo {
	i := schemas.ExecutionInfo{
		WorkflowID: s.WorkflowID, Run: s.Run, Type: s.Start.WorkflowType,
		TypeVersion: s.Start.WorkflowTypeVersion, Status: s.Status, StartedAt: s.StartedAt,
		Events: s.LastID, Tags: s.Start.TagList, Attributes: s.Attributes,
		Parent: s.Start.ParentWorkflowExecution, Replays: s.Start.Replays,
		StartMode: s.Start.Mode(),
	}
	if s.Close != nil {
		i.ClosedAt = s.Close.Time
	}
	return i
}

// Result tells how a run ended, as far as it has.
func Result(s *execution.State) *schemas.ResultResponse {
	a := &schemas.ResultResponse{V: schemas.Version, Run: s.Run, Status: s.Status}
	if s.Close == nil {
		return a
	}
	switch c := s.Close.Attributes.(type) {
	case *schemas.WorkflowSuccess:
		a.Result = c.Result
	case *schemas.WorkflowFailed:
		a.Reason, a.Details = c.Reason, c.Details
	case *schemas.WorkflowCanceled:
		a.Reason, a.Details = "canceled", c.Details
	case *schemas.WorkflowTerminated:
		a.Reason, a.Details = c.Reason, c.Details
	case *schemas.WorkflowTimedOut:
		a.Reason = "the workflow's time was up"
	case *schemas.WorkflowContinuedAsNew:
		a.NewRun = c.NewExecutionRun
	}
	return a
}

// Decision tells in a word where a run stands with its decider.
func Decision(s *execution.State, in *Situation) string {
	switch d := &s.Decision; {
	case in.NoPoller:
		return schemas.DecisionForlorn
	case in.BackingUp:
		return schemas.DecisionBackingOff
	case in.Asked || d.Started != 0:
		return schemas.DecisionStarted
	case d.Scheduled != 0:
		return schemas.DecisionScheduled
	}
	return ""
}

func openChild(c *execution.ChildRun) schemas.OpenChild {
	return schemas.OpenChild{
		WorkflowID: c.Scheduled.WorkflowID, Run: c.Scheduled.Run, Type: c.Scheduled.WorkflowType,
		ScheduledEventID: c.ScheduledID,
		ScheduledAt:      c.At, Started: c.Started != 0,
	}
}
