package turns

import "github.com/droverhq/drover/schemas"

// DecidedBy returns the DeciderCompleted whose decision has caused an event directly; 0 if the
// event is something else, such as an answer that came later.
func DecidedBy(a schemas.Attributes) int64 {
	switch a := a.(type) {
	case *schemas.ActivityScheduled:
		return a.DeciderCompletedEventID
	case *schemas.ActivityScheduleFailed:
		return a.DeciderCompletedEventID
	case *schemas.ActivityCancelRequested:
		return a.DeciderCompletedEventID
	case *schemas.ActivityCancelFailed:
		return a.DeciderCompletedEventID
	case *schemas.TimerScheduled:
		return a.DeciderCompletedEventID
	case *schemas.TimerScheduleFailed:
		return a.DeciderCompletedEventID
	case *schemas.TimerCanceled:
		return a.DeciderCompletedEventID
	case *schemas.TimerCancelFailed:
		return a.DeciderCompletedEventID
	case *schemas.Marker:
		return a.DeciderCompletedEventID
	case *schemas.MarkerFailed:
		return a.DeciderCompletedEventID
	case *schemas.AttributesSet:
		return a.DeciderCompletedEventID
	case *schemas.LockRequested:
		return a.DeciderCompletedEventID
	case *schemas.LockReleased:
		return a.DeciderCompletedEventID
	default:
		return decidedElsewhere(a)
	}
}

// decidedElsewhere is DecidedBy for what concerns other workflows, and for the end of the run.
// Requests that reached nobody name the decision too, but came later if they were scheduled.
func decidedElsewhere(a schemas.Attributes) int64 {
	switch a := a.(type) {
	case *schemas.ChildScheduled:
		return a.DeciderCompletedEventID
	case *schemas.SignalExternalScheduled:
		return a.DeciderCompletedEventID
	case *schemas.CancelExternalScheduled:
		return a.DeciderCompletedEventID
	case *schemas.ChildStartFailed:
		return atOnce(a.DeciderCompletedEventID, a.ScheduledEventID)
	case *schemas.SignalExternalFailed:
		return atOnce(a.DeciderCompletedEventID, a.ScheduledEventID)
	case *schemas.CancelExternalFailed:
		return atOnce(a.DeciderCompletedEventID, a.ScheduledEventID)
	case *schemas.LockRefused:
		return atOnce(a.DeciderCompletedEventID, a.ScheduledEventID)
	case *schemas.WorkflowSuccess:
		return a.DeciderCompletedEventID
	case *schemas.WorkflowFailed:
		return a.DeciderCompletedEventID
	case *schemas.WorkflowCanceled:
		return a.DeciderCompletedEventID
	case *schemas.WorkflowContinuedAsNew:
		return a.DeciderCompletedEventID
	case *schemas.WorkflowCloseFailed:
		return a.DeciderCompletedEventID
	}
	return 0
}

func atOnce(completed, scheduled int64) int64 {
	if scheduled != 0 {
		return 0
	}
	return completed
}
