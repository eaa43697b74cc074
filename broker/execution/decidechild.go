package execution

import (
	"cmp"
	"fmt"

	"github.com/droverhq/drover/schemas"
)

func (st *step) startChild(a *schemas.StartChild, completed int64) bool {
	if cause, details := st.childCause(a); cause != "" {
		st.emit(&schemas.ChildStartFailed{
			WorkflowID: a.WorkflowID, WorkflowType: a.WorkflowType, Cause: cause, Details: details,
			Control: a.Control, DeciderCompletedEventID: completed,
		})
		return false
	}
	next := st.LastID + 1
	id := st.emit(&schemas.ChildScheduled{
		WorkflowID: a.WorkflowID, Run: runID(st.Run, next, st.now), WorkflowType: a.WorkflowType,
		WorkflowTypeVersion: a.WorkflowTypeVersion, Input: a.Input, Control: a.Control,
		ExecutionStartToCloseTimeout: a.ExecutionStartToCloseTimeout,
		TaskStartToCloseTimeout:      a.TaskStartToCloseTimeout, TaskPriority: a.TaskPriority,
		ActivityDefaults: a.ActivityDefaults, ChildPolicy: a.ChildPolicy, TagList: a.TagList,
		Tell: a.Tell, DeciderCompletedEventID: completed,
	})
	st.do(StartChild{ScheduledID: id})
	return true
}

// childCause says why a child cannot be asked for, "" if it can.
func (st *step) childCause(a *schemas.StartChild) (cause schemas.Cause, details string) {
	if err := validateChild(a); err != nil {
		return schemas.CauseInvalidAttributes, err.Error()
	}
	var typeCause schemas.Cause
	if !a.Part || a.WorkflowType != st.Start.WorkflowType {
		_, typeCause = st.c.Types.Workflow(a.WorkflowType, a.WorkflowTypeVersion)
	}
	switch {
	case typeCause != "":
		return typeCause, typeDetails(schemas.WorkflowKind, a.WorkflowType, a.WorkflowTypeVersion)
	case a.WorkflowID == st.WorkflowID:
		return schemas.CauseWorkflowRunning, "workflowId: it is that of the run itself"
	case len(st.Children) >= st.c.OpenChildren:
		return schemas.CauseOpenChildrenLimit, limitDetails("children", st.c.OpenChildren)
	case st.Start.Depth >= st.c.ChildDepth:
		return schemas.CauseChildDepth, fmt.Sprintf(
			"the run has %d ancestors, and none may have more", st.Start.Depth)
	case st.full():
		return schemas.CauseEventLimitExceeded, st.fullDetails()
	}
	return "", ""
}

func validateChild(a *schemas.StartChild) error {
	if err := schemas.ValidateID("workflowId", a.WorkflowID); err != nil {
		return err
	}
	if err := schemas.ValidateID("workflowType", a.WorkflowType); err != nil {
		return err
	}
	if err := a.ValidateLimits(); err != nil {
		return err
	}
	return validateRun(a.ActivityDefaults, a.ChildPolicy, a.TagList, a.WorkflowTypeVersion)
}

// validateRun judges what a child and a continuation say of the run that they begin.
func validateRun(
	d *schemas.ActivityDefaults, policy schemas.ChildPolicy, tags []string, version string,
) error {
	if err := schemas.ValidateLength("workflowTypeVersion", version); err != nil {
		return err
	}
	if d != nil && d.List != "" {
		if err := schemas.ValidateName("activityDefaults.list", d.List); err != nil {
			return err
		}
	}
	if err := policy.Validate("childPolicy"); err != nil {
		return err
	}
	if err := schemas.ValidateTags(tags); err != nil {
		return err
	}
	return nil
}

// ChildStart is the request that starts a child.
func (s *State) ChildStart(c *ChildRun) *schemas.StartRequest {
	o := c.Scheduled
	return &schemas.StartRequest{
		V: schemas.Version, WorkflowID: o.WorkflowID, Run: o.Run, Type: o.WorkflowType,
		TypeVersion: o.WorkflowTypeVersion, Input: o.Input,
		ExecutionStartToCloseTimeout: o.ExecutionStartToCloseTimeout,
		TaskStartToCloseTimeout:      o.TaskStartToCloseTimeout, TaskPriority: o.TaskPriority,
		ActivityDefaults: o.ActivityDefaults, ChildPolicy: o.ChildPolicy, TagList: o.TagList,
		Origin: &schemas.StartOrigin{
			Parent:                 &schemas.Execution{WorkflowID: s.WorkflowID, Run: s.Run},
			ParentScheduledEventID: c.ScheduledID, Depth: s.Start.Depth + 1,
			ParentRetention: s.Keeping(),
		},
	}
}

