package machine

import (
	"encoding/json"

	"github.com/droverhq/drover/schemas"
)

// StartChild asks for a child workflow. Its id is that of the parent and the name of the future,
// unless a has one.
func (m *Machine) StartChild(s *Scope, a *schemas.StartChild) *Future {
	c, err := m.Enter("workflow.Start")
	if f := notAsked(s, a.WorkflowType, err); f != nil {
		return f
	}
	f := &Future{Name: m.name(c, a.WorkflowType)}
	if a.WorkflowID == "" {
		a.WorkflowID = m.execution.WorkflowID + "/" + f.Name
	}
	m.open["child "+a.WorkflowID] = f
	s.enter(f)
	m.ask(a)
	f.cancel = func() { m.cancelChild(f, a.WorkflowID) }
	return f
}

func (m *Machine) cancelChild(f *Future, workflowID string) {
	f.cancel = nil
	if m.unasked(func(d schemas.DecisionAttributes) bool {
		a, ok := d.(*schemas.StartChild)
		return ok && a.WorkflowID == workflowID
	}) {
		delete(m.open, "child "+workflowID)
		f.settle(Outcome{Kind: Canceled})
		return
	}
	if m.comes(func(a schemas.Attributes) bool { return m.scheduled[endOfChild(a)] == f }) {
		return
	}
	m.ask(&schemas.CancelExternal{WorkflowID: workflowID, Control: note("cancel " + f.Name)})
}

// SignalExternal asks for a signal to another workflow. The future ends when that has it.
func (m *Machine) SignalExternal(s *Scope, a *schemas.SignalExternal) *Future {
	c, err := m.Enter("workflow.Send")
	if f := notAsked(s, a.SignalName, err); f != nil {
		return f
	}
	f := &Future{Name: m.name(c, "send "+a.SignalName)}
	a.Control = note(f.Name)
	m.open["external "+f.Name] = f
	m.ask(a)
	return f
}

// note is a name as the control of an event, by which its answer is known.
func note(name string) schemas.Payload {
	b, err := json.Marshal(name)
	if err != nil { // a string can be encoded
		panic(err)
	}
	return b
}

func named(control schemas.Payload) (name string) {
	_ = json.Unmarshal(control, &name) // of something else: no name
	return name
}

// deliverOthers is deliver for children and other workflows.
func (m *Machine) deliverOthers(e schemas.Event) {
	switch a := e.Attributes.(type) {
	case *schemas.ChildScheduled:
		m.known("child "+a.WorkflowID, e.ID)
	case *schemas.ChildStartFailed:
		o := Outcome{Kind: Refused, Reason: string(a.Cause), Details: text(a.Details)}
		m.end("child "+a.WorkflowID, o)
		m.endOf(a.ScheduledEventID, o)
	case *schemas.SignalExternalScheduled:
		m.known("external "+named(a.Control), e.ID)
	case *schemas.ExternalSignaled:
		m.endOf(a.ScheduledEventID, Outcome{Kind: Succeeded})
	case *schemas.SignalExternalFailed:
		o := Outcome{Kind: Refused, Reason: string(a.Cause), Details: text(a.Details)}
		m.end("external "+named(a.Control), o)
		m.endOf(a.ScheduledEventID, o)
	default:
		if id := endOfChild(a); id != 0 {
			m.endOf(id, outcomeOfChild(a))
		}
	}
}

// endOfChild returns the event that has scheduled the child which ends by an event; 0 if none does.
func endOfChild(a schemas.Attributes) int64 {
	switch a := a.(type) {
	case *schemas.ChildSuccess:
		return a.ScheduledEventID
	case *schemas.ChildFailed:
		return a.ScheduledEventID
	case *schemas.ChildTimedOut:
		return a.ScheduledEventID
	case *schemas.ChildCanceled:
		return a.ScheduledEventID
	case *schemas.ChildTerminated:
		return a.ScheduledEventID
	}
	return 0
}

func outcomeOfChild(a schemas.Attributes) Outcome {
	switch a := a.(type) {
	case *schemas.ChildSuccess:
		return Outcome{Kind: Succeeded, Result: a.Result}
	case *schemas.ChildFailed:
		return Outcome{Kind: Failed, Reason: a.Reason, Details: a.Details}
	case *schemas.ChildTimedOut:
		return Outcome{Kind: TimedOut, Reason: string(a.TimeoutType)}
	case *schemas.ChildCanceled:
		return Outcome{Kind: Canceled, Details: a.Details}
	case *schemas.ChildTerminated:
		return Outcome{Kind: Terminated}
	}
	return Outcome{}
}
