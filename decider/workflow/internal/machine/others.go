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
	f.cancel = func() {
		m.cancel(f, a, "child "+a.WorkflowID, &schemas.CancelExternal{
			WorkflowID: a.WorkflowID, Control: note("cancel " + f.Name),
		})
	}
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