func (st *step) signalExternal(a *schemas.SignalExternal, completed int64) bool {
	cause, details := st.externalCause(a.WorkflowID, a.Run)
	if err := schemas.ValidateID("signalName", a.SignalName); cause == "" && err != nil {
		cause, details = schemas.CauseInvalidAttributes, err.Error()
	}
	if cause != "" {
		st.emit(&schemas.SignalExternalFailed{
			WorkflowID: a.WorkflowID, Run: a.Run, Cause: cause, Details: details,
			Control: a.Control, DeciderCompletedEventID: completed,
		})
		return false
	}
	st.do(Request{ScheduledID: st.emit(&schemas.SignalExternalScheduled{
		WorkflowID: a.WorkflowID, Run: a.Run, SignalName: a.SignalName, Input: a.Input,
		Control: a.Control, Tell: a.Tell, DeciderCompletedEventID: completed,
	})})
	return true
}

func (st *step) cancelExternal(a *schemas.CancelExternal, completed int64) bool {
	if cause, details := st.externalCause(a.WorkflowID, a.Run); cause != "" {
		st.emit(&schemas.CancelExternalFailed{
			WorkflowID: a.WorkflowID, Run: a.Run, Cause: cause, Details: details,
			Control: a.Control, DeciderCompletedEventID: completed,
		})
		return false
	}
	st.do(Request{ScheduledID: st.emit(&schemas.CancelExternalScheduled{
		WorkflowID: a.WorkflowID, Run: a.Run, Control: a.Control, Tell: a.Tell,
		DeciderCompletedEventID: completed,
	})})
	return true
}

func (st *step) externalCause(workflowID, run string) (cause schemas.Cause, details string) {
	err := schemas.ValidateID("workflowId", workflowID)
	if err == nil && run != "" {
		err = schemas.ValidateID("run", run)
	}
	switch {
	case err != nil:
		return schemas.CauseInvalidAttributes, err.Error()
	case len(st.Externals) >= st.c.OpenExternals:
		return schemas.CauseOpenExternalsLimit, limitDetails("requests to other workflows",
			st.c.OpenExternals)
	case st.full():
		return schemas.CauseEventLimitExceeded, st.fullDetails()
	}
	return "", ""
}

// continueAsNew ends the run in favour of a fresh one of the same type, with what the decision
// leaves out as it was.
func (st *step) continueAsNew(d schemas.Decision, a *schemas.ContinueAsNew, completed int64) bool {
	s := st.Start
	version := cmp.Or(a.WorkflowTypeVersion, s.WorkflowTypeVersion)
	if !a.Part || version != s.WorkflowTypeVersion {
		if _, cause := st.c.Types.Workflow(s.WorkflowType, version); cause != "" {
			return st.refuseClose(d, cause,
				typeDetails(schemas.WorkflowKind, s.WorkflowType, version), completed)
		}
	}
	if err := a.ValidateLimits(); err != nil {
		return st.refuseClose(d, schemas.CauseInvalidAttributes, err.Error(), completed)
	}
	if err := validateRun(a.ActivityDefaults, a.ChildPolicy, a.TagList, a.WorkflowTypeVersion); err != nil {
		return st.refuseClose(d, schemas.CauseInvalidAttributes, err.Error(), completed)
	}
	ev := &schemas.WorkflowContinuedAsNew{
		NewExecutionRun: runID(st.Run, st.LastID+1, st.now), Input: a.Input,
		WorkflowType: s.WorkflowType, WorkflowTypeVersion: version,
		ExecutionStartToCloseTimeout: cmp.Or(a.ExecutionStartToCloseTimeout,
			s.ExecutionStartToCloseTimeout),
		TaskStartToCloseTimeout: cmp.Or(a.TaskStartToCloseTimeout, s.TaskStartToCloseTimeout),
		TaskPriority:            cmp.Or(a.TaskPriority, s.TaskPriority),
		ActivityDefaults:        cmp.Or(a.ActivityDefaults, s.ActivityDefaults),
		ChildPolicy:             cmp.Or(a.ChildPolicy, s.ChildPolicy), TagList: a.TagList,
		DeciderCompletedEventID: completed,
	}
	if len(ev.Input) == 0 {
		ev.Input = s.Input
	}
	if ev.TagList == nil {
		ev.TagList = s.TagList
	}
	return st.close(d, completed, ev)
}

// RequestOf is the message that carries an open signal or cancel request to its target, as the kind
// of its inbox subject and its body.
func (s *State) RequestOf(x *ExternalAction) (kind, target string, body any) {
	source := schemas.Execution{WorkflowID: s.WorkflowID, Run: s.Run}
	if a := x.Signal; a != nil {
		return "signal", a.WorkflowID, &schemas.ExternalSignal{
			V: schemas.Version, Run: a.Run, Name: a.SignalName, Input: a.Input, Source: source,
			ScheduledEventID: x.ScheduledID,
		}
	}
	return "cancel", x.Cancel.WorkflowID, &schemas.ExecutionRequest{
		V: schemas.Version, WorkflowID: x.Cancel.WorkflowID, Run: x.Cancel.Run,
		Origin: &schemas.RequestOrigin{
			Execution: &source, ScheduledEventID: x.ScheduledID, FirstRun: x.Cancel.Run,
		},
	}
}
