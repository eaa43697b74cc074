package machine

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"github.com/droverhq/drover/schemas"
)

// StartChild asks for a child workflow. Its id is that of the parent and the name of the future,
// unless a has one.
func (m *Machine) StartChild(s *Scope, a *schemas.StartChild) *Future {
	c, err := m.Enter("workflow.Start")
	if f := notAsked(s, a.WorkflowType, err); f != nil {
		return f
	}
	f := &Future{Name: m.name(c, a.WorkflowType), child: true}
	if a.WorkflowID == "" {
		a.WorkflowID = m.execution.WorkflowID + "/" + f.Name
	} else {
		a.Control = note(f.Name) // several may have the same id
	}
	key := childKey(a.WorkflowID, a.Control)
	m.open[key] = f
	s.enter(f)
	m.ask(a)
	f.cancel = func() {
		m.cancel(f, a, key, &schemas.CancelExternal{
			WorkflowID: a.WorkflowID, Run: f.run, Control: note("cancel " + f.Name),
		})
	}
	return f
}

func childKey(id string, control schemas.Payload) string {
	return "child " + id + " " + string(control)
}

// WaitBegun waits until a child has begun, or until it is known that it does not.
func (m *Machine) WaitBegun(f *Future) (begun bool, err error) {
	for !f.begun && !f.ready {
		if err := m.WaitAny("the beginning of "+f.Name, f); err != nil {
			return false, err
		}
	}
	return f.begun, nil
}

// leaveChildren cancels the children that a run has open when it ends, but for abandoned ones.
func (m *Machine) leaveChildren() {
	var all []*Future
	for _, open := range []func(func(*Future) bool){maps.Values(m.open), maps.Values(m.scheduled)} {
		for f := range open {
			if f.child && !f.abandoned {
				all = append(all, f)
			}
		}
	}
	slices.SortFunc(all, func(a, b *Future) int { return cmp.Compare(a.Name, b.Name) })
	for _, f := range all {
		f.Cancel()
	}
}

// Signal asks for a signal to another workflow, and to be told when it has that.
func (m *Machine) Signal(s *Scope, a *schemas.SignalExternal) *Future {
	a.Tell = true
	return m.send(s, "workflow.Send", "send", a, &a.Control)
}

// RequestCancel asks another workflow to end, and to be told when it has the request.
func (m *Machine) RequestCancel(s *Scope, a *schemas.CancelExternal) *Future {
	a.Tell = true
	return m.send(s, "workflow.RequestCancel", "cancel", a, &a.Control)
}

// send asks for a message to another workflow. Once it is on its way it cannot be taken back: then a
// canceled scope waits for the answer, too.
func (m *Machine) send(
	s *Scope, op, of string, a schemas.DecisionAttributes, control *schemas.Payload,
) *Future {
	c, err := m.Enter(op)
	if f := notAsked(s, of, err); f != nil {
		return f
	}
	f := &Future{Name: m.name(c, of)}
	*control = note(f.Name)
	key := messageKey(*control)
	m.open[key] = f
	s.enter(f)
	m.ask(a)
	f.cancel = func() {
		if m.unasked(a) {
			delete(m.open, key)
			f.settle(Outcome{Kind: Canceled})
		}
	}
	return f
}

func messageKey(control schemas.Payload) string { return "message " + string(control) }

// note is a name as the control of an event, by which its answer is known.
func note(name string) schemas.Payload {
	b, err := json.Marshal(name)
	if err != nil { // a string can be encoded
		panic(err)
	}
	return b
}
