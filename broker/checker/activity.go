package checker

import (
	"slices"

	"github.com/droverhq/drover/schemas"
)

// activity is an activity that is not closed.
type activity struct {
	id            string
	since         instant // scheduled
	limits        schemas.ActivityDefaults
	notIdempotent bool
	retry         *schemas.RetryPolicy

	attempt         int   // the running one, or the next to start
	running         int64 // the ActivityStarted of the running attempt, 0 if none
	runningSince    instant
	started         int64 // the last ActivityStarted, 0 if none
	lost            int   // attempts that were interrupted
	interrupted     bool  // the last attempt was interrupted and nothing came of it yet
	cancelRequested int64
}

func (h *History) applyActivity(e schemas.Event) bool {
	switch a := e.Attributes.(type) {
	case *schemas.ActivityScheduled:
		h.activityScheduled(e, a)
	case *schemas.ActivityScheduleFailed:
		if _, open := h.activityID[a.ActivityID]; a.Cause == schemas.CauseActivityIDInUse && !open {
			h.report(RuleRefusal, e.ID, "no open activity has the id %q", a.ActivityID)
		}
	case *schemas.ActivityCancelFailed:
		if scheduled, open := h.activityID[a.ActivityID]; a.Cause == schemas.CauseActivityIDUnknown && open {
			h.report(RuleRefusal, e.ID, "activity %q is open since event %d", a.ActivityID, scheduled)
		}
	case *schemas.ActivityCancelRequested:
		if act := h.openActivity(e, a.ScheduledEventID); act != nil {
			if act.id != a.ActivityID {
				h.report(RuleActivity, e.ID, "the activity of event %d is %q, not %q",
					a.ScheduledEventID, act.id, a.ActivityID)
			}
			act.cancelRequested = e.ID
		}
	case *schemas.ActivityStarted:
		h.activityStarted(e, a)
	case *schemas.ActivityInterrupted:
		h.activityInterrupted(e, a)
	case *schemas.ActivityRetryScheduled:
		h.activityRetried(e, a)
	default:
		return h.applyActivityClose(e)
	}
	return true
}

// openActivity returns the open activity of a scheduled event; without one it reports and returns
// nil.
func (h *History) openActivity(e schemas.Event, scheduled int64) *activity {
	act := h.activities[scheduled]
	if act == nil {
		h.report(RuleActivity, e.ID, "%s names event %d, which scheduled no activity that is open",
			e.Type(), scheduled)
	}
	return act
}

func (h *History) activityScheduled(e schemas.Event, a *schemas.ActivityScheduled) {
	if other, open := h.activityID[a.ActivityID]; open {
		h.report(RuleActivityID, e.ID, "activity %q is open since event %d", a.ActivityID, other)
	}
	h.activityID[a.ActivityID] = e.ID
	h.activities[e.ID] = &activity{
		id: a.ActivityID, since: h.now(e), attempt: 1, notIdempotent: a.NotIdempotent,
		retry: a.Retry,
		limits: schemas.ActivityDefaults{
			ScheduleToStartTimeout: firstSet(a.ScheduleToStartTimeout,
				h.defaults.ScheduleToStartTimeout),
			StartToCloseTimeout: firstSet(a.StartToCloseTimeout, h.defaults.StartToCloseTimeout,
				defaultStartToClose),
			ScheduleToCloseTimeout: firstSet(a.ScheduleToCloseTimeout,
				h.defaults.ScheduleToCloseTimeout),
			HeartbeatTimeout: firstSet(a.HeartbeatTimeout, h.defaults.HeartbeatTimeout),
		},
	}
}

