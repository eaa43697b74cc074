package explain

import (
	"fmt"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/internal/rootcause"
	"github.com/droverhq/drover/schemas"
)

// Situation is what the owner of a run knows beside its state.
type Situation struct {
	Now       schemas.Timestamp
	Namespace string
	Config    *execution.Config
	// Lock is the record of a lock by its key; nil if it is not known.
	Lock func(key string) *schemas.LockRecord

	Asked     bool // a decider was, for a decision that is still wanted
	AskedAt   schemas.Timestamp
	Confirmed bool // a decider has the question
	Reasks    int  // how often the question was repeated
	NoPoller  bool // nobody listened
	BackingUp bool // the decider has failed and its backoff runs
}

// Why tells in one sentence what a run waits for, with the names and times that matter.
func Why(s *execution.State, in *Situation) string {
	return because(s, in) + nearsLimit(s, in.Config) + keptOpen(s)
}

func because(s *execution.State, in *Situation) string {
	switch {
	case s.Closed():
		return Closed(s)
	case s.Paused != nil && s.Paused.Cause == schemas.CauseDeciderAttempts:
		return fmt.Sprintf("it is parked: %s; mend the decider of type %q, then: drover resume %s",
			s.Paused.Reason, s.Start.WorkflowType, s.WorkflowID)
	case s.Paused != nil:
		return fmt.Sprintf(
			"it is paused%s; go on with: drover resume %s",
			reason(s.Paused.Reason),
			s.WorkflowID,
		)
	case in.NoPoller, in.Reasks > 0 && in.Asked && !in.Confirmed: // it is asked again now and then
		return fmt.Sprintf(
			"no decider for type %q is listening (decision wanted since %s); start one in namespace %q",
			s.Start.WorkflowType,
			ago(in.Now, s.Decision.ScheduledBase),
			in.Namespace,
		)
	case in.BackingUp:
		w, _ := s.WantsDecider(in.Config)
		return fmt.Sprintf(
			"its decider of type %q failed or timed out %d times in a row and is asked again at %s%s",
			s.Start.WorkflowType,
			s.Decision.Failures,
			w.NotBefore,
			refusedLast(s),
		)
	case in.Asked && !in.Confirmed:
		return fmt.Sprintf("a decider of type %q is being asked since %s%s",
			s.Start.WorkflowType, ago(in.Now, in.AskedAt), failedBefore(s))
	case in.Asked:
		return fmt.Sprintf("a decider of type %q is deciding since %s%s",
			s.Start.WorkflowType, ago(in.Now, in.AskedAt), failedBefore(s))
	}
	return openBecause(s, in.Now, in.Lock)
}

// failedBefore tells that the decider which is asked has failed at this.
func failedBefore(s *execution.State) string {
	if s.Decision.Failures == 0 {
		return ""
	}
	return fmt.Sprintf(
		"; it failed or timed out %s before%s",
		count(s.Decision.Failures, "time", "times"),
		refusedLast(s),
	)
}

// refusedLast tells of a decision of which everything was refused, which counts as a failed one, and
// of code that does not fit the history.
func refusedLast(s *execution.State) string {
	switch {
	case s.Decision.Refusal != "":
		return "; everything that it decided was refused, " + s.Decision.Refusal
	case s.Decision.Mismatches > 0:
		return fmt.Sprintf("; its code does not do what the history says (%s)",
			schemas.CauseNonDeterministic)
	}
	return ""
}

// Closed tells how a closed run ended.
func Closed(s *execution.State) string {
	if s.Close == nil {
		return "it is closed"
	}
	because := fmt.Sprintf("it is closed: %s at %s", s.Status, s.Close.Time)
	if r := Result(s); r.Reason != "" {
		because += ", reason: " + r.Reason
		if cause := rootcause.Of(r.Details); cause != "" {
			because += ", cause: " + cause
		}
	}
	return because
}

// nearsLimit tells that the history of an open run will soon be too long.
func nearsLimit(s *execution.State, c *execution.Config) string {
	left := c.EventsLeft(s.LastID)
	if left == 0 || s.Closed() {
		return ""
	}
	return fmt.Sprintf(
		"; its history has %d events: from %d on nothing may lengthen it, and after %d more it is terminated:"+
			" its decider must continue as new",
		s.LastID,
		c.MaxEvents,
		left,
	)
}

// keptOpen tells that an open run is kept from continuing as new.
func keptOpen(s *execution.State) string {
	held := s.Continuing.Held
	if held == nil || s.Closed() {
		return ""
	}
	return fmt.Sprintf(
		"; it is held%s and is not asked to continue as new: drover release %s",
		reason(held.Reason),
		s.WorkflowID,
	)
}
