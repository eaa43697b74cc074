package decider

import (
	"cmp"

	"github.com/droverhq/drover/schemas"
)

// SuggestContinueAsNew tells that the history nears the number of events at which the broker refuses to lengthen it: see
// [ContinueAsNew]. It is a matter of the task, not of events, so a [View] does not know it.
func (t *Task) SuggestContinueAsNew() bool { return t.task.SuggestContinueAsNew }

// Parent returns the run that has started this one as its child, or nil. Every run of a chain that continues as new has
// the same one.
func (v *View) Parent() *schemas.Execution {
	if v.started == nil {
		return nil
	}
	return v.started.ParentWorkflowExecution
}

// ContinuedRun returns the run that has continued as new by this one; empty if this is the first.
func (v *View) ContinuedRun() string {
	if v.started == nil {
		return ""
	}
	return v.started.ContinuedExecutionRun
}

// FirstRun returns the first run of the chain that this one continues: itself if it continues none, empty before event 1.
func (v *View) FirstRun() string {
	if v.started == nil {
		return ""
	}
	return cmp.Or(v.started.FirstExecutionRun, v.started.Run)
}
