package stats

import (
	"slices"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/schemas"
)

// Happens counts an event that a step makes. The state is still that before the event.
func (s *Stats) Happens(before *execution.State, e schemas.Event) {
	switch a := e.Attributes.(type) {
	case *schemas.WorkflowStarted:
		s.Types.Of(a.WorkflowType).Started.Add(1)
	case *schemas.Signal:
		if a.OriginRun == "" {
			s.Signals.Add(1)
		}
	case *schemas.LockAcquired:
		if l := before.Locks[schemas.LockKey(a.Scope, a.Lock)]; l != nil && l.Waits() {
			s.LockWait.Observe(e.Time.Sub(l.Since))
		}
	default:
		if !s.decides(before, e) && !s.works(before, e) {
			s.closes(before, e)
		}
	}
}

func (s *Stats) closes(before *execution.State, e schemas.Event) {
	status, closes := schemas.StatusOf(e.Type())
	if !closes {
		return
	}
	t := s.typeOf(before)
	t.Closed[slices.Index(Statuses[:], status)].Add(1)
	t.Took.Observe(e.Time.Sub(before.StartedAt))
}

func (s *Stats) typeOf(state *execution.State) *Type {
	if state.Start == nil { // which does not happen: its event is the first
		return s.Types.Of("")
	}
	return s.Types.Of(state.Start.WorkflowType)
}

// Indices of DecisionOutcomes and ActivityOutcomes.
const (
	decided = iota
	decisionFailed
	decisionTimedOut
	decisionUntaken
)

const (
	done = iota
	failed
	canceled
	timedOut
	untaken
)

// decides counts what a decider does; it reports whether the event is of that kind.
func (s *Stats) decides(before *execution.State, e schemas.Event) bool {
	d := &before.Decision
	outcome := decided
	switch a := e.Attributes.(type) {
	case *schemas.DeciderStarted:
		s.typeOf(before).Wait.Observe(e.Time.Sub(d.ScheduledBase))
		return true
	case *schemas.DeciderCompleted:
	case *schemas.DeciderFailed:
		outcome = decisionFailed
	case *schemas.DeciderTimedOut:
		if outcome = decisionTimedOut; a.StartedEventID == 0 {
			outcome = decisionUntaken
		}
	default:
		return false
	}
	t := s.typeOf(before)
	t.Decisions[outcome].Add(1)
	if outcome != decisionUntaken {
		t.Deciding.Observe(e.Time.Sub(d.StartedBase))
	}
	return true
}

// works counts what becomes of activities; it reports whether the event is of that kind.
func (s *Stats) works(before *execution.State, e schemas.Event) bool {
	switch a := e.Attributes.(type) {
	case *schemas.ActivityStarted:
		s.of(before, a.ScheduledEventID, func(act *execution.Activity, c *Activity) {
			c.Wait.Observe(e.Time.Sub(max(act.ScheduledBase, act.NotBefore)))
		})
	case *schemas.ActivityRetryScheduled:
		s.of(before, a.ScheduledEventID,
			func(_ *execution.Activity, c *Activity) { c.Retries.Add(1) })
	case *schemas.ActivityInterrupted:
		s.of(before, a.ScheduledEventID,
			func(_ *execution.Activity, c *Activity) { c.Interrupted.Add(1) })
	case *schemas.ActivitySuccess:
		s.ended(before, a.ScheduledEventID, done, e.Time)
	case *schemas.ActivityFailed:
		s.ended(before, a.ScheduledEventID, failed, e.Time)
	case *schemas.ActivityCanceled:
		s.ended(before, a.ScheduledEventID, canceled, e.Time)
	case *schemas.ActivityTimedOut:
		s.ended(before, a.ScheduledEventID, timedOut, e.Time)
	case *schemas.ActivityScheduledTimeout:
		s.ended(before, a.ScheduledEventID, untaken, e.Time)
	default:
		return false
	}
	return true
}

func (s *Stats) ended(before *execution.State, id int64, outcome int, at schemas.Timestamp) {
	s.of(before, id, func(act *execution.Activity, c *Activity) {
		c.Outcomes[outcome].Add(1)
		if act.Started != 0 {
			c.Took.Observe(at.Sub(act.StartedBase))
		}
	})
}

func (s *Stats) of(
	before *execution.State, id int64, count func(*execution.Activity, *Activity),
) {
	if act := before.Activities[id]; act != nil {
		count(act, s.Activities.Of(ListType{act.Scheduled.List, act.Scheduled.ActivityType}))
	}
}
