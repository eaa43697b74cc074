package machine

import "github.com/droverhq/drover/schemas"

// deliver lets an event happen to the run: it settles what has ended by it.
func (m *Machine) deliver(e schemas.Event) {
	switch a := e.Attributes.(type) {
	case *schemas.WorkflowStarted:
		m.begin(a)
	case *schemas.WorkflowCancelRequested:
		m.root.Cancel(ErrCanceled, ErrCanceled)
	case *schemas.Signal:
		m.Signals(a.SignalName).push(a.Input)

	case *schemas.TimerExpired:
		m.end("timer "+a.TimerID, Outcome{Kind: Succeeded})
	case *schemas.TimerScheduleFailed:
		m.end("timer "+a.TimerID, refused(a.Cause, a.Details))

	case *schemas.ActivityScheduled:
		m.known("activity "+a.ActivityID, e.ID)
	case *schemas.ActivityScheduleFailed:
		m.end("activity "+a.ActivityID, refused(a.Cause, a.Details))
	case *schemas.Marker:
		m.endStep(a.MarkerName, a.Details)
	case *schemas.MarkerFailed:
		m.settleStep(a.MarkerName, refused(a.Cause, a.Details))
	default:
		if m.deliverOther(e) {
			return
		}
		if id, o := ending(a); id != 0 {
			m.endOf(id, o)
		}
	}
}

// deliverOther is deliver for other workflows and locks. It reports false for what only ends something.
func (m *Machine) deliverOther(e schemas.Event) bool {
	switch a := e.Attributes.(type) {
	case *schemas.ChildScheduled:
		if f := m.known(childKey(a.WorkflowID, a.Control), e.ID); f != nil {
			f.run = a.Run
		}
	case *schemas.ChildStarted:
		if f := m.scheduled[a.ScheduledEventID]; f != nil {
			f.begin()
		}
	case *schemas.ChildStartFailed:
		m.refuse(childKey(a.WorkflowID, a.Control), a.ScheduledEventID, a.Cause, a.Details)
	case *schemas.SignalExternalScheduled:
		m.known(messageKey(a.Control), e.ID)
	case *schemas.SignalExternalFailed:
		m.refuse(messageKey(a.Control), a.ScheduledEventID, a.Cause, a.Details)
	case *schemas.CancelExternalScheduled:
		m.known(messageKey(a.Control), e.ID)
	case *schemas.CancelExternalFailed:
		m.refuse(messageKey(a.Control), a.ScheduledEventID, a.Cause, a.Details)
	default:
		return m.deliverLock(e)
	}
	return true
}

// deliverLock is deliver for locks.
func (m *Machine) deliverLock(e schemas.Event) bool {
	switch a := e.Attributes.(type) {
	case *schemas.LockRequested:
		m.known(lockKey(a.Scope, a.Lock), e.ID)
	case *schemas.LockAcquired:
		if f := m.scheduled[a.ScheduledEventID]; f != nil {
			f.value = a.Fence
		}
		m.endOf(a.ScheduledEventID, Outcome{Kind: Succeeded})
	case *schemas.LockRefused:
		if a.Decision != schemas.DecideReleaseLock {
			m.refuse(lockKey(a.Scope, a.Lock), a.ScheduledEventID, a.Cause, a.Details)
		}
	default:
		return false
	}
	return true
}

// known notes which event has scheduled something: what comes later names that event alone.
func (m *Machine) known(key string, id int64) *Future {
	f := m.open[key]
	if f != nil {
		m.scheduled[id] = f
		delete(m.open, key)
	}
	return f
}

// end settles what was asked for under a name.
func (m *Machine) end(key string, o Outcome) {
	if f := m.open[key]; f != nil {
		delete(m.open, key)
		f.settle(o)
	}
}

// endOf settles what an event has scheduled.
func (m *Machine) endOf(id int64, o Outcome) {
	if f := m.scheduled[id]; f != nil {
		delete(m.scheduled, id)
		f.settle(o)
	}
}

// refuse settles what was refused: at once, under its name, or later.
func (m *Machine) refuse(key string, scheduled int64, cause schemas.Cause, details string) {
	if scheduled == 0 {
		m.end(key, refused(cause, details))
	} else {
		m.endOf(scheduled, refused(cause, details))
	}
}

// ending returns the event that has scheduled what ends by an event, and how that ends; 0 if nothing
// does.
func ending(a schemas.Attributes) (scheduled int64, o Outcome) {
	switch a := a.(type) {
	case *schemas.ActivitySuccess:
		return a.ScheduledEventID, Outcome{Kind: Succeeded, Result: a.Result}
	case *schemas.ActivityFailed:
		return a.ScheduledEventID, Outcome{Kind: Failed, Reason: a.Reason, Details: a.Details}
	case *schemas.ActivityTimedOut:
		return a.ScheduledEventID,
			Outcome{Kind: TimedOut, Reason: string(a.TimeoutType), Details: a.Details}
	case *schemas.ActivityScheduledTimeout:
		return a.ScheduledEventID, Outcome{Kind: TimedOut, Reason: string(a.TimeoutType)}
	case *schemas.ActivityCanceled:
		return a.ScheduledEventID, Outcome{Kind: Canceled, Details: a.Details}
	case *schemas.ChildSuccess:
		return a.ScheduledEventID, Outcome{Kind: Succeeded, Result: a.Result}
	case *schemas.ChildFailed:
		return a.ScheduledEventID, Outcome{Kind: Failed, Reason: a.Reason, Details: a.Details}
	case *schemas.ChildTimedOut:
		return a.ScheduledEventID, Outcome{Kind: TimedOut, Reason: string(a.TimeoutType)}
	case *schemas.ChildCanceled:
		return a.ScheduledEventID, Outcome{Kind: Canceled, Details: a.Details}
	case *schemas.ChildTerminated:
		return a.ScheduledEventID, Outcome{Kind: Terminated}
	case *schemas.ExternalSignaled:
		return a.ScheduledEventID, Outcome{Kind: Succeeded}
	case *schemas.ExternalCancelRequested:
		return a.ScheduledEventID, Outcome{Kind: Succeeded}
	}
	return 0, Outcome{}
}

// refused is the end of what the broker does not begin.
func refused(cause schemas.Cause, details string) Outcome {
	return Outcome{Kind: Refused, Reason: string(cause), Details: schemas.Text(details)}
}
