package execution

import (
	"fmt"

	"github.com/droverhq/drover/schemas"
)

// supported tells which decisions this version carries out.
func supported(a schemas.DecisionAttributes) bool {
	switch a.(type) {
	case *schemas.ScheduleActivity, *schemas.RequestCancelActivity, *schemas.ScheduleTimer, *schemas.CancelTimer,
		*schemas.RecordMarker, *schemas.SetAttributes, *schemas.SetRetention, *schemas.AcquireLock,
		*schemas.ReleaseLock,
		*schemas.GetState, *schemas.SetState, *schemas.ClearState,
		*schemas.SetReplayPoint, *schemas.ResetReplayPoints, *schemas.StartChild,
		*schemas.SignalExternal, *schemas.CancelExternal,
		*schemas.CompleteWorkflow, *schemas.FailWorkflow, *schemas.CancelWorkflow, *schemas.ContinueAsNew:
		return true
	}
	return false
}

// decide carries out one decision, or refuses it with an event of its own; it tells which.
func (st *step) decide(d schemas.Decision, completed int64) bool {
	switch a := d.Attributes.(type) {
	case *schemas.ScheduleActivity:
		return st.scheduleActivity(a, completed)
	case *schemas.RequestCancelActivity:
		return st.cancelActivity(a, completed)
	case *schemas.ScheduleTimer:
		return st.scheduleTimer(a, completed)
	case *schemas.CancelTimer:
		return st.cancelTimer(a, completed)
	case *schemas.RecordMarker:
		return st.recordMarker(a, completed)
	case *schemas.StartChild:
		return st.startChild(a, completed)
	case *schemas.SignalExternal:
		return st.signalExternal(a, completed)
	case *schemas.CancelExternal:
		return st.cancelExternal(a, completed)
	case *schemas.AcquireLock:
		return st.acquireLock(a, completed)
	case *schemas.ReleaseLock:
		return st.releaseLock(a, completed)
	case *schemas.GetState:
		return st.getState(a, completed)
	case *schemas.SetState:
		return st.setState(a, completed)
	case *schemas.ClearState:
		return st.clearState(a, completed)
	case *schemas.SetReplayPoint:
		return st.setReplayPoint(a, completed)
	case *schemas.ResetReplayPoints:
		st.emit(&schemas.ReplayPointsReset{DeciderCompletedEventID: completed})
	case *schemas.SetRetention:
		return st.setRetention(a, completed)
	case *schemas.SetAttributes:
		st.emit(&schemas.AttributesSet{Attributes: a.Attributes, DeciderCompletedEventID: completed})
	case *schemas.CompleteWorkflow:
		return st.close(d, completed, &schemas.WorkflowSuccess{Result: a.Result, DeciderCompletedEventID: completed})
	case *schemas.FailWorkflow:
		return st.close(d, completed, &schemas.WorkflowFailed{
			Reason: a.Reason, Details: a.Details, DeciderCompletedEventID: completed,
		})
	case *schemas.CancelWorkflow:
		return st.close(d, completed, &schemas.WorkflowCanceled{Details: a.Details, DeciderCompletedEventID: completed})
	case *schemas.ContinueAsNew:
		return st.continueAsNew(d, a, completed)
	}
	return true
}

// mostHeld is how often in a row a continuation is refused because of signals that the decider has
// not seen (P-4), and mostUndone how often any other close whose reply is all or nothing.
const (
	mostHeld   = 3
	mostUndone = 10
)

// unhandled are the words of a close that is refused since the decider has not seen all.
const unhandled = "something happened that the decider has not seen"

// unseen tells whether a close has to wait, since something came in that the decider has not seen.
// Signals hold up a continuation for a while only: the next run gets them. A reply that is all or
// nothing is not refused for ever either: no decider would do anything but close.
func (st *step) unseen(closing schemas.DecisionType) bool {
	d := &st.Decision
	switch {
	case d.Scheduled == 0 && !d.Woken:
		return false
	case closing == schemas.DecideContinueAsNew:
		return d.Held < mostHeld || d.Others
	}
	return !st.whole || d.Undone < mostUndone
}

// undone refuses a reply that is all or nothing if its close has to wait. What of it is refused for
// another reason is no matter of this: the decider has seen all, and sees the refusal next.
func (st *step) undone(m Reply) bool {
	n := len(m.Reply.Decisions)
	if !st.whole || n == 0 || !m.Reply.Decisions[n-1].Closes() {
		return false
	}
	closing := m.Reply.Decisions[n-1].Type()
	if !st.unseen(closing) {
		return false
	}
	st.emit(&schemas.DeciderFailed{
		Cause: schemas.CauseUnhandledDecision, Reason: unhandled, Decision: closing,
		ScheduledEventID: st.Decision.StartedOf, StartedEventID: st.Decision.Started,
		Identity: m.Reply.Identity,
	})
	st.wake()
	return true
}

