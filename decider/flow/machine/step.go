package machine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/droverhq/drover/decider/flow/run"
)

// Step goes on with a run. The state is changed in place. Without inputs, a run that has ended says
// so again.
func Step(
	p *Program, s *run.State, inputs []Input, now time.Time, random func() float64,
) ([]Action, error) {
	if s.Program != p.key {
		return nil, fmt.Errorf("the state is of part %q of the flow, and the program is part %q",
			s.Program, p.key)
	}
	m := &machine{p: p, s: s, now: now, random: random}
	if err := m.fits(); err != nil {
		return nil, err
	}
	for _, in := range inputs {
		if s.Status.Ended() {
			break
		}
		m.judge(in)
	}
	if s.Status.Ended() &&
		!slices.ContainsFunc(m.acts, func(a Action) bool { return a.ID == "end" }) {
		m.closing()
	}
	return m.acts, nil
}

// judge sees what an input is for.
func (m *machine) judge(in Input) {
	if m.s.Status == run.Stopping {
		m.ends(in)
		return
	}
	switch in.Kind {
	case Stop:
		m.stop(run.NewFailure(run.NameCanceled, "the run was asked to end"))
	case Broken:
		if cmp.Or(in.Name, m.s.Locked) == m.s.Locked && m.s.Locked != "" && m.s.Status == run.Running {
			m.say("warn", "the lock "+m.s.Locked+" was taken away; the run goes on without it")
			m.s.Locked = ""
		}
	case Signal:
		m.signalCame(in)
	case Fired:
		m.fired(in)
	case Granted:
		if w := m.s.Wait; w != nil && w.For == Acquire && w.ID == in.ID {
			m.s.Wait = nil
			m.run()
		}
	case Result, Failed, Refused:
		m.answered(in)
	}
}

func (m *machine) signalCame(in Input) {
	w := m.s.Wait
	if w != nil && w.For == SendSignal && w.Key == in.Name {
		m.goOn(in)
		return
	}
	if !m.keepSignal(in.Name, in.Value) {
		m.say("error", "signal "+in.Name+
			" was thrown away: too many signals wait for a step that takes them")
	}
}

// answered finds whom an answer is for.
func (m *machine) answered(in Input) {
	w := m.s.Wait
	switch {
	case in.Kind == Failed && m.s.Timers[in.ID] != "":
		m.untimed(in)
	case w == nil:
	case w.For == StartChild && strings.HasPrefix(in.ID, w.ID+"/"):
		m.goOn(in)
	case w.ID != in.ID:
	case w.For == ReadState:
		m.wasRead(w, in)
	case w.For == Acquire && in.Kind == Failed:
		m.s.Locked = ""
		m.broke(in.Failure)
	case w.For == StartTimer && w.Whole && in.Kind == Failed:
		// it parts two decisions, and no step could catch this
		m.s.Wait = nil // there is nothing to take back
		m.broke(in.Failure)
	case !w.Whole:
		m.goOn(in)
	}
	if in.Kind == Failed && (w == nil || w.ID != in.ID) && in.Name != "" {
		m.say("warn", "signal "+in.Name+" has reached nobody: "+in.Failure.Message)
	}
}

// wasRead remembers the value of a state key and begins again with what wanted it.
func (m *machine) wasRead(w *run.Wait, in Input) {
	m.s.Wait = nil
	if in.Kind == Failed {
		m.unread(w, in.Failure)
		return
	}
	inst := &m.s.Whole
	if !w.Whole {
		inst = m.s.Trial
		if st := m.current(m.top()); inst == nil && st != nil {
			inst = m.last(st.Ref)
		}
	}
	if inst == nil {
		return
	}
	if inst.Reads == nil {
		inst.Reads = map[string]run.Value{}
	}
	inst.Reads[w.Key] = run.Value{V: in.Value}
	switch {
	case !w.Whole:
		m.advance()
	case m.s.Status == run.Closing:
		m.closeRun()
	case m.s.Status == run.Running: // its timeout is all that it reads then
		m.run()
	default:
		m.stage()
	}
}

// unread fails what cannot know a state key.
func (m *machine) unread(w *run.Wait, f *run.Failure) {
	st := m.current(m.top())
	if w.Whole || st == nil {
		m.broke(f)
		return
	}
	if m.s.Trial != nil {
		m.adopt(st, m.s.Trial)
		m.last(st.Ref).Unasked = st.works()
	} else if inst := m.last(st.Ref); inst.Phase == run.InBody {
		inst.Unasked = st.works() && (inst.Try == 0 || inst.Unasked)
	}
	m.throw(f)
	m.advance()
}

// goOn hands an answer to the step on top.
func (m *machine) goOn(in Input) {
	st := m.current(m.top())
	if st == nil {
		return
	}
	timer := m.s.Wait != nil && m.s.Wait.For == StartTimer
	m.s.Wait = nil
	if timer && in.Kind == Failed {
		m.throw(in.Failure)
		m.advance()
		return
	}
	x := m.act(st, m.s.Record(st.Ref).Last)
	r, err := m.answer(x, in)
	m.settle(x, r, err)
	m.advance()
}

// fired finds whose timer it was.
func (m *machine) fired(in Input) {
	if w := m.s.Wait; w != nil && w.For == StartTimer && w.ID == in.ID {
		if w.Whole {
			m.s.Wait = nil
			m.advance()
			return
		}
		m.goOn(in)
		return
	}
	if w := m.s.Wait; w != nil && w.For == StartChild && in.ID == w.ID+moreChildren {
		m.goOn(in)
		return
	}
	ref, ok := m.s.Timers[in.ID]
	if !ok {
		return
	}
	delete(m.s.Timers, in.ID)
	if ref == wholeRun {
		m.stop(run.NewFailure(run.NameTimeout, "the timeout of the workflow has passed"))
		return
	}
	m.overtake(ref, run.NewFailure(run.NameTimeout, "the timeout of step "+ref+" has passed"))
}

// untimed fails what has asked for a timeout and is not to have one: without it, it might wait for
// ever.
func (m *machine) untimed(in Input) {
	ref := m.s.Timers[in.ID]
	delete(m.s.Timers, in.ID)
	if ref == wholeRun {
		m.broke(in.Failure)
		return
	}
	m.overtake(ref, in.Failure)
}

// overtake fails a step from outside, whatever runs in it.
func (m *machine) overtake(ref string, f *run.Failure) {
	for i := len(m.s.Stack) - 1; i >= 0; i-- {
		st := m.current(&m.s.Stack[i])
		if st == nil || st.Ref != ref {
			continue
		}
		m.abandon()
		m.s.Stack = m.s.Stack[:i+1]
		m.s.Entered = true
		m.throw(f)
		m.advance()
		return
	}
}
