package checker

import "github.com/droverhq/drover/schemas"

// exchange is something that the decider asked of the world outside its run, and that is not
// answered.
type exchange struct {
	kind    schemas.EventType // the event that asked
	name    string            // the workflow id, the lock or the key
	scope   string            // of a lock or key
	run     string            // of a child
	started int64             // the ChildStarted of a child
	asked   schemas.DecisionType
	decided int64 // the DeciderCompleted that it stands after
	leased  bool  // a lock
	tell    bool  // the event that says that it was done wakes the decider
}

// wakes tells whether an event is a reason to ask the decider: by its type, or since what it answers
// says so. The event is not applied yet.
func (h *History) wakes(e schemas.Event) bool {
	var scheduled int64
	switch a := e.Attributes.(type) {
	case *schemas.ChildStarted:
		scheduled = a.ScheduledEventID
	case *schemas.ExternalSignaled:
		scheduled = a.ScheduledEventID
	case *schemas.ExternalCancelRequested:
		scheduled = a.ScheduledEventID
	default:
		return e.Type().Wakes()
	}
	x := h.exchanges[scheduled]
	return x != nil && x.tell
}

func (h *History) applyExchange(e schemas.Event) bool {
	switch a := e.Attributes.(type) {
	case *schemas.ChildScheduled:
		key := a.WorkflowID + "\x00" + a.Run
		if first, seen := h.once[key]; seen {
			h.report(RuleChild, e.ID, "run %s of workflow %q was asked for at event %d already",
				a.Run, a.WorkflowID, first)
		}
		h.once[key] = e.ID
		h.exchanges[e.ID] = &exchange{
			kind: e.Type(), name: a.WorkflowID, run: a.Run, decided: a.DeciderCompletedEventID,
			tell: a.Tell,
		}
	case *schemas.SignalExternalScheduled:
		h.exchanges[e.ID] = &exchange{
			kind: e.Type(), name: a.WorkflowID, decided: a.DeciderCompletedEventID, tell: a.Tell,
		}
	case *schemas.CancelExternalScheduled:
		h.exchanges[e.ID] = &exchange{
			kind: e.Type(), name: a.WorkflowID, decided: a.DeciderCompletedEventID, tell: a.Tell,
		}
	case *schemas.LockRequested:
		h.lockRequested(e, a)
	case *schemas.StateRequested:
		h.exchanges[e.ID] = &exchange{
			kind: e.Type(), name: a.Key, scope: a.Scope, asked: a.Decision,
			decided: a.DeciderCompletedEventID,
		}
	case *schemas.ExternalSignaled:
		h.answer(e, RuleExternal, a.ScheduledEventID, exchange{
			kind: schemas.EventSignalExternalScheduled, name: a.WorkflowExecution.WorkflowID,
		})
	case *schemas.ExternalCancelRequested:
		h.answer(e, RuleExternal, a.ScheduledEventID, exchange{
			kind: schemas.EventCancelExternalScheduled, name: a.WorkflowExecution.WorkflowID,
		})
	case *schemas.SignalExternalFailed:
		h.refused(e, RuleExternal, a.ScheduledEventID, exchange{
			kind: schemas.EventSignalExternalScheduled, name: a.WorkflowID,
			decided: a.DeciderCompletedEventID,
		})
	case *schemas.CancelExternalFailed:
		h.refused(e, RuleExternal, a.ScheduledEventID, exchange{
			kind: schemas.EventCancelExternalScheduled, name: a.WorkflowID,
			decided: a.DeciderCompletedEventID,
		})
	default:
		return h.applyChild(e) || h.applyLock(e) || h.applyState(e)
	}
	return true
}

// answer takes the answer to an open exchange of a kind, a name and a scope. It returns nil, and
// has reported it, if there is no such exchange.
func (h *History) answer(e schemas.Event, rule string, scheduled int64, want exchange) *exchange {
	x := h.openExchange(e, rule, scheduled, want)
	delete(h.exchanges, scheduled)
	return x
}

func (h *History) openExchange(
	e schemas.Event, rule string, scheduled int64, want exchange,
) *exchange {
	x := h.exchanges[scheduled]
	switch {
	case x == nil:
		h.report(rule, e.ID, "%s names event %d, which asked for nothing that is still open",
			e.Type(), scheduled)
		return nil
	case x.kind != want.kind:
		h.report(rule, e.ID, "%s names event %d, which is %s; want %s",
			e.Type(), scheduled, x.kind, want.kind)
		return nil
	case x.name != want.name || x.scope != want.scope:
		h.report(rule, e.ID, "%s is about %q in scope %q; event %d asked for %q in scope %q",
			e.Type(), want.name, want.scope, scheduled, x.name, x.scope)
	}
	return x
}