// close ends the run unless something came in that the decider has not seen.
func (st *step) close(d schemas.Decision, completed int64, event schemas.Attributes) bool {
	unseen := st.unseen(d.Type())
	for _, e := range st.events { // refusals of this very reply
		unseen = unseen || e.ID > completed && e.Type().Wakes()
	}
	if unseen {
		return st.refuseClose(d, schemas.CauseUnhandledDecision, unhandled, completed)
	}
	switch a := event.(type) {
	case *schemas.WorkflowSuccess:
		a.UnreadSignals = st.Decision.Signals
	case *schemas.WorkflowFailed:
		a.UnreadSignals = st.Decision.Signals
	case *schemas.WorkflowCanceled:
		a.UnreadSignals = st.Decision.Signals
	case *schemas.WorkflowContinuedAsNew:
		a.UnreadSignals = st.Decision.Signals
	}
	st.end(event)
	return true
}

func (st *step) refuseClose(
	d schemas.Decision, cause schemas.Cause, details string, completed int64,
) bool {
	st.emit(&schemas.WorkflowCloseFailed{
		Decision: d.Type(), Cause: cause, Details: details, DeciderCompletedEventID: completed,
	})
	return false
}

func limitDetails(what string, most int) string {
	return fmt.Sprintf("%d %s are open, and no run may have more at once: wait until one is closed",
		most, what)
}

func (st *step) fullDetails() string {
	return fmt.Sprintf(
		"the history has %d events; from %d on nothing may lengthen it: continue as new, or close",
		st.LastID, st.c.MaxEvents)
}

func typeDetails(kind schemas.TypeKind, name, version string) string {
	return fmt.Sprintf("%sType: %q, version %q", kind, name, version)
}

// full tells whether the history has no room for what would lengthen it further.
func (st *step) full() bool { return st.LastID >= st.c.MaxEvents }

func (st *step) scheduleActivity(a *schemas.ScheduleActivity, completed int64) bool {
	refuse := func(cause schemas.Cause, details string) bool {
		st.emit(&schemas.ActivityScheduleFailed{
			ActivityID: a.ActivityID, ActivityType: a.ActivityType, Cause: cause, Details: details,
			DeciderCompletedEventID: completed,
		})
		return false
	}
	ev := st.activityOptions(a, completed)
	_, typeCause := st.c.Types.Activity(a.ActivityType, a.ActivityTypeVersion)
	switch {
	case typeCause != "":
		return refuse(typeCause,
			typeDetails(schemas.ActivityKind, a.ActivityType, a.ActivityTypeVersion))
	case ev.List == "":
		return refuse(schemas.CauseListUndefined,
			"name a list in the decision, or give the run a default list")
	case schemas.ValidateID("activityId", a.ActivityID) != nil:
		return refuse(schemas.CauseInvalidAttributes,
			schemas.ValidateID("activityId", a.ActivityID).Error())
	case schemas.ValidateID("activityType", a.ActivityType) != nil:
		return refuse(schemas.CauseInvalidAttributes,
			schemas.ValidateID("activityType", a.ActivityType).Error())
	case schemas.ValidateName("list", ev.List) != nil:
		return refuse(schemas.CauseInvalidAttributes, schemas.ValidateName("list", ev.List).Error())
	case a.ValidateLimits() != nil:
		return refuse(schemas.CauseInvalidAttributes, a.ValidateLimits().Error())
	case st.ActivityByID(a.ActivityID) != nil:
		return refuse(schemas.CauseActivityIDInUse,
			fmt.Sprintf("activityId: the activity of event %d bears it and is open",
				st.ActivityByID(a.ActivityID).ScheduledID))
	case len(st.Activities) >= st.c.OpenActivities:
		return refuse(schemas.CauseOpenActivitiesLimit,
			limitDetails("activities", st.c.OpenActivities))
	case st.full():
		return refuse(schemas.CauseEventLimitExceeded, st.fullDetails())
	}
	id := st.emit(ev)
	if !ev.StartDelay.Limited() {
		st.do(Dispatch{ScheduledID: id})
	}
	return true
}