func (h *History) activityStarted(e schemas.Event, a *schemas.ActivityStarted) {
	act := h.openActivity(e, a.ScheduledEventID)
	if act == nil {
		return
	}
	switch {
	case act.running != 0:
		h.report(RuleAttempt, e.ID, "activity %q starts again while attempt %d runs since event %d",
			act.id, act.attempt, act.running)
	case act.interrupted && act.notIdempotent:
		h.report(RuleAttempt, e.ID,
			"activity %q is not idempotent and starts again after an interrupt", act.id)
	}
	if a.Attempt != act.attempt {
		h.report(RuleAttempt, e.ID, "activity %q starts attempt %d; want %d",
			act.id, a.Attempt, act.attempt)
	}
	act.running, act.started, act.runningSince, act.interrupted = e.ID, e.ID, h.now(e), false
}

func (h *History) activityInterrupted(e schemas.Event, a *schemas.ActivityInterrupted) {
	act := h.openActivity(e, a.ScheduledEventID)
	if act == nil {
		return
	}
	h.checkRunning(e, act, a.StartedEventID)
	if a.Attempt != act.attempt {
		h.report(RuleAttempt, e.ID,
			"attempt %d of activity %q is interrupted; the current one is %d",
			a.Attempt, act.id, act.attempt)
	}
	act.attempt, act.running, act.interrupted = act.attempt+1, 0, true
	act.lost++
}

// activityRetried follows an attempt that failed, one that was interrupted, or one that nobody
// took.
func (h *History) activityRetried(e schemas.Event, a *schemas.ActivityRetryScheduled) {
	act := h.openActivity(e, a.ScheduledEventID)
	if act == nil {
		return
	}
	ended := act.attempt
	if act.interrupted {
		ended-- // the interrupt has counted it
	}
	if act.running != 0 {
		h.checkRunning(e, act, a.StartedEventID)
	} else if a.StartedEventID != 0 && (!act.interrupted || a.StartedEventID != act.started) {
		h.report(RuleActivity, e.ID, "%s names the start at event %d; no attempt of activity %q "+
			"is running", e.Type(), a.StartedEventID, act.id)
	}
	if a.Attempt != ended {
		h.report(RuleAttempt, e.ID,
			"a retry follows attempt %d of activity %q; the one that ended is %d",
			a.Attempt, act.id, ended)
	}
	h.checkRetry(e, act, a)
	act.attempt, act.running, act.interrupted = ended+1, 0, false
}

// checkRetry checks that the policy of an activity allows another attempt.
func (h *History) checkRetry(e schemas.Event, act *activity, a *schemas.ActivityRetryScheduled) {
	switch p := act.retry; {
	case p == nil:
		h.report(RuleAttempt, e.ID, "activity %q is tried again, and has no retry policy", act.id)
	case p.MaximumAttempts > 0 && a.Attempt-act.lost >= p.MaximumAttempts:
		h.report(RuleAttempt, e.ID,
			"activity %q is tried again after attempt %d; its policy allows %d",
			act.id, a.Attempt, p.MaximumAttempts)
	case slices.Contains(p.NonRetryable, a.Cause):
		h.report(RuleAttempt, e.ID,
			"activity %q is tried again after %q, which its policy rules out", act.id, a.Cause)
	case act.cancelRequested != 0:
		h.report(RuleAttempt, e.ID, "activity %q is tried again, though event %d wants its end",
			act.id, act.cancelRequested)
	}
}

// wantsAnother tells whether the policy of an activity demands another attempt after a failure of
// the running one. With a limit of the whole activity there may be no time for it.
func (a *activity) wantsAnother(reason string) bool {
	p := a.retry
	return p != nil && a.cancelRequested == 0 && !a.limits.ScheduleToCloseTimeout.Limited() &&
		(p.MaximumAttempts <= 0 || a.attempt-a.lost < p.MaximumAttempts) &&
		!slices.Contains(p.NonRetryable, reason)
}

// checkRunning checks that an event names the running attempt.
func (h *History) checkRunning(e schemas.Event, act *activity, started int64) {
	if act.running == 0 || started != act.running {
		h.report(RuleActivity, e.ID,
			"%s names the start at event %d; activity %q runs since event %d (0: it does not)",
			e.Type(), started, act.id, act.running)
	}
}
