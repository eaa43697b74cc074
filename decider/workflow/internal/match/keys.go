package match

import (
	"cmp"
	"strings"

	"github.com/droverhq/drover/schemas"
)

// keyOfDecision names what a decision asks for. Signals and cancel requests to other workflows, and
// children whose workflow ids the code has chosen, are told apart by the note that they carry
// (Control): several may have the same workflow id.
func keyOfDecision(d schemas.Decision) key {
	k := key{what: d.Type()}
	switch a := d.Attributes.(type) {
	case *schemas.ScheduleActivity:
		k.name = a.ActivityID
	case *schemas.RequestCancelActivity:
		k.name = a.ActivityID
	case *schemas.ScheduleTimer:
		k.name = a.TimerID
	case *schemas.CancelTimer:
		k.name = a.TimerID
	case *schemas.RecordMarker:
		k.name = a.MarkerName
	case *schemas.StartChild:
		k.name = child(a.WorkflowID, a.Control)
	case *schemas.SignalExternal:
		k.name = string(a.Control)
	case *schemas.CancelExternal:
		k.name = string(a.Control)
	case *schemas.AcquireLock:
		k.name = lock(a.Scope, a.Lock)
	case *schemas.ReleaseLock:
		k.name = lock(a.Scope, a.Lock)
	case *schemas.CompleteWorkflow, *schemas.FailWorkflow, *schemas.CancelWorkflow,
		*schemas.ContinueAsNew:
		k.what, k.name = closing, string(d.Type())
	}
	return k
}

// keyOfEvent names what was asked for with the event as its answer; ok is false if it is no answer
// to a decision.
func keyOfEvent(a schemas.Attributes) (k key, ok bool) {
	switch a := a.(type) {
	case *schemas.ActivityScheduled:
		return key{schemas.DecideScheduleActivity, a.ActivityID}, true
	case *schemas.ActivityScheduleFailed:
		return key{schemas.DecideScheduleActivity, a.ActivityID}, true
	case *schemas.ActivityCancelRequested:
		return key{schemas.DecideRequestCancelActivity, a.ActivityID}, true
	case *schemas.ActivityCancelFailed:
		return key{schemas.DecideRequestCancelActivity, a.ActivityID}, true
	case *schemas.TimerScheduled:
		return key{schemas.DecideScheduleTimer, a.TimerID}, true
	case *schemas.TimerScheduleFailed:
		return key{schemas.DecideScheduleTimer, a.TimerID}, true
	case *schemas.TimerCanceled:
		return key{schemas.DecideCancelTimer, a.TimerID}, true
	case *schemas.TimerCancelFailed:
		return key{schemas.DecideCancelTimer, a.TimerID}, true
	case *schemas.Marker:
		return key{schemas.DecideRecordMarker, a.MarkerName}, true
	case *schemas.MarkerFailed:
		return key{schemas.DecideRecordMarker, a.MarkerName}, true
	case *schemas.AttributesSet:
		return key{what: schemas.DecideSetAttributes}, true
	default:
		return keyOfOthers(a)
	}
}

// keyOfOthers is keyOfEvent for other workflows, locks and the end of the run.
func keyOfOthers(a schemas.Attributes) (k key, ok bool) {
	switch a := a.(type) {
	case *schemas.ChildScheduled:
		return key{schemas.DecideStartChild, child(a.WorkflowID, a.Control)}, true
	case *schemas.ChildStartFailed:
		return key{schemas.DecideStartChild, child(a.WorkflowID, a.Control)}, true
	case *schemas.SignalExternalScheduled:
		return key{schemas.DecideSignalExternal, string(a.Control)}, true
	case *schemas.SignalExternalFailed:
		return key{schemas.DecideSignalExternal, string(a.Control)}, true
	case *schemas.CancelExternalScheduled:
		return key{schemas.DecideCancelExternal, string(a.Control)}, true
	case *schemas.CancelExternalFailed:
		return key{schemas.DecideCancelExternal, string(a.Control)}, true
	case *schemas.LockRequested:
		return key{schemas.DecideAcquireLock, lock(a.Scope, a.Lock)}, true
	case *schemas.LockRefused:
		return key{cmp.Or(a.Decision, schemas.DecideAcquireLock), lock(a.Scope, a.Lock)}, true
	case *schemas.LockReleased:
		return key{schemas.DecideReleaseLock, lock(a.Scope, a.Lock)}, true
	case *schemas.WorkflowSuccess:
		return key{closing, string(schemas.DecideCompleteWorkflow)}, true
	case *schemas.WorkflowFailed:
		return key{closing, string(schemas.DecideFailWorkflow)}, true
	case *schemas.WorkflowCanceled:
		return key{closing, string(schemas.DecideCancelWorkflow)}, true
	case *schemas.WorkflowContinuedAsNew:
		return key{closing, string(schemas.DecideContinueAsNew)}, true
	case *schemas.WorkflowCloseFailed:
		return key{closing, string(a.Decision)}, true
	}
	return key{}, false
}

func child(id string, control schemas.Payload) string {
	return strings.TrimSpace(id + " " + string(control))
}

func lock(scope, name string) string {
	if scope == "" {
		return name
	}
	return scope + "/" + name
}