// activityOptions fills in what the decision leaves out: from the defaults of the type, then of the
// run, then of the namespace.
func (st *step) activityOptions(
	a *schemas.ScheduleActivity, completed int64,
) *schemas.ActivityScheduled {
	d := st.Start.ActivityDefaults
	if d == nil {
		d = &schemas.ActivityDefaults{}
	}
	ev := &schemas.ActivityScheduled{
		ActivityID: a.ActivityID, ActivityType: a.ActivityType,
		ActivityTypeVersion: a.ActivityTypeVersion, Input: a.Input, Control: a.Control,
		List: a.List, TaskPriority: a.TaskPriority,
		ScheduleToStartTimeout: a.ScheduleToStartTimeout,
		StartToCloseTimeout:    a.StartToCloseTimeout,
		ScheduleToCloseTimeout: a.ScheduleToCloseTimeout, HeartbeatTimeout: a.HeartbeatTimeout,
		StartDelay: a.StartDelay, NotIdempotent: a.NotIdempotent, Retry: a.Retry,
		MaximumInterruptions: a.MaximumInterruptions, DeciderCompletedEventID: completed,
	}
	t := st.c.Types.activityDefaults(a.ActivityType, a.ActivityTypeVersion)
	def(&ev.List, t.List)
	def(&ev.TaskPriority, t.TaskPriority)
	def(&ev.ScheduleToStartTimeout, t.ScheduleToStartTimeout)
	def(&ev.StartToCloseTimeout, t.StartToCloseTimeout)
	def(&ev.ScheduleToCloseTimeout, t.ScheduleToCloseTimeout)
	def(&ev.HeartbeatTimeout, t.HeartbeatTimeout)
	def(&ev.NotIdempotent, t.NotIdempotent)
	def(&ev.Retry, t.Retry)
	def(&ev.List, d.List)
	def(&ev.ScheduleToStartTimeout, d.ScheduleToStartTimeout)
	def(&ev.StartToCloseTimeout, d.StartToCloseTimeout)
	def(&ev.ScheduleToCloseTimeout, d.ScheduleToCloseTimeout)
	def(&ev.HeartbeatTimeout, d.HeartbeatTimeout)
	def(&ev.StartToCloseTimeout, st.c.StartToClose)
	return ev
}

func (st *step) cancelActivity(a *schemas.RequestCancelActivity, completed int64) bool {
	act := st.ActivityByID(a.ActivityID)
	if act == nil {
		st.emit(&schemas.ActivityCancelFailed{
			ActivityID: a.ActivityID, Cause: schemas.CauseActivityIDUnknown,
			DeciderCompletedEventID: completed,
		})
		return false
	}
	requested := st.emit(&schemas.ActivityCancelRequested{
		ActivityID: a.ActivityID, ScheduledEventID: act.ScheduledID,
		DeciderCompletedEventID: completed,
	})
	if act.Started != 0 {
		st.tellWorker(act, reasonCancel, false)
		return true
	}
	st.emit(&schemas.ActivityCanceled{
		ScheduledEventID: act.ScheduledID, LatestCancelRequestedEventID: requested,
	})
	return false // the decider is told, as it is of every close
}

func (st *step) scheduleTimer(a *schemas.ScheduleTimer, completed int64) bool {
	refuse := func(cause schemas.Cause, details string) bool {
		st.emit(&schemas.TimerScheduleFailed{
			TimerID: a.TimerID, Cause: cause, Details: details, DeciderCompletedEventID: completed,
		})
		return false
	}
	other, open := st.Timers[a.TimerID]
	switch {
	case schemas.ValidateID("timerId", a.TimerID) != nil:
		return refuse(schemas.CauseInvalidAttributes,
			schemas.ValidateID("timerId", a.TimerID).Error())
	case a.StartToFireTimeout < 0:
		return refuse(schemas.CauseInvalidAttributes,
			"startToFireTimeout: want a duration of zero or more")
	case open:
		return refuse(schemas.CauseTimerIDInUse,
			fmt.Sprintf("timerId: the timer of event %d bears it and is open", other.ScheduledID))
	case len(st.Timers) >= st.c.OpenTimers:
		return refuse(schemas.CauseOpenTimersLimit, limitDetails("timers", st.c.OpenTimers))
	case st.full():
		return refuse(schemas.CauseEventLimitExceeded, st.fullDetails())
	}
	st.emit(&schemas.TimerScheduled{
		TimerID: a.TimerID, StartToFireTimeout: a.StartToFireTimeout, Control: a.Control,
		DeciderCompletedEventID: completed,
	})
	return true
}

func (st *step) cancelTimer(a *schemas.CancelTimer, completed int64) bool {
	t, open := st.Timers[a.TimerID]
	if !open {
		st.emit(&schemas.TimerCancelFailed{
			TimerID: a.TimerID, Cause: schemas.CauseTimerIDUnknown,
			DeciderCompletedEventID: completed,
		})
		return false
	}
	st.emit(&schemas.TimerCanceled{
		TimerID: a.TimerID, ScheduledEventID: t.ScheduledID, DeciderCompletedEventID: completed,
	})
	return true
}

func (st *step) recordMarker(a *schemas.RecordMarker, completed int64) bool {
	refuse := func(cause schemas.Cause, details string) bool {
		st.emit(&schemas.MarkerFailed{
			MarkerName: a.MarkerName, Cause: cause, Details: details,
			DeciderCompletedEventID: completed,
		})
		return false
	}
	if err := schemas.ValidateID("markerName", a.MarkerName); err != nil {
		return refuse(schemas.CauseInvalidAttributes, err.Error())
	}
	if st.full() {
		return refuse(schemas.CauseEventLimitExceeded, st.fullDetails())
	}
	st.emit(&schemas.Marker{
		MarkerName: a.MarkerName, Details: a.Details, DeciderCompletedEventID: completed,
	})
	return true
}
