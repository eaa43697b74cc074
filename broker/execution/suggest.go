package execution

import (
	"slices"

	"github.com/droverhq/drover/schemas"
)

// A run with a continuation policy is asked to continue as new at a moment when that loses nothing
// (S2-6): nothing of it is open but timers, no decision is wanted, and it has handled a signal or a
// timer since it began. Its decider may ignore that, and is asked again when the threshold has
// passed once more. Locks that it holds go to the next run, and do not hinder.

// Continuing is what the history tells of asking the run to continue as new.
type Continuing struct {
	// Trigger is the latest Signal or TimerExpired; 0 if there was none.
	Trigger int64 `json:"trigger,omitempty"`
	// Held is the hold on the run; nil if there is none.
	Held *schemas.ContinuationHeld `json:"held,omitempty"`
	// Suggested is the latest ContinuationSuggested, 0 if there was none, and Reasons are its
	// reasons. Answered is the DeciderCompleted of the decision that saw it, 0 if there is none
	// yet, or if that decision wanted to continue and was refused.
	Suggested int64    `json:"suggested,omitempty"`
	Reasons   []string `json:"reasons,omitempty"`
	Answered  int64    `json:"answered,omitempty"`
	// AgeFrom and EventsFrom are the latest ContinuationSuggested with these reasons: from there
	// the threshold counts again. AgeBase is the time of AgeFrom.
	AgeFrom    int64             `json:"ageFrom,omitempty"`
	AgeBase    schemas.Timestamp `json:"ageBase,omitempty"`
	EventsFrom int64             `json:"eventsFrom,omitempty"`
}

// see folds an event that may concern it. It is called after the decider's part of the state has
// seen the event.
func (c *Continuing) see(s *State, e schemas.Event) {
	switch a := e.Attributes.(type) {
	case *schemas.WorkflowStarted:
		c.Held = a.Held
	case *schemas.Signal, *schemas.TimerExpired:
		c.Trigger = e.ID
	case *schemas.ContinuationSuggested:
		c.Suggested, c.Reasons, c.Answered = e.ID, a.Reasons, 0
		if slices.Contains(a.Reasons, schemas.ContinueAge) {
			c.AgeFrom, c.AgeBase = e.ID, e.Time
		}
		if slices.Contains(a.Reasons, schemas.ContinueEvents) {
			c.EventsFrom = e.ID
		}
	case *schemas.ContinuationHeld:
		c.Held = a
		s.rememberRequest(a.RequestID)
	case *schemas.ContinuationReleased:
		c.Held = nil
		s.rememberRequest(a.RequestID)
	case *schemas.DeciderCompleted:
		if c.Suggested != 0 && c.Answered == 0 && c.Suggested < a.StartedEventID {
			c.Answered = e.ID
		}
	case *schemas.WorkflowCloseFailed:
		if a.Decision == schemas.DecideContinueAsNew && a.DeciderCompletedEventID == c.Answered {
			c.Answered = 0
		}
	}
}

// ContinueReasons are why the decider is asked to continue as new; nil if it is not.
func (s *State) ContinueReasons() []string {
	if c := &s.Continuing; c.Suggested != 0 && c.Answered == 0 && c.Held == nil {
		return c.Reasons
	}
	return nil
}

// quiet tells whether nothing of the run is open but timers, and no decision is wanted.
func (s *State) quiet() bool {
	d := &s.Decision
	return s.Status == schemas.StatusOpen && !s.Copying() && d.Scheduled == 0 && d.Started == 0 &&
		len(s.Activities)+len(s.Children)+len(s.Externals)+len(s.Requests) == 0 && !s.waitsForLock()
}

func (s *State) waitsForLock() bool {
	for _, l := range s.Locks {
		if l.Waits() {
			return true
		}
	}
	return false
}

// continuable tells whether this is a moment to ask the run to continue as new.
func (s *State) continuable() bool {
	c := &s.Continuing
	return s.Start != nil && s.Start.Continuation != nil && c.Held == nil && c.Trigger != 0 &&
		c.Trigger <= s.Decision.Previous && s.quiet()
}

// ageDue is when the run is old enough to be asked, and the event from which that counts; ok is
// false if it never is.
func (s *State) ageDue() (at schemas.Timestamp, setBy int64, ok bool) {
	after := s.Start.Continuation.After
	switch c := &s.Continuing; {
	case !after.Limited():
		return 0, 0, false
	case c.AgeFrom != 0:
		return c.AgeBase.Add(after), c.AgeFrom, true
	default:
		return s.StartBase.Add(after), 1, true
	}
}

// eventsDue tells whether the run has so many events that it is to be asked. A decider that ignores
// that, and writes as many events each time it is asked, is not asked before something has
// happened.
func (s *State) eventsDue() bool {
	most, from := s.Start.Continuation.Events, s.Continuing.EventsFrom
	return most > 0 && s.LastID-from >= most && s.Continuing.Trigger > from
}

// suggest asks the run to continue as new, if this is a moment for that and there is a reason. That
// it is old enough an alarm says, which knows what is in the history (P-15).
func (st *step) suggest(old, recycle bool) {
	if !st.continuable() {
		return
	}
	var reasons []string
	if at, _, ok := st.ageDue(); ok && old && at <= st.now {
		reasons = append(reasons, schemas.ContinueAge)
	}
	if st.eventsDue() {
		reasons = append(reasons, schemas.ContinueEvents)
	}
	if recycle {
		reasons = append(reasons, schemas.ContinueRecycle)
	}
	if len(reasons) > 0 {
		st.emit(&schemas.ContinuationSuggested{Reasons: reasons})
		st.wake()
	}
}

// hold keeps the run from being asked to continue as new.
func (st *step) hold(r *schemas.ExecutionRequest) {
	if st.Continuing.Held == nil && st.Means(r) && !st.Repeated(r) {
		st.emit(&schemas.ContinuationHeld{
			Reason: r.Reason, RequestID: r.RequestID, Identity: r.Identity,
		})
	}
}

// release undoes a hold.
func (st *step) release(r *schemas.ExecutionRequest) {
	if st.Continuing.Held != nil && st.Means(r) && !st.Repeated(r) {
		st.emit(&schemas.ContinuationReleased{
			Reason: r.Reason, RequestID: r.RequestID, Identity: r.Identity,
		})
	}
}
