package execution

import (
	"fmt"
	"slices"
	"strings"

	"github.com/droverhq/drover/schemas"
)

// openWork is a dumb idea of what a run has open: what was asked for and has no answer, by the events that say so.
type openWork struct {
	work    map[string]bool // by kind and event, or by kind and name
	decider schemas.EventType
	pending bool // a DeciderScheduled that nobody has taken
	paused  bool
	held    bool
	trigger int64 // the first signal or timer
	handled int64 // the last event that a completed decision has seen
}

func (o *openWork) see(e schemas.Event) {
	done := func(kind string, event int64) { delete(o.work, fmt.Sprint(kind, event)) }
	typ := string(e.Type())
	switch a := e.Attributes.(type) {
	case *schemas.ActivityScheduled, *schemas.ChildScheduled, *schemas.SignalExternalScheduled, *schemas.CancelExternalScheduled, *schemas.StateRequested:
		o.work[fmt.Sprint(typ, e.ID)] = true
	case *schemas.ActivitySuccess:
		done("ActivityScheduled", a.ScheduledEventID)
	case *schemas.ActivityFailed:
		done("ActivityScheduled", a.ScheduledEventID)
	case *schemas.ActivityCanceled:
		done("ActivityScheduled", a.ScheduledEventID)
	case *schemas.ActivityTimedOut:
		done("ActivityScheduled", a.ScheduledEventID)
	case *schemas.ActivityScheduledTimeout:
		done("ActivityScheduled", a.ScheduledEventID)
	case *schemas.ChildSuccess:
		done("ChildScheduled", a.ScheduledEventID)
	case *schemas.ChildFailed:
		done("ChildScheduled", a.ScheduledEventID)
	case *schemas.ChildCanceled:
		done("ChildScheduled", a.ScheduledEventID)
	case *schemas.ChildTimedOut:
		done("ChildScheduled", a.ScheduledEventID)
	case *schemas.ChildTerminated:
		done("ChildScheduled", a.ScheduledEventID)
	case *schemas.ChildStartFailed:
		done("ChildScheduled", a.ScheduledEventID)
	case *schemas.ExternalSignaled:
		done("SignalExternalScheduled", a.ScheduledEventID)
	case *schemas.SignalExternalFailed:
		done("SignalExternalScheduled", a.ScheduledEventID)
	case *schemas.ExternalCancelRequested:
		done("CancelExternalScheduled", a.ScheduledEventID)
	case *schemas.CancelExternalFailed:
		done("CancelExternalScheduled", a.ScheduledEventID)
	case *schemas.StateRead:
		done("StateRequested", a.ScheduledEventID)
	case *schemas.StateSet:
		done("StateRequested", a.ScheduledEventID)
	case *schemas.StateCleared:
		done("StateRequested", a.ScheduledEventID)
	case *schemas.StateRefused:
		done("StateRequested", a.ScheduledEventID)
	case *schemas.LockRequested:
		o.work["lock "+schemas.LockKey(a.Scope, a.Lock)] = true
	case *schemas.LockAcquired:
		delete(o.work, "lock "+schemas.LockKey(a.Scope, a.Lock))
	case *schemas.LockRefused:
		if a.ScheduledEventID != 0 {
			delete(o.work, "lock "+schemas.LockKey(a.Scope, a.Lock))
		}
	case *schemas.LockReleased:
		delete(o.work, "lock "+schemas.LockKey(a.Scope, a.Lock))
	case *schemas.WorkflowPaused:
		o.paused = true
	case *schemas.WorkflowResumed:
		o.paused = false
	case *schemas.ContinuationHeld:
		o.held = true
	case *schemas.ContinuationReleased:
		o.held = false
	case *schemas.Signal, *schemas.TimerExpired:
		if o.trigger == 0 {
			o.trigger = e.ID
		}
	case *schemas.DeciderCompleted:
		o.handled = a.StartedEventID
	}
	switch {
	case e.Type() == schemas.EventDeciderScheduled:
		o.pending = true
	case strings.HasPrefix(typ, "Decider"):
		o.decider = e.Type()
		a, timedOut := e.Attributes.(*schemas.DeciderTimedOut)
		o.pending = o.pending && e.Type() != schemas.EventDeciderStarted && !(timedOut && a.StartedEventID == 0)
	}
}

// checkSuggestions looks at each ContinuationSuggested after an event: the run had a policy, nothing was open, and the reason holds (S2-6).
func (g *game) checkSuggestions(after int64) error {
	o := openWork{work: map[string]bool{}}
	var age, most schemas.Event // from where the thresholds count
	for i, e := range g.events {
		a, ok := e.Attributes.(*schemas.ContinuationSuggested)
		if i == 0 {
			age = e
		}
		if !ok {
			o.see(e)
			continue
		}
		p := g.events[0].Attributes.(*schemas.WorkflowStarted).Continuation
		byAge, byEvents := slices.Contains(a.Reasons, schemas.ContinueAge), slices.Contains(a.Reasons, schemas.ContinueEvents)
		switch {
		case e.ID <= after:
		case p == nil || o.held || o.paused || o.pending || len(o.work) > 0 || o.decider != schemas.EventDeciderCompleted:
			return fmt.Errorf("event %d asks to continue by the policy %+v, with this open: %+v", e.ID, p, o)
		case o.trigger == 0 || o.trigger > o.handled:
			return fmt.Errorf("event %d asks to continue before a signal or timer was handled: %+v", e.ID, o)
		case byAge && (p.After == 0 || e.Time < age.Time.Add(p.After)):
			return fmt.Errorf("event %d says that the run is old: %s after event %d, the policy is %+v", e.ID, e.Time.Sub(age.Time), age.ID, p)
		case byEvents && (p.Events == 0 || e.ID-1-most.ID < p.Events):
			return fmt.Errorf("event %d says that the run has many events after event %d; the policy is %+v", e.ID, most.ID, p)
		case len(a.Reasons) == 0:
			return fmt.Errorf("event %d asks to continue without a reason", e.ID)
		}
		if byAge {
			age = e
		}
		if byEvents {
			most = e
		}
		o.see(e)
	}
	return nil
}
