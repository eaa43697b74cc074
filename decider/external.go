package decider

import (
	"cmp"
	"fmt"

	"github.com/droverhq/drover/schemas"
)

// ExternalStatus says what became of a signal or a cancel request to another workflow. Values are
// append-only.
type ExternalStatus int

const (
	// ExternalSent is on its way.
	ExternalSent ExternalStatus = iota + 1
	// ExternalDelivered stands in the history of the other workflow.
	ExternalDelivered
	// ExternalFailed has reached nobody, and will not.
	ExternalFailed
)

var externalStatuses = [...]string{"unsent", "sent", "delivered", "failed"}

// String returns a word.
func (s ExternalStatus) String() string {
	if s < 0 || int(s) >= len(externalStatuses) {
		return fmt.Sprintf("ExternalStatus(%d)", int(s))
	}
	return externalStatuses[s]
}

// External is a signal or a cancel request that the run has sent to another workflow, and the
// answer to it.
type External struct {
	// ScheduledID is the event that sends it; 0 if the broker refused it at once.
	ScheduledID int64
	WorkflowID  string
	// Run is the run that was named by [ToRun], or once it is delivered the one that has it.
	Run string
	// Cancel says that it is a cancel request. Signal is the name of a signal; the history does not
	// know it if the signal was refused at once.
	Cancel bool
	Signal string
	Status ExternalStatus
	// Cause and Details say why it failed.
	Cause   schemas.Cause
	Details string
	// Control is the note that [Control] gave it.
	Control schemas.Payload
}

func (v *View) addExternal(e schemas.Event) {
	switch a := e.Attributes.(type) {
	case *schemas.SignalExternalScheduled:
		v.externals = append(v.externals, &External{
			ScheduledID: e.ID, WorkflowID: a.WorkflowID, Run: a.Run, Signal: a.SignalName,
			Status: ExternalSent, Control: a.Control,
		})
	case *schemas.CancelExternalScheduled:
		v.externals = append(v.externals, &External{
			ScheduledID: e.ID, WorkflowID: a.WorkflowID, Run: a.Run, Cancel: true,
			Status: ExternalSent, Control: a.Control,
		})
	case *schemas.ExternalSignaled:
		v.delivered(a.ScheduledEventID, a.WorkflowExecution)
	case *schemas.ExternalCancelRequested:
		v.delivered(a.ScheduledEventID, a.WorkflowExecution)
	case *schemas.SignalExternalFailed:
		v.undelivered(a.ScheduledEventID, External{
			WorkflowID: a.WorkflowID, Run: a.Run, Cause: a.Cause, Details: a.Details,
			Control: a.Control,
		})
	case *schemas.CancelExternalFailed:
		v.undelivered(a.ScheduledEventID, External{
			WorkflowID: a.WorkflowID, Run: a.Run, Cancel: true, Cause: a.Cause, Details: a.Details,
			Control: a.Control,
		})
	}
}

// sent returns the one that an event has sent, if its answer is still to come. Answers come soon,
// so the search begins at the end.
func (v *View) sent(scheduled int64) *External {
	for i := len(v.externals) - 1; i >= 0; i-- {
		if x := v.externals[i]; x.ScheduledID == scheduled && x.Status == ExternalSent {
			return x
		}
	}
	return nil
}

func (v *View) delivered(scheduled int64, to schemas.Execution) {
	if x := v.sent(scheduled); x != nil {
		x.Status, x.Run = ExternalDelivered, cmp.Or(to.Run, x.Run)
	}
}

func (v *View) undelivered(scheduled int64, failed External) {
	failed.Status = ExternalFailed
	if scheduled == 0 {
		v.externals = append(v.externals, &failed)
		return
	}
	if x := v.sent(scheduled); x != nil {
		x.Status, x.Cause, x.Details = failed.Status, failed.Cause, failed.Details
	}
}

// ExternalSignals returns the signals that the run has sent to the given workflows, or to all if
// none is given, in the order they were sent.
func (v *View) ExternalSignals(workflowIDs ...string) []External {
	return v.external(false, workflowIDs)
}

// ExternalCancels is [View.ExternalSignals] for cancel requests.
func (v *View) ExternalCancels(workflowIDs ...string) []External {
	return v.external(true, workflowIDs)
}

func (v *View) external(cancels bool, workflowIDs []string) []External {
	var all []External
	for _, x := range v.externals {
		if x.Cancel == cancels && about(x.WorkflowID, workflowIDs) {
			all = append(all, *x)
		}
	}
	return all
}
