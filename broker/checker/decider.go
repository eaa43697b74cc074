package checker

import "github.com/droverhq/drover/schemas"

// limits are the timeouts of a decision.
type limits struct{ startToClose, scheduleToStart schemas.Duration }

// decider is where the run stands with its decider.
type decider struct {
	pending       int64 // the DeciderScheduled that waits, 0 if none
	pendingSince  instant
	pendingLimits limits

	running       int64 // the DeciderStarted that is not settled, 0 if none
	runningOf     int64 // the DeciderScheduled that it took
	runningSince  instant
	runningLimits limits

	started int64 // the last DeciderStarted: what stands after it, no decider has seen
	woken   int64 // the last waking event
	wokenBy schemas.EventType
	blamed  int64 // the waking event that RuleWake was reported for

	block int64 // the DeciderCompleted that decisions may stand after here, 0 if none
	// unseen: a waking event came between the start and the completion of block; others: one that
	// is no signal.
	unseen, others bool
	// blockStart is the DeciderStarted of block.
	blockStart int64
	// again is the DeciderCompleted whose reply has asked for another decision, until that is
	// scheduled; 0 if there is none.
	again int64
	// undone are the replies in a row of which nothing stood since the decider had not seen all.
	undone int
	// mismatches are the latest failures in a row as NON_DETERMINISTIC. unparked is the last of so
	// many that the run is to be paused directly after it, until that is seen; else 0.
	mismatches int
	unparked   int64
}

// mostMismatches is how often in a row the code of a decider may not fit the history.
const mostMismatches = 3

// mostUndone is how often in a row nothing of a reply that closes the run may stand.
const mostUndone = 10

func (h *History) applyDecider(e schemas.Event) bool {
	switch a := e.Attributes.(type) {
	case *schemas.DeciderScheduled:
		h.deciderScheduled(e, a)
	case *schemas.DeciderStarted:
		h.deciderStarted(e, a)
	case *schemas.DeciderCompleted:
		d := &h.decider
		h.settle(e, a.ScheduledEventID, a.StartedEventID)
		d.block, d.blockStart, d.unseen = e.ID, d.started, d.woken > d.started
		d.others = h.unread.others
		d.mismatches = 0
		if !d.unseen {
			d.undone = 0
		}
		if a.Again && d.pending == 0 && h.paused == 0 {
			d.again = e.ID
		}
	case *schemas.DeciderFailed:
		h.settle(e, a.ScheduledEventID, a.StartedEventID)
		if a.Cause == schemas.CauseUnhandledDecision {
			h.checkUndone(e, a)
		}
		h.mismatch(e, a.Cause == schemas.CauseNonDeterministic)
	case *schemas.DeciderTimedOut:
		h.deciderTimedOut(e, a)
	case *schemas.WorkflowSuccess:
		h.checkClose(e, a.DeciderCompletedEventID, a.UnreadSignals)
	case *schemas.WorkflowFailed:
		h.checkClose(e, a.DeciderCompletedEventID, a.UnreadSignals)
	case *schemas.WorkflowCanceled:
		h.checkClose(e, a.DeciderCompletedEventID, a.UnreadSignals)
	case *schemas.WorkflowCloseFailed:
		if a.Cause == schemas.CauseUnhandledDecision && h.decider.block != 0 &&
			h.decider.woken <= h.decider.blockStart {
			h.report(RuleUnhandled, e.ID, "%s is refused as %s, but nothing woke the decider "+
				"since its start at event %d", a.Decision, a.Cause, h.decider.blockStart)
		}
	default:
		return false
	}
	return true
}

func (h *History) deciderScheduled(e schemas.Event, a *schemas.DeciderScheduled) {
	d := &h.decider
	if d.pending != 0 {
		h.report(RuleDeciderScheduled, e.ID,
			"DeciderScheduled while the one of event %d is pending", d.pending)
	}
	if max(d.woken, h.lastUnknown) <= d.started && d.again == 0 {
		h.report(RuleDeciderScheduled, e.ID,
			"DeciderScheduled, but nothing woke the decider since its start at event %d", d.started)
	}
	if h.paused != 0 {
		h.report(RulePaused, e.ID, "DeciderScheduled while the run is paused since event %d",
			h.paused)
	}
	d.pending, d.pendingSince, d.again = e.ID, h.now(e), 0
	d.pendingLimits = limits{
		startToClose:    firstSet(a.StartToCloseTimeout, h.scheduled.startToClose),
		scheduleToStart: firstSet(a.ScheduleToStartTimeout, h.scheduled.scheduleToStart),
	}
}

func (h *History) deciderStarted(e schemas.Event, a *schemas.DeciderStarted) {
	d := &h.decider
	if d.running != 0 {
		h.report(RuleDeciderStarted, e.ID,
			"DeciderStarted while the decider of event %d is running", d.running)
	}
	switch {
	case d.pending == 0:
		h.report(RuleDeciderStarted, e.ID, "DeciderStarted, but no DeciderScheduled is pending")
		h.checkWake()
	case a.ScheduledEventID != d.pending:
		h.report(RuleDeciderStarted, e.ID,
			"DeciderStarted names event %d; DeciderScheduled %d is pending",
			a.ScheduledEventID, d.pending)
	}
	if h.paused != 0 {
		h.report(RulePaused, e.ID, "DeciderStarted while the run is paused since event %d",
			h.paused)
	}
	d.running, d.runningOf, d.runningSince, d.runningLimits = e.ID, a.ScheduledEventID, h.now(e),
		d.pendingLimits
	d.started, d.pending = e.ID, 0
}