// refused is answer for a refusal, which may also have been given at once: then it names nothing
// that was scheduled.
func (h *History) refused(e schemas.Event, rule string, scheduled int64, want exchange) *exchange {
	if scheduled == 0 {
		return nil
	}
	x := h.answer(e, rule, scheduled, want)
	if x != nil && want.decided != 0 && want.decided != x.decided {
		h.report(rule, e.ID, "%s names DeciderCompleted %d; event %d stands after %d",
			e.Type(), want.decided, scheduled, x.decided)
	}
	return x
}

func (h *History) applyChild(e schemas.Event) bool {
	switch a := e.Attributes.(type) {
	case *schemas.ChildStarted:
		x := h.openExchange(e, RuleChild, a.ScheduledEventID,
			exchange{kind: schemas.EventChildScheduled, name: a.WorkflowExecution.WorkflowID})
		if x == nil {
			break
		}
		if x.started != 0 {
			h.report(RuleChild, e.ID, "the child of event %d started at event %d already",
				a.ScheduledEventID, x.started)
		}
		if a.WorkflowExecution.Run != x.run {
			h.report(RuleChild, e.ID, "run %s of the child started; event %d asked for run %s",
				a.WorkflowExecution.Run, a.ScheduledEventID, x.run)
		}
		x.started = e.ID
	case *schemas.ChildStartFailed:
		x := h.refused(e, RuleChild, a.ScheduledEventID, exchange{
			kind: schemas.EventChildScheduled, name: a.WorkflowID,
			decided: a.DeciderCompletedEventID,
		})
		if x != nil && x.started != 0 {
			h.report(RuleChild, e.ID, "ChildStartFailed, but the child started at event %d", x.started)
		}
	case *schemas.ChildSuccess:
		h.childClosed(e, a.WorkflowExecution, a.ScheduledEventID, a.StartedEventID)
	case *schemas.ChildFailed:
		h.childClosed(e, a.WorkflowExecution, a.ScheduledEventID, a.StartedEventID)
	case *schemas.ChildTimedOut:
		h.childClosed(e, a.WorkflowExecution, a.ScheduledEventID, a.StartedEventID)
	case *schemas.ChildCanceled:
		h.childClosed(e, a.WorkflowExecution, a.ScheduledEventID, a.StartedEventID)
	case *schemas.ChildTerminated:
		h.childClosed(e, a.WorkflowExecution, a.ScheduledEventID, a.StartedEventID)
	default:
		return false
	}
	return true
}

// childClosed does not compare run ids: a child that continued as new closes under another one.
func (h *History) childClosed(e schemas.Event, child schemas.Execution, scheduled, started int64) {
	x := h.answer(e, RuleChild, scheduled,
		exchange{kind: schemas.EventChildScheduled, name: child.WorkflowID})
	if x != nil && (x.started == 0 || started != x.started) {
		h.report(RuleChild, e.ID,
			"%s names the start at event %d; the child started at event %d (0: it did not)",
			e.Type(), started, x.started)
	}
}

func (h *History) applyState(e schemas.Event) bool {
	var x *exchange
	var want schemas.DecisionType
	switch a := e.Attributes.(type) {
	case *schemas.StateRead:
		want = schemas.DecideGetState
		x = h.answer(e, RuleState, a.ScheduledEventID,
			exchange{kind: schemas.EventStateRequested, name: a.Key, scope: a.Scope})
	case *schemas.StateSet:
		h.stateSet(e, a)
		want = schemas.DecideSetState
		x = h.answer(e, RuleState, a.ScheduledEventID,
			exchange{kind: schemas.EventStateRequested, name: a.Key, scope: a.Scope})
	case *schemas.StateCleared:
		want = schemas.DecideClearState
		x = h.answer(e, RuleState, a.ScheduledEventID,
			exchange{kind: schemas.EventStateRequested, name: a.Key, scope: a.Scope})
	case *schemas.StateRefused:
		x := h.refused(e, RuleState, a.ScheduledEventID,
			exchange{kind: schemas.EventStateRequested, name: a.Key, scope: a.Scope})
		if x != nil && x.decided != a.DeciderCompletedEventID {
			h.report(RuleState, e.ID, "%s names DeciderCompleted %d; event %d stands after %d",
				e.Type(), a.DeciderCompletedEventID, a.ScheduledEventID, x.decided)
		}
		return true
	default:
		return false
	}
	if x != nil && x.asked != want {
		h.report(RuleState, e.ID, "%s answers %s; want an answer to %s", e.Type(), x.asked, want)
	}
	return true
}
