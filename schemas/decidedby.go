package schemas

// DecidedBy returns the DeciderCompleted that an event names, and whether it must stand after it.
// Answers that come later, and what the service does on its own, need not.
func DecidedBy(a Attributes) (completed int64, decided bool) {
	switch a := a.(type) {
	case *LockReleased:
		return a.DeciderCompletedEventID, a.DeciderCompletedEventID != 0
	case *LockRefused:
		return a.DeciderCompletedEventID, a.ScheduledEventID == 0
	case *StateRefused:
		return a.DeciderCompletedEventID, a.ScheduledEventID == 0
	case *WorkflowFailed:
		return a.DeciderCompletedEventID, a.DeciderCompletedEventID != 0
	case *ChildStartFailed:
		return a.DeciderCompletedEventID, a.ScheduledEventID == 0
	case *SignalExternalFailed:
		return a.DeciderCompletedEventID, a.ScheduledEventID == 0
	case *CancelExternalFailed:
		return a.DeciderCompletedEventID, a.ScheduledEventID == 0
	case *ActivityScheduled:
		return a.DeciderCompletedEventID, true
	case *ActivityCancelRequested:
		return a.DeciderCompletedEventID, true
	case *TimerScheduled:
		return a.DeciderCompletedEventID, true
	case *TimerCanceled:
		return a.DeciderCompletedEventID, true
	case *Marker:
		return a.DeciderCompletedEventID, true
	case *ChildScheduled:
		return a.DeciderCompletedEventID, true
	case *SignalExternalScheduled:
		return a.DeciderCompletedEventID, true
	case *CancelExternalScheduled:
		return a.DeciderCompletedEventID, true
	case *LockRequested:
		return a.DeciderCompletedEventID, true
	case *StateRequested:
		return a.DeciderCompletedEventID, true
	case *ReplayPointSet:
		return a.DeciderCompletedEventID, true
	case *ReplayPointsReset:
		return a.DeciderCompletedEventID, true
	case *RetentionSet:
		return a.DeciderCompletedEventID, true
	case *AttributesSet:
		return a.DeciderCompletedEventID, true
	default:
		return decidedToEnd(a)
	}
}

// decidedToEnd is DecidedBy for the closing events and the refusals.
func decidedToEnd(a Attributes) (completed int64, decided bool) {
	switch a := a.(type) {
	case *WorkflowSuccess:
		return a.DeciderCompletedEventID, true
	case *WorkflowCanceled:
		return a.DeciderCompletedEventID, true
	case *WorkflowContinuedAsNew:
		return a.DeciderCompletedEventID, true
	case *WorkflowCloseFailed:
		return a.DeciderCompletedEventID, true
	case *ActivityScheduleFailed:
		return a.DeciderCompletedEventID, true
	case *ActivityCancelFailed:
		return a.DeciderCompletedEventID, true
	case *TimerScheduleFailed:
		return a.DeciderCompletedEventID, true
	case *TimerCancelFailed:
		return a.DeciderCompletedEventID, true
	case *MarkerFailed:
		return a.DeciderCompletedEventID, true
	}
	return 0, false
}
