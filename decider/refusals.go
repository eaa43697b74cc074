package decider

import (
	"cmp"

	"github.com/droverhq/drover/schemas"
)

// Refusal is a decision of the run that came to nothing.
type Refusal struct {
	// EventID is the event that says so. One above [Task.PreviousStartedID] is new to this task.
	EventID int64
	// ScheduledID is the event that had asked, for children, signals and cancel requests that
	// another workflow's owner refused, and for locks that were not to be had; 0 if the broker
	// refused the decision at once.
	ScheduledID int64
	Decision    schemas.DecisionType
	// ID is the activity id, the timer id, the name of the marker or the lock, or the workflow id
	// of the child or of the other workflow; empty if the run was to end.
	ID string
	// Cause says why, Details which field was wrong or which limit was met.
	Cause   schemas.Cause
	Details string
	// Control is the note that [Control] gave to a child, a signal or a cancel request.
	Control schemas.Payload
}

func (v *View) addRefusal(e schemas.Event) {
	var r Refusal
	switch a := e.Attributes.(type) {
	case *schemas.ActivityScheduleFailed:
		r = Refusal{Decision: schemas.DecideScheduleActivity, ID: a.ActivityID, Cause: a.Cause, Details: a.Details}
	case *schemas.ActivityCancelFailed:
		r = Refusal{Decision: schemas.DecideRequestCancelActivity, ID: a.ActivityID, Cause: a.Cause}
	case *schemas.TimerScheduleFailed:
		r = Refusal{Decision: schemas.DecideScheduleTimer, ID: a.TimerID, Cause: a.Cause, Details: a.Details}
	case *schemas.TimerCancelFailed:
		r = Refusal{Decision: schemas.DecideCancelTimer, ID: a.TimerID, Cause: a.Cause}
	case *schemas.MarkerFailed:
		r = Refusal{Decision: schemas.DecideRecordMarker, ID: a.MarkerName, Cause: a.Cause, Details: a.Details}
	case *schemas.ChildStartFailed:
		r = Refusal{
			Decision: schemas.DecideStartChild, ID: a.WorkflowID, Cause: a.Cause,
			Details: a.Details, ScheduledID: a.ScheduledEventID, Control: a.Control,
		}
	case *schemas.SignalExternalFailed:
		r = Refusal{
			Decision: schemas.DecideSignalExternal, ID: a.WorkflowID, Cause: a.Cause,
			Details: a.Details, ScheduledID: a.ScheduledEventID, Control: a.Control,
		}
	case *schemas.CancelExternalFailed:
		r = Refusal{
			Decision: schemas.DecideCancelExternal, ID: a.WorkflowID, Cause: a.Cause,
			Details: a.Details, ScheduledID: a.ScheduledEventID, Control: a.Control,
		}
	case *schemas.LockRefused:
		r = Refusal{
			Decision: cmp.Or(a.Decision, schemas.DecideAcquireLock), ID: a.Lock, Cause: a.Cause,
			Details: a.Details, ScheduledID: a.ScheduledEventID,
		}
	case *schemas.WorkflowCloseFailed:
		r = Refusal{Decision: a.Decision, Cause: a.Cause, Details: a.Details}
	default:
		return
	}
	r.EventID = e.ID
	v.refusals = append(v.refusals, r)
}

// Refused returns the refused decisions of the given types, or of all if none is given, in the
// order of their events. A child, a signal or a cancel request that was refused later, by the other
// workflow's owner, is among them.
func (v *View) Refused(types ...schemas.DecisionType) []Refusal {
	var all []Refusal
	for _, r := range v.refusals {
		if about(r.Decision, types) {
			all = append(all, r)
		}
	}
	return all
}
