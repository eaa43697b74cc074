package machine

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/droverhq/drover/decider/flow/model"
	"github.com/droverhq/drover/decider/flow/run"
)

// mark does what a step says of replay points.
func (m *machine) mark(st *step) {
	if m.handler() != nil {
		return // handlers are no places to go back to
	}
	s := m.s
	if st.Replay != model.FromHere {
		s.Points, s.FromStart, s.Last = nil, false, ""
	}
	if st.Replay == model.Reset {
		m.do(Action{Do: ResetPoints})
		return
	}
	if !slices.Contains(s.Points, st.Ref) {
		s.Points = append(slices.Clone(s.Points), st.Ref)
	}
	s.Last = st.Ref
	m.do(Action{Do: MarkPoint, Name: st.Ref, Only: st.Replay == model.FromHereOnly})
}

func (m *machine) trail() *trail {
	return &trail{
		at: m.s.At, last: m.s.Last, fromStart: m.s.FromStart, points: m.s.Points,
		before: func(ref string) []string {
			if r := m.s.Records[ref]; r != nil {
				return r.Before
			}
			return nil
		},
	}
}

func notReplayable(format string, args ...any) *run.Failure {
	return run.Failuref(run.NameReplay, format, args...)
}

// replayLast goes back to the last replay point, but never to the retry step that asks for it.
func (m *machine) replayLast(asks *step, force bool) error {
	from := cmp.Or(m.s.Last, atStart)
	if asks != nil && from == asks.Ref {
		from = m.s.Record(asks.Ref).Last.Previous
	}
	return m.replay(from, force)
}

// replay runs a step afresh, or the replay point that comes before it.
func (m *machine) replay(from string, force bool) error {
	to := from
	if !force {
		point, ok := m.trail().nearest(from)
		switch {
		case ok:
		case from == atStart:
			return notReplayable(
				"there is no replay point at start: say replayable: from start in the flow, or " +
					"mark a step with replayable: from here")
		default:
			return notReplayable(
				"there is no replay point at %s or before it: mark a step with replayable: from here",
				from)
		}
		to = point
	}
	return m.restart(to)
}

// restart runs a step as it ran last: with the variables of then, its condition and inputs
// evaluated anew.
func (m *machine) restart(to string) error {
	s := m.s
	s.Wait, s.Trial, s.Entered, m.began = nil, nil, false, to
	if to == atEnd {
		m.close(run.Succeeded, m.completion()) // only a run that has succeeded has this point
		return errMoved
	}
	if to == atStart {
		s.Vars, s.Prev, s.At = s.StartVars, run.Value{}, atStart
		s.Stack = []run.Frame{{Kind: run.Steps}}
		return errMoved
	}
	st, inst := m.p.steps[to], m.last(to)
	if st == nil || inst == nil || !m.reachable(st) {
		return notReplayable("step %s has not run, so there are no variables to begin it with", to)
	}
	s.Vars, s.Prev, s.At = inst.Vars, inst.Prev, inst.Previous
	s.Stack = stackTo(st)
	if err := m.armAll(s.Stack[:len(s.Stack)-1]); err != nil { // its own begins with it
		return err
	}
	return errMoved
}

// armAll begins the time of steps that are gone on with: it was over for those whose handlers had
// begun.
func (m *machine) armAll(frames []run.Frame) error {
	for i := range frames {
		if st := m.current(&frames[i]); st != nil && m.last(st.Ref) != nil {
			if err := m.arm(st, m.last(st.Ref)); err != nil {
				return err
			}
		}
	}
	return nil
}

// reachable tells whether the steps around a step have run, and it is in no handler.
func (m *machine) reachable(st *step) bool {
	for l := st.list; l.owner != nil; l = l.owner.list {
		if l.kind.Handles() || m.last(l.owner.Ref) == nil {
			return false
		}
	}
	return !st.list.kind.Handles()
}

func (m *machine) last(ref string) *run.Instance {
	if r := m.s.Records[ref]; r != nil {
		return r.Last
	}
	return nil
}

// resume goes on in the step where the run stood: with its inputs as they were, and without its
// condition. If that step may not run twice, it is the last replay point.
func (m *machine) resume(from string, force bool) error {
	s := m.s
	if from == "" || from == atStart {
		return m.restart(atStart)
	}
	st, inst := m.p.steps[from], m.last(from)
	switch {
	case st == nil:
		return notReplayable("the flow has no step %s", from)
	case inst == nil || !m.reachable(st):
		return m.restart(from)
	case inst.Phase == run.IsDone: // between two steps
		s.Wait, s.Trial, s.Entered, s.Stack = nil, nil, false, stackTo(st)
		return m.afterReplayed(inst)
	case force || m.resumable(st, inst):
		s.Wait, s.Trial, m.began = nil, nil, from
		s.Stack, s.Entered = stackTo(st), true
		s.Vars, s.Prev, s.At = inst.Vars, inst.Prev, from
		inst.Try++
		inst.Armed = 0 // by another name
		inst.Output, inst.Failure, inst.Phase, inst.Polls = run.Value{}, nil, run.InBody, 0
		// inputs that were finished are kept; what was only read for them may have changed
		inst.Reads = nil
		for _, c := range inst.Children {
			if c.Status == run.ChildFailed {
				c.Status, c.Fault, c.Ending = run.Recorded, nil, false
				if !m.goesOn(st, c) {
					c.State = nil // by force, or by the word of the step: it begins anew
				}
			}
		}
		if err := m.armAll(s.Stack); err != nil {
			return err
		}
		return errMoved
	case s.Last != "":
		return m.replay(s.Last, force)
	}
	return notReplayable(
		"step %s (%s) may not run twice, and there is no replay point: mark a step with "+
			"replayable: from here, or the step with idempotent: yes", from, st.Type)
}

