package machine

import "github.com/droverhq/drover/decider/flow/value"

// endList leaves a list whose last step is done.
func (m *machine) endList() {
	fr := *m.top()
	switch {
	case fr.Kind == theSteps:
		m.returned(m.s.Prev)
		m.sweep()
	case !fr.Kind.handles():
		m.pop()
		st := m.current(m.top())
		m.s.Entered = true
		m.finish(st, m.s.record(st.Ref).Last, result{output: m.s.Prev.V, set: true})
	case !fr.Ran:
		m.rethrow()
	default:
		if fr.Skipped {
			m.do(
				Action{
					Do:    LogLine,
					Level: "warn",
					Text: "the last item of the handler of " + handlerName(
						fr,
					) + " was skipped by its condition; the error is handled all the same",
				},
			)
		}
		m.handled()
	}
}

func handlerName(fr Frame) string {
	if fr.Kind == ofWorkflow {
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
	if fr.Kind == ofWorkflow {
		m.returned(out)
		return
	}
	below := m.top()
	if st := m.current(below); st != nil {
		inst := m.s.record(st.Ref).Last
		inst.Output, inst.Phase = out, isDone
	}
	below.Ran, below.Skipped = true, false
	if below.Kind.handles() {
		below.Out = out
	}
	if below.Kind != aCase {
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
		if fr.Kind == ofStep {
			delete(alive, fr.Ref) // the step has failed, its handler has no part in its time
		}
		if fr.Kind == ofWorkflow {
			clear(alive) // all steps below have failed
		}
		if st := m.current(fr); st != nil && (i < len(m.s.Stack)-1 || m.s.Entered) {
			alive[st.Ref] = true
		}
	}
	for _, id := range value.Keys(anyMap(m.s.Timers)) {
		if ref := m.s.Timers[id]; ref != wholeRun && (!alive[ref] || id != m.last(ref).timer(ref)) {
			m.disarm(id)
		}
	}
}

func anyMap(m map[string]string) map[string]any {
	out := make(map[string]any, len(m))
	for k := range m {
		out[k] = nil
	}
	return out
}

func (m *machine) disarm(id string) {
	delete(m.s.Timers, id)
	m.do(Action{Do: CancelTimer, ID: id})
}

// wholeRun is whose timeout that of the run is.
const wholeRun = "run"
