package execution

import (
	"fmt"
	"strings"

	"github.com/droverhq/drover/schemas"
)

// Wanted says what a decider is wanted for.
type Wanted struct {
	// StartedID is the id that the DeciderStarted has, or will have: the upper end of the window.
	StartedID int64
	// Started says that the DeciderStarted is in the history: the decider that took the task was
	// asked by an owner who is gone, so the same task is asked again.
	Started bool
	// NotBefore is the end of the backoff; 0 means at once.
	NotBefore schemas.Timestamp
}

// WantsDecider tells whether a decider is to be asked, and when.
func (s *State) WantsDecider(c *Config) (Wanted, bool) {
	d := &s.Decision
	switch {
	case s.Closed():
		return Wanted{}, false
	case d.Started != 0:
		return Wanted{StartedID: d.Started, Started: true}, true
	case d.Scheduled == 0 || s.Paused != nil:
		return Wanted{}, false
	}
	w := Wanted{StartedID: s.LastID + 1}
	if d.Failures > 0 {
		w.NotBefore = d.ScheduledBase.Add(c.backoff(d.Failures))
	}
	return w, true
}

// NextDecider is the event by which the next decider is wanted.
func (s *State) NextDecider(c *Config) *schemas.DeciderScheduled {
	return &schemas.DeciderScheduled{
		StartToCloseTimeout:    s.deciderTimeout(c),
		ScheduleToStartTimeout: s.Start.TaskScheduleToStartTimeout,
		TaskPriority:           s.Start.TaskPriority,
		Attempt:                s.Decision.Failures + 1,
	}
}

func (s *State) deciderTimeout(c *Config) schemas.Duration {
	if s.Start != nil && s.Start.TaskStartToCloseTimeout != 0 {
		return s.Start.TaskStartToCloseTimeout
	}
	return c.DeciderTimeout
}

func (st *step) taken(identity string) {
	if st.Decision.Scheduled != 0 && st.Decision.Started == 0 && st.Paused == nil {
		st.emit(
			&schemas.DeciderStarted{ScheduledEventID: st.Decision.Scheduled, Identity: identity})
	}
}

// reply applies a decider's answer. Nothing of it takes effect before its DeciderCompleted, and if
// the reply as a whole cannot be applied nothing of it does.
func (st *step) reply(m Reply) {
	d := st.Decision
	if d.Started == 0 {
		st.dead(DeadLateDecision, "no decider is running: this one timed out, or was answered for")
		return
	}
	if e := m.Reply.Error; e != nil {
		cause := schemas.CauseDeciderError
		switch e.Cause {
		case schemas.CauseDeciderPanic, schemas.CauseDecisionTooLarge, schemas.CauseNonDeterministic:
			cause = e.Cause
		}
		st.refuse(
			Refuse{Cause: cause, Reason: e.Reason, Details: e.Details, Identity: m.Reply.Identity})
		return
	}
	err := validate(m.Reply.Decisions)
	if err == nil {
		err = st.validateRetention(m.Reply.Decisions)
	}
	if err == nil {
		err = st.validateAttributes(m.Reply.Decisions)
	}
	if err != nil {
		st.refuse(Refuse{
			Cause: schemas.CauseInvalidDecision, Reason: err.Error(), Identity: m.Reply.Identity,
		})
		return
	}
	if st.whole = m.Reply.AllOrNothing; st.undone(m) {
		return
	}
	completed := st.emit(&schemas.DeciderCompleted{
		ScheduledEventID: d.StartedOf, StartedEventID: d.Started, ExecutionContext: m.Reply.Context,
		Identity: m.Reply.Identity, ReplyDigest: m.Digest, Again: m.Reply.Again,
	})
	refused := false
	for _, decision := range m.Reply.Decisions {
		if !st.decide(decision, completed) {
			refused = true
		}
	}
	switch {
	case st.Decision.Refusal != "" && !st.Closed():
		st.again("everything that it decided was refused, "+st.Decision.Refusal, "")
	case refused || m.Reply.Again:
		// What asks for another decision each time is bounded by the limit of events, as all that
		// lengthens a history without end: each time adds three.
		st.wake()
	}
}

