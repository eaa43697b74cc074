package machine

import "github.com/droverhq/drover/schemas"

// deliver lets an event happen to the run: it settles what has ended by it.
func (m *Machine) deliver(e schemas.Event) {
	switch a := e.Attributes.(type) {
	case *schemas.WorkflowStarted:
		m.begin(e, a)
	case *schemas.WorkflowCancelRequested:
		m.root.Cancel(ErrCanceled, ErrCanceled)
	case *schemas.Signal:
		m.Signals(a.SignalName).push(a.Input)

	case *schemas.TimerExpired:
		m.end("timer "+a.TimerID, Outcome{Kind: Succeeded})
	case *schemas.TimerScheduleFailed:
		m.end("timer "+a.TimerID,
			Outcome{Kind: Refused, Reason: string(a.Cause), Details: text(a.Details)})

	case *schemas.ActivityScheduled:
		m.known("activity "+a.ActivityID, e.ID)
	case *schemas.ActivityScheduleFailed:
		m.end("activity "+a.ActivityID,
			Outcome{Kind: Refused, Reason: string(a.Cause), Details: text(a.Details)})
	default:
		if id := endOfActivity(a); id != 0 {
			m.endOf(id, outcomeOfActivity(a))
			return
		}
		m.deliverOthers(e)
	}
}

// known notes which event has scheduled something: what comes later names that event alone.
func (m *Machine) known(key string, id int64) {
	if f := m.open[key]; f != nil {
		m.scheduled[id] = f
		delete(m.open, key)
	}
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

// endOfActivity returns the event that has scheduled the activity which ends by an event; 0 if none
// does.
func endOfActivity(a schemas.Attributes) int64 {
	switch a := a.(type) {
	case *schemas.ActivitySuccess:
		return a.ScheduledEventID
	case *schemas.ActivityFailed:
		return a.ScheduledEventID
	case *schemas.ActivityTimedOut:
		return a.ScheduledEventID
	case *schemas.ActivityScheduledTimeout:
		return a.ScheduledEventID
	case *schemas.ActivityCanceled:
		return a.ScheduledEventID
	}
	return 0
}

func outcomeOfActivity(a schemas.Attributes) Outcome {
	switch a := a.(type) {
	case *schemas.ActivitySuccess:
		return Outcome{Kind: Succeeded, Result: a.Result}
	case *schemas.ActivityFailed:
		return Outcome{Kind: Failed, Reason: a.Reason, Details: a.Details}
	case *schemas.ActivityTimedOut:
		return Outcome{Kind: TimedOut, Reason: string(a.TimeoutType), Details: a.Details}
	case *schemas.ActivityScheduledTimeout:
		return Outcome{Kind: TimedOut, Reason: string(a.TimeoutType)}
	case *schemas.ActivityCanceled:
		return Outcome{Kind: Canceled, Details: a.Details}
	}
	return Outcome{}
}

// text is words of the broker as details.
func text(s string) schemas.Payload {
	if s == "" {
		return nil
	}
	p, err := schemas.JSONPayload(s)
	if err != nil {
		return nil
	}
	return p
}
