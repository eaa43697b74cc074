package machine

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/droverhq/drover/decider/flow/model"
	"github.com/droverhq/drover/decider/flow/run"
)

// jump goes to a step of a list that is being run, from the inside to the outside, or to the start
// or end of the innermost one that has these. A handler that is left by it is done.
func (m *machine) jump(to string) error {
	word := lower(to)
	if word == "exit" {
		return m.exit()
	}
	for i := len(m.s.Stack) - 1; i >= 0; i-- {
		fr := &m.s.Stack[i]
		if fr.Kind != run.Steps && fr.Kind != run.Block {
			continue
		}
		l := m.list(fr)
		index, ok := l.ids[to]
		switch word {
		case atStart:
			index, ok = 0, true
		case atEnd:
			index, ok = len(l.steps), true
		}
		if ok {
			m.s.Stack = m.s.Stack[:i+1]
			fr.Index, fr.Ran, fr.Skipped = index, false, false
			m.s.Entered, m.s.Trial = false, nil
			return errMoved
		}
	}
	return noStep(to)
}

func noStep(id string) *run.Failure {
	return run.Failuref(run.NameExpression,
		"there is no step with the id %s here or in a block around", id)
}

// exit leaves the innermost handler as handled.
func (m *machine) exit() error {
	for i := len(m.s.Stack) - 1; i >= 0; i-- {
		if !m.s.Stack[i].Kind.Handles() {
			continue
		}
		if m.s.Stack[i].Kind == run.OfWorkflow {
			return run.NewFailure(run.NameExpression,
				"exit in the handler of a workflow: there is no handler around it to go on with: write end")
		}
		m.s.Stack = m.s.Stack[:i+1]
		m.handled()
		return errMoved
	}
	return run.NewFailure(run.NameExpression, "exit outside of a handler: write end to end the block")
}

// throw lets the step on top fail: its handler runs, or that of what is around it.
func (m *machine) throw(f *run.Failure) {
	m.s.Wait, m.s.Trial = nil, nil
	defer m.sweep()
	var from string
	if h := m.handler(); h != nil {
		from = h.From
	}
	for climbing := false; ; climbing = true {
		fr := m.top()
		st := m.current(fr)
		if st == nil {
			m.climb(f, from)
			return
		}
		if !climbing {
			m.s.Trace.Tell(st.Ref, run.Threw, nil, f)
		}
		if r := m.s.Record(st.Ref); r.Last != nil && !(climbing && fr.Kind == run.OfStep) {
			r.Last.Failure = f
			if r.Last.Output.V != nil && r.Last.Phase == run.InBody {
				m.s.Prev = r.Last.Output
			}
		}
		f.Step = cmp.Or(f.Step, st.Ref)
		from = cmp.Or(from, st.Ref)
		if len(st.handlers.steps) > 0 && !errors.Is(
			m.push(run.Frame{Kind: run.OfStep, Ref: st.Ref, Failure: f, From: from}), errMoved) {
			m.broke(f)
			return
		}
		if len(st.handlers.steps) > 0 || m.leave(f, from) {
			return
		}
	}
}

// rethrow goes on with the error of the handler on top, of which no item was for it.
func (m *machine) rethrow() {
	fr := *m.top()
	m.climb(fr.Failure, fr.From)
}

// climb hands an error to what is around the list on top.
func (m *machine) climb(f *run.Failure, from string) {
	m.s.Trial, m.s.Wait = nil, nil
	defer m.sweep()
	for !m.leave(f, from) {
		st := m.current(m.top())
		m.s.Record(st.Ref).Last.Failure = f
		if len(st.handlers.steps) > 0 {
			if !errors.Is(m.push(run.Frame{Kind: run.OfStep, Ref: st.Ref, Failure: f, From: from}),
				errMoved) {
				m.broke(f)
			}
			return
		}
	}
}

// leave takes a failed list off the stack, and handlers with it: what is thrown in one is no
// business of the step that it belongs to. It reports whether that was the end of it; else the step
// on top now is the one that fails.
func (m *machine) leave(f *run.Failure, from string) bool {
	for {
		fr := *m.top()
		switch fr.Kind {
		case run.Steps:
			if len(m.p.handlers.steps) == 0 {
				m.unhandled(f, from)
				return true
			}
			_ = m.push(run.Frame{Kind: run.OfWorkflow, Failure: f, From: from})
			return true
		case run.OfWorkflow:
			m.unhandled(f, from)
			return true
		case run.OfStep:
			m.pop() // and go on with the list that the step is in
		default:
			m.pop()
			return false
		}
	}
}

// mostResumes bounds how often in a row a run resumes by itself at one step: that step may be what
// ends its workers. An activity that may run again is interrupted only when its worker was lost as
// often as the service lets it be, so that its step is resumed once.
const mostResumes = 10

// unhandled fails the run, unless it was interrupted and resumes by itself.
func (m *machine) unhandled(f *run.Failure, from string) {
	if m.p.def.Replayable.Automatically && f.Has(run.NameInterrupted) {
		if !m.resumesAgain(from) {
			m.say("warn", fmt.Sprintf(
				"interrupted at %s %d times in a row: the run does not resume by itself again",
				from, m.s.Resumes))
			m.broke(f)
			return
		}
		err := m.resume(from, false)
		if err == nil || errors.Is(err, errMoved) {
			m.say("info", "interrupted at "+from+": the run resumes")
			return
		}
		f = run.FailureOf(err).Because(f)
	}
	m.broke(f)
}

// resumesAgain counts that the run resumes by itself at a step, and tells whether it still may.
func (m *machine) resumesAgain(from string) bool {
	if m.s.Resumed != from {
		m.s.Resumed, m.s.Resumes = from, 0
	}
	m.s.Resumes++
	if st := m.p.steps[from]; st != nil && st.child == "" && m.idempotent(st) == model.Idempotent {
		return m.s.Resumes <= 1
	}
	return m.s.Resumes <= mostResumes
}

// stackTo is the stack of a run that is about to begin a step.
func stackTo(st *step) []run.Frame {
	var stack []run.Frame
	for at := st; ; at = at.list.owner {
		fr := run.Frame{Kind: at.list.kind, Index: at.index}
		if at.list.owner != nil {
			fr.Ref = at.list.owner.Ref
		}
		stack = append(stack, fr)
		if at.list.owner == nil {
			slices.Reverse(stack)
			return stack
		}
	}
}