// afterReplayed goes from the step on top, which is done, to where it led: after return that is the
// end of the steps.
func (m *machine) afterReplayed(inst *run.Instance) error {
	switch {
	case inst.Return:
		m.s.Stack = m.s.Stack[:1]
		m.s.Stack[0].Index = len(m.p.body.steps)
		return errMoved
	case inst.Next != "":
		return m.jump(inst.Next)
	}
	if fr := m.top(); fr.Kind == run.Case {
		fr.Ran = true
	} else {
		fr.Index++
	}
	return errMoved
}

// idempotent tells whether a step may run again. Nested means that it depends on what it started.
func (m *machine) idempotent(st *step) model.Idempotence {
	return st.idempotence(m.s.IdempotentAll || m.p.def.IdempotentAll)
}

// idempotence is idempotent; all says that steps that start nothing may run again.
func (st *step) idempotence(all bool) model.Idempotence {
	switch {
	case st.Idempotent != "":
		return st.Idempotent
	case st.child != "":
		return model.Nested
	case all && st.Type != "fail":
		return model.Idempotent
	}
	return defaults[st.Type]
}

var defaults = idempotence()

func idempotence() map[string]model.Idempotence {
	all := map[string]model.Idempotence{}
	for _, t := range model.Types() {
		all[t.Name] = t.Idempotent
	}
	return all
}

// resumable tells whether an instance may go on. What has asked nobody for work may. An activity
// that nobody has called idempotent may not once it was scheduled, nor a workflow of another type
// once it was started. Runs within go on if they have left a state from which that can be done. A
// block that has failed as a whole begins anew, so nothing in it may have run that may not run
// twice.
func (m *machine) resumable(st *step, inst *run.Instance) bool {
	if inst.Unasked {
		return true
	}
	switch m.idempotent(st) {
	case model.NotIdempotent:
		return false
	case model.Idempotent:
		return true
	}
	switch {
	case st.Type == "activity":
		return inst.Inputs.V == nil
	case st.block != nil || st.cases != nil:
		return !m.ranRisky(st)
	case st.child == "" && st.Type != "child":
		return true
	}
	for _, c := range inst.Children {
		if c.Status == run.ChildFailed && !m.goesOn(st, c) {
			return false
		}
	}
	return true
}

// ranRisky tells whether a step within a block has run that may not simply run twice.
func (m *machine) ranRisky(block *step) bool {
	for ref, st := range m.p.steps {
		for l := st.list; l.owner != nil; l = l.owner.list {
			if r := m.s.Records[ref]; l.owner == block && r != nil && r.Last != nil &&
				st.Type != "fail" && m.risky(st) {
				return true
			}
		}
	}
	return false
}

// goesOn tells whether a run within a step has left a state from which it can go on. Runs hand on
// no other, but did once, and what was handed on stays in the state of the run around them. To find
// out in the new run would be too late: it has begun by then, and fails.
func (m *machine) goesOn(st *step, c *run.Child) bool {
	p := m.p.flow.programs[st.child]
	if p == nil || st.child == "" || len(c.State) == 0 {
		return false
	}
	_, err := Preview(p, Origin{State: c.State, From: atEnd})
	return err == nil
}

// begins takes a state of a run that has ended as that of a new one.
func (m *machine) begins(o *Origin) error {
	s := m.s
	if m.p.def.Replayable.Disabled && !o.Force {
		return notReplayable("the flow says replayable: disabled: only force goes around it")
	}
	s.Resumed, s.Resumes = "", 0
	from := o.From
	switch lower(from) {
	case atEnd, "":
		if s.Last == atEnd {
			return m.restart(atEnd)
		}
		return m.resume(s.At, o.Force)
	case atLast:
		return m.replayLast(nil, o.Force)
	case atStart:
		s.Last = atStartIf(o.Force || s.FromStart || s.Last == atStart, s.Last)
		return m.replay(atStart, o.Force)
	}
	ref := m.refOf(from)
	if ref == "" {
		return notReplayable(
			"the flow has no step %q: name an id%s, a ref such as 2 or 2.steps.0, start, last or end",
			from, m.p.someIDs())
	}
	err := m.replay(ref, o.Force)
	if st := m.current(m.top()); errors.Is(err, errMoved) && s.Status == run.Staged && st != nil {
		s.Last = st.Ref
	}
	return err
}

func atStartIf(ok bool, otherwise string) string {
	if ok {
		return atStart
	}
	return otherwise
}

// refOf finds a step by its ref, its index or its id.
func (m *machine) refOf(name string) string {
	if n, err := strconv.Atoi(name); err == nil && n >= 0 && n < len(m.p.body.steps) {
		return m.p.body.steps[n].Ref
	}
	if m.p.steps[name] != nil {
		return name
	}
	if n, ok := m.p.body.ids[name]; ok {
		return m.p.body.steps[n].Ref
	}
	for _, ref := range slices.Sorted(maps.Keys(m.p.steps)) {
		if m.p.steps[ref].ID == name {
			return ref
		}
	}
	return ""
}

// someIDs lists the ids of steps, in the order of the text, for a message.
func (p *Program) someIDs() string {
	refs := slices.DeleteFunc(slices.Collect(maps.Keys(p.steps)),
		func(ref string) bool { return p.steps[ref].ID == "" })
	slices.SortFunc(refs, p.order)
	var ids []string
	for i, ref := range refs {
		if i == maxIDs {
			ids = append(ids, "…")
			break
		}
		ids = append(ids, p.steps[ref].ID)
	}
	if len(ids) == 0 {
		return ""
	}
	return " (" + strings.Join(ids, ", ") + ")"
}

const maxIDs = 10 // that a message names
