package execution

import (
	"cmp"
	"slices"

	"github.com/droverhq/drover/schemas"
)

// Repeated tells whether an operator's request is in the history already, as its end too; whether
// it took effect matters to nobody who repeats it.
func (s *State) Repeated(r *schemas.ExecutionRequest) bool {
	if r.RequestID == "" {
		return false
	}
	if s.Close != nil {
		if a, ok := s.Close.Attributes.(*schemas.WorkflowTerminated); ok &&
			a.RequestID == r.RequestID {
			return true
		}
	}
	return slices.Contains(s.RequestIDs, r.RequestID)
}

// Means tells whether a request is for this run: it names none, or this one, or the chain that it
// belongs to.
func (s *State) Means(r *schemas.ExecutionRequest) bool {
	firstRun := ""
	if r.Origin != nil {
		firstRun = r.Origin.FirstRun
	}
	return s.is(r.Run, firstRun)
}

func (st *step) pause(r *schemas.ExecutionRequest) {
	if st.Paused == nil && st.Means(r) && !st.Repeated(r) {
		st.emit(&schemas.WorkflowPaused{
			Cause: schemas.CauseOperatorInitiated, Reason: r.Reason, RequestID: r.RequestID,
			Identity: r.Identity,
		})
	}
}

func (st *step) resume(r *schemas.ExecutionRequest) {
	if st.Paused != nil && st.Means(r) && !st.Repeated(r) {
		st.emit(&schemas.WorkflowResumed{
			Reason: r.Reason, RequestID: r.RequestID, Identity: r.Identity,
		})
		st.wake()
	}
}

// isErrand tells whether another workflow's decider has asked for something: not an operator, nor a
// child policy.
func isErrand(o *schemas.RequestOrigin) bool {
	return o != nil && o.Execution != nil && o.ScheduledEventID != 0
}

// knowsErrand tells whether another workflow's cancel request is in the history of the chain
// already (P-6).
func (s *State) knowsErrand(o *schemas.RequestOrigin) bool {
	return isErrand(o) &&
		slices.Contains(s.SignalIDs, externalSignalID(o.Execution.Run, o.ScheduledEventID))
}

// cancel asks the decider to end the run; once is enough. What another workflow has asked is noted
// all the same: it may be sent again, to a run that follows.
func (st *step) cancel(r *schemas.ExecutionRequest) {
	e := &schemas.WorkflowCancelRequested{
		Reason: r.Reason, RequestID: r.RequestID, Identity: r.Identity,
	}
	if st.knowsErrand(r.Origin) {
		st.answerRequest(r.Origin, "") // the chain has had it
		return
	}
	if !st.Means(r) {
		st.answerRequest(r.Origin, schemas.CauseUnknownExecution)
		return
	}
	if o := r.Origin; o != nil {
		e.ExternalWorkflowExecution, e.ExternalScheduledEventID, e.Cause = o.Execution, o.ScheduledEventID, o.Cause
		st.answerRequest(o, "")
	}
	if st.CancelRequested && !isErrand(r.Origin) || st.Repeated(r) {
		return
	}
	st.emit(e)
	st.wake()
}

// terminate ends the run without asking its decider.
func (st *step) terminate(r *schemas.ExecutionRequest) {
	e := &schemas.WorkflowTerminated{
		Reason: r.Reason, Details: r.Details, ChildPolicy: r.ChildPolicy,
		Cause: schemas.CauseOperatorInitiated, RequestID: r.RequestID, Identity: r.Identity,
	}
	if !st.Means(r) {
		return
	}
	if r.Origin != nil {
		e.Cause = cmp.Or(r.Origin.Cause, e.Cause)
	}
	def(&e.ChildPolicy, st.Start.ChildPolicy)
	st.end(e)
}