// refuse ends the running decision without effect and asks again after a backoff, or parks the run.
func (st *step) refuse(m Refuse) {
	d := st.Decision
	if d.Started == 0 {
		return
	}
	reason, details := clip(m.Reason, schemas.MaxDeciderReason), clip(m.Details,
		schemas.MaxDeciderDetails)
	st.emit(&schemas.DeciderFailed{
		Cause: m.Cause, Reason: reason, Details: details, Identity: m.Identity,
		ScheduledEventID: d.StartedOf, StartedEventID: d.Started,
	})
	st.again(reason, details)
}

// clip cuts what a decider has said to n bytes of text: it stands twice in the record that parks
// the run, and once in each before.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	const cut = "…"
	return strings.ToValidUTF8(s[:n-len(cut)], "") + cut
}

// mostMismatches is how often in a row the code of a decider may not fit the history before the run
// is parked: to ask the same code again does not help, and three may have found another worker.
const mostMismatches = 3

// again follows a decider's failure or timeout: another try, or the end of patience.
func (st *step) again(reason, details string) {
	d := &st.Decision
	of, n := "", d.Failures
	if d.Mismatches >= mostMismatches {
		of, n = " with "+string(schemas.CauseNonDeterministic), d.Mismatches
	}
	if (of != "" || d.Failures >= st.c.DeciderAttempts) && st.Paused == nil {
		st.emit(&schemas.WorkflowPaused{
			Cause:   schemas.CauseDeciderAttempts,
			Reason:  fmt.Sprintf("the decider failed %d times in a row%s: %s", n, of, reason),
			Details: details,
		})
		return
	}
	st.wake()
}

// validateAttributes bounds what the run shows in lists: it stands in the headers of its records,
// and in the first record of the run that continues it.
func (s *State) validateAttributes(decisions []schemas.Decision) error {
	var next *State
	for i, d := range decisions {
		a, ok := d.Attributes.(*schemas.SetAttributes)
		if !ok {
			continue
		}
		if next == nil {
			next = &State{Attributes: s.Attributes}
		}
		next.setAttributes(a.Attributes)
		if n := schemas.AttributesSize(next.Attributes); n > schemas.MaxAttributes &&
			n > schemas.AttributesSize(s.Attributes) {
			return fmt.Errorf(
				"decision %d: SetAttributes: the run would have %d bytes of attributes; want at most %d",
				i+1, n, schemas.MaxAttributes)
		}
	}
	return nil
}

// validate finds what makes a reply unusable as a whole. Positions are counted from 1, as SWF does.
func validate(decisions []schemas.Decision) error {
	for i, d := range decisions {
		if u, ok := d.Attributes.(*schemas.UnknownDecision); ok {
			if u.Type == "" {
				return fmt.Errorf(
					"decision %d has no type; want one of the names in the documentation of decisions",
					i+1)
			}
			return fmt.Errorf("decision %d: %q is no decision that this version knows", i+1, u.Type)
		}
		if d.Attributes == nil {
			return fmt.Errorf("decision %d is empty", i+1)
		}
		if !supported(d.Attributes) {
			return fmt.Errorf("decision %d: this version does not carry out %s", i+1, d.Type())
		}
		if d.Closes() && i != len(decisions)-1 {
			return fmt.Errorf("decision %d: %s must be the last decision of its reply",
				i+1, d.Type())
		}
	}
	if n := len(decisions); n > 1 && decisions[n-1].Closes() {
		for i, d := range decisions[:n-1] {
			switch d.Type() {
			case schemas.DecideScheduleActivity,
				schemas.DecideScheduleTimer,
				schemas.DecideAcquireLock,
				schemas.DecideGetState,
				schemas.DecideSetState,
				schemas.DecideClearState:
				return fmt.Errorf("decision %d: %s cannot stand beside %s, which ends the run",
					i+1, d.Type(), decisions[n-1].Type())
			}
		}
	}
	return nil
}
