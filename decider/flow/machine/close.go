package machine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/droverhq/drover/decider/flow/run"
)

// closeRun makes the output of a run whose steps are done.
func (m *machine) closeRun() {
	s := m.s
	if m.p.output != nil {
		x := m.act(nil, &s.Whole)
		x.own = &s.Result
		v, err := x.eval(m.p.output)
		if m.stuck(x, "output of the workflow", err) {
			return
		}
		s.Result = run.Value{V: v}
	}
	s.Last = atEnd
	m.close(run.Succeeded, m.completion())
}

func (m *machine) broke(f *run.Failure) {
	m.s.Failure = f
	m.abandon()
	m.close(run.Broke, Action{Do: Fail, ID: "end", Failure: f})
}

// close ends the run. Locks are not given back by hand: the service frees them when the run closes,
// and not before.
func (m *machine) close(status run.Status, a Action) {
	m.s.Status, m.s.Wait = status, nil
	m.s.Timers = nil // they end with the run
	m.do(a)
}

// closing repeats the end of a run, which the service refuses if something has come in meanwhile.
func (m *machine) closing() {
	switch m.s.Status {
	case run.Broke:
		m.do(Action{Do: Fail, ID: "end", Failure: m.s.Failure})
	case run.Canceled:
		m.do(Action{Do: Cancel, ID: "end", Failure: m.s.Failure})
	default:
		m.do(m.completion())
	}
}

func (m *machine) completion() Action {
	a := Action{Do: Complete, ID: "end", Value: m.s.Result.V}
	if len(m.s.Reducing) > 0 {
		a.Reduced = map[string]any{}
		for _, name := range m.s.Reducing {
			a.Reduced[name] = m.s.Vars.Map()[name]
		}
	}
	return a
}

// abandon takes back what the run waits for.
func (m *machine) abandon() {
	w := m.s.Wait
	if w == nil {
		return
	}
	m.s.Wait = nil
	switch w.For {
	case Schedule:
		m.do(Action{Do: CancelWork, ID: w.ID})
	case StartTimer:
		m.do(Action{Do: CancelTimer, ID: w.ID})
	case StartChild:
		m.abandonChildren()
	case SendSignal:
		if st := m.current(m.top()); st != nil && st.Type == "approve" {
			m.do(Action{Do: SetLabels, Labels: map[string]string{approvalLabel: ""}})
		}
	}
}

func (m *machine) abandonChildren() {
	st := m.current(m.top())
	if st == nil {
		return
	}
	inst := m.s.Record(st.Ref).Last
	for i, c := range inst.Children {
		if c.Status == run.Open {
			m.do(Action{Do: CancelChild, ID: inst.ID(st.Ref) + "/" + fmt.Sprint(i)})
			// Where it was resumed from is not where it stands: what it has done since might be
			// done twice.
			c.Status, c.Ending, c.State, c.Fault = run.ChildFailed, true, nil,
				run.NewFailure(run.NameCanceled, "the run around it has ended it")
		}
	}
}

// stop ends the run without handlers. One that holds a lock keeps it until the work that it has
// begun has ended.
func (m *machine) stop(f *run.Failure) {
	if m.s.Status == run.Stopping {
		return
	}
	m.s.Failure = f
	w := m.s.Wait
	waits := m.s.Locked != "" && m.s.Status == run.Running && w != nil &&
		(w.For == Schedule || w.For == StartChild)
	m.abandon()
	if !waits {
		m.stopped()
		return
	}
	m.s.Status, m.s.Wait, m.s.Timers = run.Stopping, w, nil
}

func (m *machine) stopped() {
	m.close(run.Canceled, Action{Do: Cancel, ID: "end", Failure: m.s.Failure})
}

// ends counts what has ended of the work that a run was stopped in.
func (m *machine) ends(in Input) {
	w := m.s.Wait
	switch {
	case w == nil:
		m.stopped()
	case in.Kind != Result && in.Kind != Failed:
	case w.For == Schedule && in.ID == w.ID:
		m.stopped()
	case w.For == StartChild && strings.HasPrefix(in.ID, w.ID+"/"):
		st := m.current(m.top())
		inst := m.last(st.Ref)
		i, err := strconv.Atoi(strings.TrimPrefix(in.ID, w.ID+"/"))
		if err != nil || i < 0 || i >= len(inst.Children) {
			return
		}
		inst.Children[i].Ending, inst.Children[i].State = false, in.State
		if !slices.ContainsFunc(inst.Children, func(c *run.Child) bool { return c.Ending }) {
			m.stopped()
		}
	}
}
