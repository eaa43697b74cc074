package checker

import "github.com/droverhq/drover/schemas"

// timer is a timer that has neither expired nor been canceled.
type timer struct {
	scheduled int64
	since     instant
	after     schemas.Duration
}

func (h *History) applyTimer(e schemas.Event) bool {
	switch a := e.Attributes.(type) {
	case *schemas.TimerScheduled:
		if t := h.timers[a.TimerID]; t != nil {
			h.report(RuleTimerID, e.ID, "timer %q is open since event %d", a.TimerID, t.scheduled)
		}
		h.timers[a.TimerID] = &timer{scheduled: e.ID, since: h.now(e), after: a.StartToFireTimeout}
	case *schemas.TimerExpired:
		if t := h.endTimer(e, a.TimerID, a.ScheduledEventID); t != nil && t.after != 0 {
			h.checkEarly(e, t.since, t.after, "the timer's duration")
		}
	case *schemas.TimerCanceled:
		h.endTimer(e, a.TimerID, a.ScheduledEventID)
	case *schemas.TimerScheduleFailed:
		if a.Cause == schemas.CauseTimerIDInUse && h.timers[a.TimerID] == nil {
			h.report(RuleRefusal, e.ID, "no open timer has the id %q", a.TimerID)
		}
	case *schemas.TimerCancelFailed:
		if t := h.timers[a.TimerID]; a.Cause == schemas.CauseTimerIDUnknown && t != nil {
			h.report(RuleRefusal, e.ID, "timer %q is open since event %d", a.TimerID, t.scheduled)
		}
	default:
		return false
	}
	return true
}

// endTimer closes the timer that an event names and returns it, or nil if it is not open.
func (h *History) endTimer(e schemas.Event, id string, scheduled int64) *timer {
	t := h.timers[id]
	if t == nil || t.scheduled != scheduled {
		h.report(RuleTimer, e.ID, "%s names timer %q of event %d, which is not open",
			e.Type(), id, scheduled)
		return nil
	}
	delete(h.timers, id)
	return t
}
