package machine

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/droverhq/drover/decider/flow/condition"
	"github.com/droverhq/drover/decider/flow/expr"
	"github.com/droverhq/drover/decider/flow/run"
	"github.com/droverhq/drover/decider/flow/value"
)

// Start begins a run and returns its state and what is to be done first. What is wrong with the
// input fails the run; an error means that the begin does not fit the program. random gives numbers
// in [0,1).
func Start(p *Program, b Begin, now time.Time, random func() float64) (*run.State, []Action, error) {
	s := &run.State{Program: p.key, Status: run.Staged}
	if b.Replay != nil {
		old, err := replayed(p, b.Replay.State)
		if err != nil {
			return nil, nil, fmt.Errorf("replay: %w", err)
		}
		s = old
	}
	s.ID, s.Task, s.Mode, s.Trace = b.ID, b.Task, b.Mode, b.Trace
	m := &machine{p: p, s: s, now: now, random: random}
	if b.Replay == nil {
		m.open(b)
	} else if err := m.fits(); err != nil {
		return nil, nil, fmt.Errorf("replay: %w", err)
	}
	if s.Status == run.Staged && (b.Replay == nil || m.repeats(b.Replay)) {
		m.stage()
	}
	return s, m.acts, nil
}

// open takes the input of a new run.
func (m *machine) open(b Begin) {
	s := m.s
	s.Vars, s.StartVars = run.Value{V: any(b.Vars)}, run.Value{V: any(b.Vars)}
	if b.Vars == nil {
		s.Vars, s.StartVars = run.Value{}, run.Value{}
	}
	s.Reducing, s.IdempotentAll = b.Reducing, b.IdempotentAll
	s.At, s.Stack = atStart, []run.Frame{{Kind: run.Steps}}
	s.FromStart = m.p.def.Replayable.FromStart
	if s.FromStart {
		s.Last = atStart
	}
	if err := m.inputs(b.Input); err != nil {
		m.broke(run.NewFailure(run.NameExpression, err.Error()))
		return
	}
	if e := m.p.def.Retention; e != nil {
		plain := *e
		plain.Hash = ""
		a := Action{Do: SetRetention, Text: plain.String(), Hash: e.Hash}
		if strings.Contains(e.Hash, "${") {
			x := m.act(nil, &s.Whole)
			hash, err := expr.ParseTemplate(e.Hash)
			if err == nil {
				a.Hash, err = textOf(x.eval(hash))
			}
			if err == nil {
				_, err = e.WithHash(a.Hash)
			}
			if err != nil {
				m.broke(run.FailureOf(fmt.Errorf("retention: hash: %w", err)))
				return
			}
		}
		_ = m.keepBy(a, e.Disabled) // it holds no lock yet
	}
}

