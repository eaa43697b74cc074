package execution

import (
	"fmt"

	"github.com/droverhq/drover/schemas"
)

// A decision of which everything was refused counts as a failed one: who decides the same again
// after each refusal would be asked again at once, without end. So it is folded from the events
// that stand after a DeciderCompleted.

// maxRefusal bounds what a state keeps of a refusal, in bytes.
const maxRefusal = 500

// judged looks whether an event carries out a part of the last completed decision, or refuses it.
func (d *Decision) judged(completed int64, a schemas.Attributes) {
	if d.Accepted || completed == 0 {
		return
	}
	of, what := refusal(a)
	switch {
	case of == completed && what != "":
		if d.Refusal == "" {
			d.Failures, d.Refusal = d.Earlier+1, clip(what, maxRefusal)
		}
	case accepted(a) == completed:
		d.Accepted, d.Failures, d.Refusal = true, 0, ""
	}
}

// refusal tells of a refusal by which DeciderCompleted it was decided, and what was refused and
// why. What has nothing to do with the decision itself is none: an end over something that the
// decider has not seen, and the answers that come later.
func refusal(a schemas.Attributes) (completed int64, what string) {
	say := func(
		decision schemas.DecisionType, name string, cause schemas.Cause, details string,
	) string {
		what := fmt.Sprintf("%s %q with %s", decision, name, cause)
		if name == "" {
			what = fmt.Sprintf("%s with %s", decision, cause)
		}
		if details != "" {
			what += ": " + details
		}
		return what
	}
	scheduled := int64(0)
	switch a := a.(type) {
	case *schemas.ActivityScheduleFailed:
		completed, what = a.DeciderCompletedEventID, say(schemas.DecideScheduleActivity,
			a.ActivityID, a.Cause, a.Details)
	case *schemas.ActivityCancelFailed:
		completed, what = a.DeciderCompletedEventID, say(schemas.DecideRequestCancelActivity, a.ActivityID, a.Cause, "")
	case *schemas.TimerScheduleFailed:
		completed, what = a.DeciderCompletedEventID, say(schemas.DecideScheduleTimer, a.TimerID, a.Cause, a.Details)
	case *schemas.TimerCancelFailed:
		completed, what = a.DeciderCompletedEventID, say(schemas.DecideCancelTimer, a.TimerID, a.Cause, "")
	case *schemas.MarkerFailed:
		completed, what = a.DeciderCompletedEventID, say(schemas.DecideRecordMarker, a.MarkerName, a.Cause, a.Details)
	case *schemas.ChildStartFailed:
		scheduled, completed, what = a.ScheduledEventID, a.DeciderCompletedEventID,
			say(schemas.DecideStartChild, a.WorkflowID, a.Cause, a.Details)
	case *schemas.SignalExternalFailed:
		scheduled, completed, what = a.ScheduledEventID, a.DeciderCompletedEventID,
			say(schemas.DecideSignalExternal, a.WorkflowID, a.Cause, a.Details)
	case *schemas.CancelExternalFailed:
		scheduled, completed, what = a.ScheduledEventID, a.DeciderCompletedEventID,
			say(schemas.DecideCancelExternal, a.WorkflowID, a.Cause, a.Details)
	case *schemas.LockRefused:
		decision := a.Decision
		def(&decision, schemas.DecideAcquireLock)
		scheduled, completed, what = a.ScheduledEventID, a.DeciderCompletedEventID, say(decision,
			a.Lock, a.Cause, a.Details)
	case *schemas.StateRefused:
		scheduled, completed, what = a.ScheduledEventID, a.DeciderCompletedEventID,
			say("a request for the state key", a.Key, a.Cause, a.Details)
	case *schemas.WorkflowCloseFailed:
		if a.Cause != schemas.CauseUnhandledDecision {
			completed, what = a.DeciderCompletedEventID, say(a.Decision, "", a.Cause, a.Details)
		}
	}
	if scheduled != 0 {
		return 0, ""
	}
	return completed, what
}

// accepted tells by which DeciderCompleted it was decided what an event carries out; 0 if it
// carries out nothing.
func accepted(a schemas.Attributes) int64 {
	switch a := a.(type) {
	case *schemas.ActivityScheduled:
		return a.DeciderCompletedEventID
	case *schemas.ActivityCancelRequested:
		return a.DeciderCompletedEventID
	case *schemas.TimerScheduled:
		return a.DeciderCompletedEventID
	case *schemas.TimerCanceled:
		return a.DeciderCompletedEventID
	case *schemas.Marker:
		return a.DeciderCompletedEventID
	case *schemas.ChildScheduled:
		return a.DeciderCompletedEventID
	case *schemas.SignalExternalScheduled:
		return a.DeciderCompletedEventID
	case *schemas.CancelExternalScheduled:
		return a.DeciderCompletedEventID
	case *schemas.LockRequested:
		return a.DeciderCompletedEventID
	case *schemas.LockReleased:
		return a.DeciderCompletedEventID
	case *schemas.StateRequested:
		return a.DeciderCompletedEventID
	case *schemas.ReplayPointSet:
		return a.DeciderCompletedEventID
	case *schemas.ReplayPointsReset:
		return a.DeciderCompletedEventID
	case *schemas.RetentionSet:
		return a.DeciderCompletedEventID
	case *schemas.AttributesSet:
		return a.DeciderCompletedEventID
	}
	return 0
}
