package checker

import (
	"cmp"
	"slices"

	"github.com/droverhq/drover/schemas"
)

func (h *History) applyWorkflow(e schemas.Event) bool {
	switch a := e.Attributes.(type) {
	case *schemas.WorkflowStarted:
		h.applyStarted(e, a)
	case *schemas.WorkflowTimedOut:
		if a.TimeoutType != schemas.TimeoutStartToClose {
			h.report(RuleEvent, e.ID, "WorkflowTimedOut of type %q; want %s",
				a.TimeoutType, schemas.TimeoutStartToClose)
		}
		h.checkEarly(e, h.start, h.timeout, "the run's timeout")
		h.policy = a.ChildPolicy
	case *schemas.WorkflowTerminated:
		h.policy = a.ChildPolicy
	case *schemas.WorkflowCancelRequested:
		h.checkSignal(e, externalID(a.ExternalWorkflowExecution, a.ExternalScheduledEventID))
		h.checkRequest(e, a.RequestID)
	case *schemas.Signal:
		h.noteSignal(e, a)
	case *schemas.WorkflowPaused:
		h.checkRequest(e, a.RequestID)
		if h.paused != 0 {
			h.report(RulePaused, e.ID, "the run is paused since event %d", h.paused)
		}
		h.paused = e.ID
	case *schemas.WorkflowResumed:
		h.checkRequest(e, a.RequestID)
		if h.paused == 0 {
			h.report(RulePaused, e.ID, "WorkflowResumed, but the run is not paused")
		}
		h.paused, h.decider.mismatches = 0, 0
		h.decider.waitFrom(e)
	case *schemas.ContinuationHeld:
		h.checkRequest(e, a.RequestID)
		h.hold = a
	case *schemas.ContinuationReleased:
		h.checkRequest(e, a.RequestID)
		h.hold = nil
	case *schemas.ContinuationSuggested:
		h.checkSuggestion(e)
	case *schemas.WorkflowContinuedAsNew:
		h.successor, h.continued = a.NewExecutionRun, a
		h.checkUnread(e, a.UnreadSignals)
		if h.decider.others {
			h.checkSeen(e, a.DeciderCompletedEventID)
		}
	case *schemas.RetentionSet:
		h.keeps(a.Policy)
	default:
		return false
	}
	return true
}

func (h *History) applyStarted(e schemas.Event, a *schemas.WorkflowStarted) {
	h.workflowID = cmp.Or(h.workflowID, a.WorkflowID)
	h.run = cmp.Or(h.run, a.Run)
	if a.WorkflowID != h.workflowID || a.Run != h.run {
		h.report(RuleFirst, e.ID, "WorkflowStarted names workflow %q run %s", a.WorkflowID, a.Run)
	}
	h.start, h.timeout = h.now(e), firstSet(a.ExecutionStartToCloseTimeout, defaultWorkflowTimeout)
	h.scheduled = limits{
		startToClose:    firstSet(a.TaskStartToCloseTimeout, defaultDeciderTimeout),
		scheduleToStart: a.TaskScheduleToStartTimeout,
	}
	if a.ActivityDefaults != nil {
		h.defaults = *a.ActivityDefaults
	}
	h.predecessor, h.startRequest = a.ContinuedExecutionRun, a.RequestID
	h.link = linkOf(a)
	h.checkMode(e, a)
	h.continuation, h.hold = a.Continuation, a.Held
	h.copies.want, h.copies.of = a.UnreadSignals, a.ContinuedExecutionRun
	h.signals.latest, h.requests.latest = slices.Clone(a.SignalIDs), slices.Clone(a.RequestIDs)
	h.inheritLocks(a.Locks)
	h.keeps(a.ParentRetention)
	if a.Retention != nil {
		h.keeps(a.Retention)
	}
}

// checkMode checks that the run was begun by what it says. That of a run which continues another is
// checked with it.
func (h *History) checkMode(e schemas.Event, a *schemas.WorkflowStarted) {
	said, bare := a.StartMode, *a
	bare.StartMode = ""
	switch want := bare.Mode(); {
	case said == "" || said == want || a.ContinuedExecutionRun != "":
	case want != schemas.ModeManual || said.ValidateRequested("startMode") != nil:
		h.report(RuleEvent, e.ID, "WorkflowStarted says that %q began the run; it was %q",
			said, want)
	}
}

// checkSuggestion checks that the run may be asked to continue as new. What has to be closed for
// that the core's own tests know.
func (h *History) checkSuggestion(e schemas.Event) {
	switch {
	case h.continuation == nil:
		h.report(RuleEvent, e.ID, "ContinuationSuggested, but the run has no continuation policy")
	case h.hold != nil:
		h.report(RuleEvent, e.ID, "ContinuationSuggested, but the run is held")
	case h.paused != 0:
		h.report(RulePaused, e.ID, "ContinuationSuggested, but the run is paused since event %d",
			h.paused)
	}
}

// firstSet returns the first duration that is not 0, which means "not set".
func firstSet(all ...schemas.Duration) schemas.Duration {
	for _, d := range all {
		if d != 0 {
			return d
		}
	}
	return 0
}