// settle ends the running decider.
func (h *History) settle(e schemas.Event, scheduled, started int64) {
	d := &h.decider
	switch {
	case d.running == 0:
		h.report(RuleDeciderClosed, e.ID, "%s, but no decider is running", e.Type())
	case scheduled != d.runningOf || started != d.running:
		h.report(RuleDeciderClosed, e.ID,
			"%s names events %d and %d; the running decider is of %d and %d",
			e.Type(), scheduled, started, d.runningOf, d.running)
	}
	d.running = 0
	d.waitFrom(e)
}

// waitFrom lets the wait of a pending decision begin with e: nobody could have taken it before. By
// the server's clock it is known to have begun with the DeciderScheduled; that is the lower bound.
func (d *decider) waitFrom(e schemas.Event) {
	if d.pending != 0 {
		d.pendingSince.event = e.Time
	}
}

func (h *History) deciderTimedOut(e schemas.Event, a *schemas.DeciderTimedOut) {
	d := &h.decider
	switch a.TimeoutType {
	case schemas.TimeoutStartToClose:
		if d.running != 0 {
			h.checkEarly(e, d.runningSince, d.runningLimits.startToClose,
				"the decider's start-to-close timeout")
		}
		h.settle(e, a.ScheduledEventID, a.StartedEventID)
		h.mismatch(e, false)
	case schemas.TimeoutScheduleToStart:
		if d.pending == 0 || a.ScheduledEventID != d.pending || a.StartedEventID != 0 {
			h.report(RuleDeciderClosed, e.ID,
				"DeciderTimedOut names events %d and %d; DeciderScheduled %d is pending and not started (0: none)",
				a.ScheduledEventID, a.StartedEventID, d.pending)
		}
		if d.pending != 0 {
			h.checkEarly(e, d.pendingSince, d.pendingLimits.scheduleToStart,
				"the decider's schedule-to-start timeout")
			if blocker := max(d.running, h.paused); blocker != 0 {
				h.report(RuleEarly, e.ID,
					"nobody took DeciderScheduled %d in time, it says; because of event %d nobody could",
					d.pending, blocker)
			}
		}
		d.pending = 0
	default:
		h.report(RuleEvent, e.ID, "DeciderTimedOut of type %q; want %s or %s",
			a.TimeoutType, schemas.TimeoutStartToClose, schemas.TimeoutScheduleToStart)
		h.settle(e, a.ScheduledEventID, a.StartedEventID)
	}
}

// checkClose checks a decision that ends the run, other than a continuation. The service may fail a
// run too; then completed is 0.
func (h *History) checkClose(e schemas.Event, completed int64, unread int) {
	if h.decider.undone < mostUndone {
		h.checkSeen(e, completed)
	}
	if completed != 0 && h.decider.block != 0 {
		h.checkUnread(e, unread)
	}
}

// checkSeen checks that the decider which has ended the run had seen all.
func (h *History) checkSeen(e schemas.Event, completed int64) {
	if completed != 0 && h.decider.block != 0 && h.decider.unseen {
		h.report(RuleUnhandled, e.ID,
			"%s, but a waking event came between the decider's start at event %d and its DeciderCompleted",
			e.Type(), h.decider.blockStart)
	}
}

// checkUndone checks a reply of which nothing stands, since it would have closed the run and the
// decider had not seen all.
func (h *History) checkUndone(e schemas.Event, a *schemas.DeciderFailed) {
	d := &h.decider
	switch {
	case d.woken <= d.started:
		h.report(RuleUnhandled, e.ID, "nothing stands of a reply that says %s, as %s, but nothing "+
			"woke the decider since its start at event %d", a.Decision, a.Cause, d.started)
	case d.undone >= mostUndone && a.Decision != schemas.DecideContinueAsNew:
		h.report(RuleUnhandled, e.ID,
			"nothing stands of a reply that says %s, for more than %d times in a row",
			a.Decision, mostUndone)
	}
	d.undone++
}

// mismatch counts the failures of a decider whose code does not fit the history.
func (h *History) mismatch(e schemas.Event, is bool) {
	d := &h.decider
	if !is {
		d.mismatches = 0
		return
	}
	if d.mismatches++; d.mismatches >= mostMismatches && h.paused == 0 {
		d.unparked = e.ID
	}
}

// checkParked checks that a run is paused directly after its decider's code has not fitted the
// history for so many times. by is what stands there; empty if the history ends.
func (h *History) checkParked(by schemas.EventType) {
	d := &h.decider
	if d.unparked != 0 && by != schemas.EventWorkflowPaused {
		h.report(RulePaused, d.unparked, "the decider failed as %s for %d times in a row, and no "+
			"WorkflowPaused follows", schemas.CauseNonDeterministic, d.mismatches)
	}
	d.unparked = 0
}

// checkAgain checks that the decision which a reply has asked for is scheduled after what the reply
// decided. by is what stands there; empty if the history ends.
func (h *History) checkAgain(by schemas.EventType) {
	d := &h.decider
	if d.again == 0 || h.Closed() || by == schemas.EventDeciderScheduled {
		return
	}
	if by != schemas.EventWorkflowPaused && !by.Closes() { // parked, or ended by the service
		h.report(RuleWake, d.again, "the decider has asked for another decision, and no "+
			"DeciderScheduled stands after what it decided")
	}
	d.again = 0
}

// checkWake checks that somebody will look at the last waking event. It blames each event once.
func (h *History) checkWake() {
	d := &h.decider
	if h.Closed() || h.paused != 0 || d.pending != 0 || d.woken <= d.started ||
		d.woken == d.blamed {
		return
	}
	d.blamed = d.woken
	h.report(RuleWake, d.woken,
		"no DeciderScheduled is pending after %s, and no decider has seen it", d.wokenBy)
}