// inputs merges what the definition gives, what the caller gives and the defaults, and judges it by
// the parameters.
func (m *machine) inputs(given map[string]any) error {
	x := m.act(nil, &m.s.Whole)
	in := maps.Clone(given)
	if in == nil {
		in = map[string]any{}
	}
	m.s.Input = run.Value{V: in}
	for _, name := range slices.Sorted(maps.Keys(m.p.def.Parameters)) {
		if p := m.p.def.Parameters[name]; p.Required && in[name] == nil && p.Default == nil &&
			m.p.inputs[name] == nil {
			return fmt.Errorf("input %s: it is required: give it when the run is started", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.p.inputs)) {
		if _, ok := in[name]; ok {
			continue
		}
		v, err := x.eval(m.p.inputs[name])
		if err != nil {
			return fmt.Errorf("input %s: %w", name, err)
		}
		in[name] = v
	}
	for _, name := range slices.Sorted(maps.Keys(m.p.def.Parameters)) {
		if err := m.parameter(x, in, name); err != nil {
			return fmt.Errorf("input %s: %w", name, err)
		}
	}
	if err := value.Check(in, value.Limits{Bytes: maxVars}); err != nil {
		return fmt.Errorf("the input of the run: %w", err)
	}
	if len(in) == 0 {
		m.s.Input = run.Value{}
	}
	return nil
}

func (m *machine) parameter(x *act, in map[string]any, name string) error {
	p := m.p.def.Parameters[name]
	if in[name] == nil && p.Default != nil {
		in[name] = p.Default
	}
	if in[name] == nil {
		if p.Required {
			return errors.New("it is required: give it when the run is started")
		}
		return nil
	}
	if p.Type != "" && p.Type != "any" {
		v, err := value.Coerce(in[name], p.Type, value.Limits{})
		if err != nil {
			return err
		}
		in[name] = v
	}
	for _, one := range p.Constraints {
		c, err := condition.Parse(one)
		if err != nil {
			return err
		}
		ok, err := x.holds(c, condition.Value(in[name]))
		if err != nil {
			return err
		}
		if !ok {
			shown, _ := value.Encode(one) // a definition has nothing else
			return fmt.Errorf("the value does not meet the constraint %s", shown)
		}
	}
	return nil
}

// repeats finds where a replay begins. It reports whether there is anything to run.
func (m *machine) repeats(o *Origin) bool {
	// a condition that holds is not judged again; one that nobody has judged is
	m.s.Whole = run.Instance{Phase: m.s.Whole.Phase}
	err := m.begins(o)
	if err != nil && !errors.Is(err, errMoved) {
		m.broke(run.FailureOf(err))
	}
	if m.s.Status == run.Staged {
		m.remark()
		return true
	}
	return false
}

// remark tells those who look at the new run which points it has from the old one, the one that was
// passed last after the others. That at which it begins marks itself.
func (m *machine) remark() {
	points := slices.DeleteFunc(slices.Clone(m.s.Points),
		func(ref string) bool { return ref == m.s.Last })
	if slices.Contains(m.s.Points, m.s.Last) {
		points = append(points, m.s.Last)
	}
	for _, ref := range points {
		if ref != m.began || m.s.Entered {
			m.do(Action{Do: MarkPoint, Name: ref})
		}
	}
}

// stage judges the condition of the run, asks for its lock, and begins. It is called again when a
// state key has been read.
func (m *machine) stage() {
	x := m.act(nil, &m.s.Whole)
	if m.s.Whole.Phase != run.InBody {
		ok, err := true, error(nil)
		if m.p.cond != nil {
			ok, err = x.holds(m.p.cond, condition.Subject{})
		}
		switch {
		case errors.Is(err, errRead):
			m.read(x, "")
			return
		case err != nil:
			m.broke(run.FailureOf(err))
			return
		case !ok:
			m.say("info", "the condition of the workflow does not hold: no step is run")
			m.close(run.Succeeded, Action{Do: Complete, ID: "end"})
			return
		}
		m.s.Whole.Phase = run.InBody
	}
	m.lock()
}

// lock asks for the lock of the run, or begins at once if it has none.
func (m *machine) lock() {
	l := m.p.lock
	if l == nil {
		m.run()
		return
	}
	x := m.act(nil, &m.s.Whole)
	name, err := textOf(x.eval(l.name))
	if err == nil && name == "" {
		err = errors.New("its name is empty")
	}
	a := Action{Do: Acquire, ID: "lock", Name: name, Limit: l.limit}
	if err == nil && l.scope != nil {
		a.Scope, err = textOf(x.eval(l.scope))
	}
	if m.stuck(x, "lock", err) {
		return
	}
	m.s.Locked = name
	m.do(a)
	m.s.Wait = &run.Wait{For: Acquire, ID: a.ID, Whole: true}
}

// stuck tells whether the run cannot go on: it reads a state key, or fails with what was wrong.
func (m *machine) stuck(x *act, what string, err error) bool {
	switch {
	case errors.Is(err, errRead):
		m.read(x, "")
	case err != nil:
		m.broke(run.FailureOf(fmt.Errorf("%s: %w", what, err)))
	}
	return err != nil
}

// run begins the steps: the lock is held, and the timeout begins to count.
func (m *machine) run() {
	m.s.Status, m.s.Result = run.Running, run.Value{}
	x := m.act(nil, &m.s.Whole)
	if m.p.timeout != nil {
		d, err := x.duration(m.p.timeout)
		if m.stuck(x, "timeout", err) {
			return
		}
		m.timeout("run!timeout", wholeRun, d)
	}
	m.advance()
}
