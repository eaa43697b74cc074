package machine

import (
	"maps"
	"slices"

	"github.com/droverhq/drover/decider/flow/run"
)

// endList leaves a list whose last step is done.
func (m *machine) endList() {
	fr := *m.top()
	switch {
	case fr.Kind == run.Steps:
		m.returned(m.s.Prev)
		m.sweep()
	case !fr.Kind.Handles():
		m.pop()
		st := m.current(m.top())
		m.s.Entered = true
		m.finish(st, m.s.Record(st.Ref).Last, result{output: m.s.Prev.V, set: true})
	case !fr.Ran:
		m.rethrow()
	default:
		if fr.Skipped {
			m.say("warn", "the last item of the handler of "+handlerName(fr)+
				" was skipped by its condition; the error is handled all the same")
		}
		m.handled()
	}
}

func handlerName(fr run.Frame) string {
	if fr.Kind == run.OfWorkflow {
		return "the workflow"
	}
	return "step " + fr.Ref
}

// handled ends the handler on top: the run goes on after the step that failed, or is done.
func (m *machine) handled() {
	fr := *m.top()
	m.pop()
	out := fr.Out
	if !fr.Ran {
		out = m.s.Prev
	}
	m.s.Prev, m.s.Entered = out, false
	defer m.sweep()
	if fr.Kind == run.OfWorkflow {
		m.returned(out)
		return
	}
	below := m.top()
	if st := m.current(below); st != nil {
		inst := m.s.Record(st.Ref).Last
		inst.Output, inst.Phase = out, run.IsDone
	}
	below.Ran, below.Skipped = true, false
	if below.Kind.Handles() {
		below.Out = out
	}
	if below.Kind != run.Case {
		below.Index++
	}
}

// sweep takes back the timeouts of steps that are not running any more, and those of their earlier
// tries.
func (m *machine) sweep() {
	if len(m.s.Timers) == 0 {
		return
	}
	alive := map[string]bool{}
	for i := range m.s.Stack {
		fr := &m.s.Stack[i]
		if fr.Kind == run.OfStep {
			delete(alive, fr.Ref) // the step has failed, its handler has no part in its time
		}
		if fr.Kind == run.OfWorkflow {
			clear(alive) // all steps below have failed
		}
		if st := m.current(fr); st != nil && (i < len(m.s.Stack)-1 || m.s.Entered) {
			alive[st.Ref] = true
		}
	}
	for _, id := range slices.Sorted(maps.Keys(m.s.Timers)) {
		if ref := m.s.Timers[id]; ref != wholeRun && (!alive[ref] || id != m.last(ref).Timer(ref)) {
			m.disarm(id)
		}
	}
}

func (m *machine) disarm(id string) {
	delete(m.s.Timers, id)
	m.do(Action{Do: CancelTimer, ID: id})
}

// wholeRun is whose timeout that of the run is.
const wholeRun = "run"
