package explain

import (
	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/schemas"
)

// Audit reads off a state what its run waits for. An audit compares it with the world.
func Audit(
	a *schemas.AuditRun, s *execution.State, config *execution.Config, now schemas.Timestamp,
) {
	a.Run, a.Type, a.Status, a.StartedAt = s.Run, s.Start.WorkflowType, s.Status, s.StartedAt
	if a.Status == "" {
		a.Status = schemas.StatusOpen
	}
	if s.Closed() {
		return
	}
	if d := s.Start.ExecutionStartToCloseTimeout; d.Limited() {
		a.Timeout = s.StartBase.Add(d)
	}
	a.EventsLeft = config.EventsLeft(s.LastID)
	if s.Paused != nil {
		a.PausedCause, a.PausedReason = s.Paused.Cause, s.Paused.Reason
	}
	switch d := &s.Decision; {
	case d.Started != 0:
		a.Decision, a.DecisionSince = schemas.DecisionStarted, d.StartedBase
	case d.Scheduled != 0 && s.Paused == nil:
		a.Decision, a.DecisionSince = schemas.DecisionScheduled, d.ScheduledBase
	}
	a.Timers, a.Externals, a.Locks = len(s.Timers), len(s.Externals), openLocksOf(s)
	for _, act := range s.OpenActivities() {
		a.Activities = append(a.Activities, auditActivity(s.Run, act, now))
	}
	for _, child := range s.OpenChildren() {
		a.Children = append(a.Children, openChild(child))
	}
}

func auditActivity(run string, a *execution.Activity, now schemas.Timestamp) schemas.AuditActivity {
	o := schemas.AuditActivity{
		ActivityID: a.Scheduled.ActivityID, Type: a.Scheduled.ActivityType, List: a.Scheduled.List,
		Token: execution.Token(
			run,
			a.ScheduledID,
			a.Attempt,
		),
		Attempt: a.Attempt, ScheduledAt: a.ScheduledBase, StartedAt: a.StartedBase,
		Worker: a.Worker, TaskSequence: a.TaskSequence, Deadline: deadlineOf(a),
	}
	if a.NotBefore > now {
		o.NotBefore = a.NotBefore
	}
	return o
}

// deadlineOf is the earliest instant at which an activity times out; 0 if it does not.
func deadlineOf(a *execution.Activity) (at schemas.Timestamp) {
	limit := func(from schemas.Timestamp, d schemas.Duration) {
		if t := from.Add(d); d.Limited() && (at == 0 || t < at) {
			at = t
		}
	}
	limit(a.ScheduledBase, a.Scheduled.ScheduleToCloseTimeout)
	switch {
	case a.Started != 0:
		limit(a.StartedBase, a.Scheduled.StartToCloseTimeout)
		limit(max(a.StartedBase, a.LastBeat), a.Scheduled.HeartbeatTimeout)
	case a.Attempt == 1:
		limit(
			a.ScheduledBase.Add(max(a.Scheduled.StartDelay, 0)),
			a.Scheduled.ScheduleToStartTimeout,
		)
	}
	return at
}

// AuditStored is [Audit] of a run that was read from its history and is in no memory: nobody is
// asked for it, and nothing of it is on its way. noPoller says that it is in the backlog of its
// type. For reask see [DueAtLast]. It changes the state, which is the caller's to drop.
func AuditStored(
	a *schemas.AuditRun, s *execution.State, config *execution.Config, now schemas.Timestamp,
	noPoller bool, reask schemas.Duration,
) {
	for _, act := range s.Activities {
		act.LastBeat = now // as for an owner that loads it: heartbeats are in no history
	}
	Audit(a, s, config, now)
	a.Busy = s.Status == schemas.StatusContinuedAsNew // whose successor has not begun yet
	// What is due and not sent is a missing task, no missing alarm.
	s.Dispatched(func(a *execution.Activity) bool { return a.NotBefore >= now })
	a.Due = DueAtLast(s, config, now, reask)
	if noPoller && a.Decision != "" {
		a.Decision = schemas.DecisionForlorn
	}
}

// DueAtLast is the instant until which an alarm must have fired of a run that nobody asks for. If
// the run wants a decision it has an alarm to be asked for again, at most reask away, from the
// owner that had it in memory.
func DueAtLast(
	s *execution.State, c *execution.Config, now schemas.Timestamp, reask schemas.Duration,
) schemas.Timestamp {
	due := s.NextDue(c)
	if w, wanted := s.WantsDecider(c); wanted && !w.Started {
		look := max(w.NotBefore, now.Add(reask))
		if due == 0 || look < due {
			due = look
		}
	}
	return due
}
