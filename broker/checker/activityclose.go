package checker

import "github.com/droverhq/drover/schemas"

// applyActivityClose takes the events that end an activity.
func (h *History) applyActivityClose(e schemas.Event) bool {
	var scheduled int64
	var check func(*activity)
	switch a := e.Attributes.(type) {
	case *schemas.ActivitySuccess:
		scheduled, check = a.ScheduledEventID, func(act *activity) { h.checkRunning(e, act, a.StartedEventID) }
	case *schemas.ActivityFailed:
		scheduled, check = a.ScheduledEventID, func(act *activity) { h.checkFailed(e, act, a) }
	case *schemas.ActivityCanceled:
		scheduled, check = a.ScheduledEventID, func(act *activity) { h.checkCanceled(e, act, a) }
	case *schemas.ActivityTimedOut:
		scheduled, check = a.ScheduledEventID, func(act *activity) { h.checkActivityTimedOut(e, act, a) }
	case *schemas.ActivityScheduledTimeout:
		scheduled, check = a.ScheduledEventID, func(act *activity) { h.checkNeverStarted(e, act, a) }
	default:
		return false
	}
	if act := h.openActivity(e, scheduled); act != nil {
		check(act)
		delete(h.activities, scheduled)
		if h.activityID[act.id] == scheduled {
			delete(h.activityID, act.id)
		}
	}
	return true
}

// reasonCanceled is that of an activity whose worker says that it is canceled, without a request.
const reasonCanceled = "canceled"

// checkFailed allows, beside the failure of the running attempt, the one that follows an interrupt.
func (h *History) checkFailed(e schemas.Event, act *activity, a *schemas.ActivityFailed) {
	if act.interrupted && a.Reason == schemas.ReasonInterrupted && a.StartedEventID == act.started {
		return
	}
	h.checkRunning(e, act, a.StartedEventID)
	if act.running != 0 && !a.Final && a.Reason != reasonCanceled && act.wantsAnother(a.Reason) {
		h.report(RuleAttempt, e.ID,
			"activity %q fails after attempt %d; its policy wants another one, and its worker "+
				"has not said that this is final", act.id, act.attempt)
	}
}

func (h *History) checkCanceled(e schemas.Event, act *activity, a *schemas.ActivityCanceled) {
	if act.cancelRequested == 0 || a.LatestCancelRequestedEventID != act.cancelRequested {
		h.report(RuleActivity, e.ID,
			"ActivityCanceled names the request at event %d; the latest one for %q is at %d (0: none)",
			a.LatestCancelRequestedEventID, act.id, act.cancelRequested)
	}
	if act.running != 0 {
		h.checkRunning(e, act, a.StartedEventID)
		return
	}
	if act.interrupted && act.cancelRequested != 0 && a.StartedEventID == act.started {
		return // its worker was lost
	}
	if h.decider.block == 0 || act.cancelRequested < h.decider.block ||
		a.StartedEventID != 0 && a.StartedEventID != act.started {
		h.report(RuleActivity, e.ID,
			"ActivityCanceled names the start at event %d, but activity %q is not running and "+
				"the decider did not just cancel it", a.StartedEventID, act.id)
	}
}

func (h *History) checkActivityTimedOut(
	e schemas.Event, act *activity, a *schemas.ActivityTimedOut,
) {
	switch a.TimeoutType {
	case schemas.TimeoutStartToClose:
		h.checkRunning(e, act, a.StartedEventID)
		h.checkEarly(e, act.runningSince, act.limits.StartToCloseTimeout,
			"the activity's start-to-close timeout")
	case schemas.TimeoutHeartbeat:
		// Heartbeats write no event, so all that is known is that the first one was due after this
		// long.
		h.checkRunning(e, act, a.StartedEventID)
		h.checkEarly(e, act.runningSince, act.limits.HeartbeatTimeout,
			"the activity's heartbeat timeout")
	case schemas.TimeoutScheduleToClose:
		if act.running != 0 || a.StartedEventID != 0 && a.StartedEventID != act.started {
			h.checkRunning(e, act, a.StartedEventID)
		}
		h.checkEarly(e, act.since, act.limits.ScheduleToCloseTimeout,
			"the activity's schedule-to-close timeout")
	default:
		h.report(RuleEvent, e.ID, "ActivityTimedOut of type %q; want %s, %s or %s", a.TimeoutType,
			schemas.TimeoutStartToClose, schemas.TimeoutScheduleToClose, schemas.TimeoutHeartbeat)
	}
}

// checkNeverStarted checks a schedule-to-start timeout. A start delay would move its base later;
// this is the lower bound.
func (h *History) checkNeverStarted(
	e schemas.Event, act *activity, a *schemas.ActivityScheduledTimeout,
) {
	if a.TimeoutType != schemas.TimeoutScheduleToStart {
		h.report(RuleEvent, e.ID, "ActivityScheduledTimeout of type %q; want %s",
			a.TimeoutType, schemas.TimeoutScheduleToStart)
	}
	if act.started != 0 {
		h.report(RuleActivity, e.ID,
			"no worker took activity %q in time, it says; one started it at event %d",
			act.id, act.started)
	}
	h.checkEarly(e, act.since, act.limits.ScheduleToStartTimeout,
		"the activity's schedule-to-start timeout")
}
