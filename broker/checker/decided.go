package checker

import "github.com/droverhq/drover/schemas"

// checkDecided checks that what a decider decided stands directly after its DeciderCompleted, and
// ends the block of decisions at the first event that is not one.
func (h *History) checkDecided(e schemas.Event) {
	completed, decided := schemas.DecidedBy(e.Attributes)
	d := &h.decider
	switch {
	case !decided:
		if !h.inBlock(e, completed) {
			d.block = 0
			h.checkAgain(e.Type())
		}
	case d.block == 0:
		h.report(RuleDecided, e.ID,
			"%s says that it was decided at event %d, but does not stand directly after it",
			e.Type(), completed)
	case completed != d.block:
		h.report(RuleDecided, e.ID, "%s names DeciderCompleted %d; it stands after %d",
			e.Type(), completed, d.block)
	}
}

// inBlock tells whether e may stand between decisions although it is none itself.
func (h *History) inBlock(e schemas.Event, completed int64) bool {
	if h.decider.block == 0 {
		return false
	}
	switch a := e.Attributes.(type) {
	case *schemas.ActivityCanceled:
		act := h.activities[a.ScheduledEventID]
		return act != nil && act.running == 0 && act.cancelRequested > h.decider.block
	case *schemas.ChildStartFailed, *schemas.SignalExternalFailed, *schemas.CancelExternalFailed:
		return completed == h.decider.block // scheduled and refused in one go
	case *schemas.LockAcquired:
		return h.askedInBlock(a.ScheduledEventID) // asked again for what the run holds
	case *schemas.StateSet:
		return h.askedInBlock(a.ScheduledEventID) // a lock that the run holds
	case *schemas.StateCleared:
		return h.askedInBlock(a.ScheduledEventID)
	case *schemas.StateRefused:
		return h.askedInBlock(a.ScheduledEventID)
	case *schemas.LockReleased, *schemas.WorkflowFailed, *schemas.Unknown:
		return true // written by the service, or not known
	}
	return false
}

// askedInBlock tells whether an open exchange was asked for in the block of decisions.
func (h *History) askedInBlock(scheduled int64) bool {
	x := h.exchanges[scheduled]
	return x != nil && x.decided == h.decider.block
}
