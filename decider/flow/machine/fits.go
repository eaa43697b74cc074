package machine

import (
	"errors"
	"fmt"
	"slices"

	"github.com/droverhq/drover/decider/flow/run"
)

// fits tells whether the state is one of this program. What a replay is given may come from
// anybody, and a context from another version of a flow: what holds in every state that Step leaves
// is checked here, once, and relied on everywhere else.
func (m *machine) fits() error {
	s := m.s
	if !slices.Contains([]run.Status{
		run.Staged, run.Running, run.Closing, run.Stopping, run.Succeeded, run.Broke, run.Canceled,
	}, s.Status) {
		return fmt.Errorf("the state has the status %q: it is damaged", s.Status)
	}
	for ref, r := range s.Records {
		if m.p.steps[ref] == nil {
			return strange(ref)
		}
		if r == nil || r.Started < 0 || r.Last != nil && !r.Last.Sound() {
			return fmt.Errorf("the record of step %q is damaged", ref)
		}
	}
	if s.Trial != nil && !s.Trial.Sound() {
		return errors.New("the state has a damaged instance")
	}
	if len(s.Stack) == 0 || len(s.Stack) > MaxDepth || s.Stack[0].Kind != run.Steps {
		return errors.New("the state has no steps that run: it is damaged")
	}
	for i := range s.Stack {
		if err := m.frameFits(i); err != nil {
			return err
		}
	}
	st := m.current(m.top())
	if s.Entered && st != nil && m.last(st.Ref) == nil {
		return fmt.Errorf("step %q is said to run and has no record", st.Ref)
	}
	if w := s.Wait; w != nil && !w.Whole &&
		(st == nil || !s.Entered && (s.Trial == nil || w.For != ReadState)) {
		return errors.New("the state waits for something and no step does: it is damaged")
	}
	return nil
}

func strange(ref string) error {
	return fmt.Errorf("the state names step %q, which the flow does not have: %s",
		ref, otherVersion)
}

// otherVersion is the reason, and the way out, where a run does not fit the definition that a store
// has for its version.
const otherVersion = "the run began with another version: have the store give it that one"

// frameFits checks a frame, and that it belongs to the step that the one below is at.
func (m *machine) frameFits(i int) error {
	fr := &m.s.Stack[i]
	st := m.p.steps[fr.Ref]
	var n int
	switch fr.Kind {
	case run.Steps:
		n = len(m.p.body.steps)
	case run.OfWorkflow:
		n = len(m.p.handlers.steps)
	case run.OfStep, run.Block, run.Then, run.Case:
		switch {
		case st == nil:
			return strange(fr.Ref)
		case fr.Kind == run.OfStep:
			n = len(st.handlers.steps)
		case fr.Kind == run.Case && st.cases != nil:
			// the index is that of the case, and not of a place in a list
			n = len(st.cases.steps) - 1
		case fr.Kind != run.Case && st.block != nil && st.block.kind == fr.Kind:
			n = len(st.block.steps)
		default:
			return strange(fr.Ref)
		}
	default:
		return fmt.Errorf("the state has a list of the kind %q: it is damaged", fr.Kind)
	}
	switch {
	case fr.Index < 0 || fr.Index > n:
		return fmt.Errorf("the state is at place %d of %d of a list of step %q: it is damaged",
			fr.Index, n, fr.Ref)
	case fr.Kind.Handles() && (fr.Failure == nil || m.p.steps[fr.From] == nil):
		return fmt.Errorf("the handler of step %q has no error: the state is damaged", fr.Ref)
	case i == 0:
		return nil
	case fr.Kind == run.Steps || fr.Kind == run.OfWorkflow && i != 1:
		return errors.New("the state has lists in a wrong order: it is damaged")
	case fr.Kind == run.OfWorkflow:
		return nil
	}
	below := m.current(&m.s.Stack[i-1])
	if below == nil || below != st || m.last(fr.Ref) == nil {
		return fmt.Errorf(
			"step %q is said to run, and the list around it is elsewhere: the state is damaged",
			fr.Ref)
	}
	return nil
}
