package decider

import (
	"cmp"

	"github.com/droverhq/drover/schemas"
)

// SuggestContinueAsNew tells that the run is to continue as new when that fits: see [ContinueAsNew]
// and [Task.ContinueReasons]. It is a matter of the task, not of events, so a [View] does not know
// it.
func (t *Task) SuggestContinueAsNew() bool { return t.task.SuggestContinueAsNew }

// ContinueReasons tell why: [schemas.ContinueAge] and [schemas.ContinueEvents] if the run is as old
// or has as many events as the continuation policy of its start says, [schemas.ContinueRecycle] if
// its node is about to be recycled, and [schemas.ContinueHistory] if the history nears the number
// of events at which the broker refuses to lengthen it. A decider that does not continue is asked
// again later; only the last reason is pressing. Nil if nothing suggests it.
func (t *Task) ContinueReasons() []string {
	if t.task.SuggestContinueAsNew && len(t.task.ContinueReasons) == 0 {
		// a broker that is older than the other reasons
		return []string{schemas.ContinueHistory}
	}
	return t.task.ContinueReasons
}

// StartMode tells what began the run. The runs that continue one of [schemas.ModeAutoStart] have
// [schemas.ModeContinuation]; those that continue any other have its mode. Empty if the broker is
// older than start modes.
func (t *Task) StartMode() schemas.StartMode { return t.task.StartMode }

// Parent returns the run that has started this one as its child, or nil. Every run of a chain that
// continues as new has the same one.
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

// FirstRun returns the first run of the chain that this one continues: itself if it continues none,
// empty before event 1.
func (v *View) FirstRun() string {
	if v.started == nil {
		return ""
	}
	return cmp.Or(v.started.FirstExecutionRun, v.started.Run)
}
