package machine

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/droverhq/drover/decider/flow/concurrency"
	"github.com/droverhq/drover/decider/flow/condition"
	"github.com/droverhq/drover/decider/flow/run"
	"github.com/droverhq/drover/decider/flow/value"
)

// nested records the runs of a step, all of them before the first is started, and starts as many as
// may run at once. A step that is resumed has them on record.
func (m *machine) nested(x *act) (result, error) {
	if x.inst.Width == 0 {
		if err := m.plan(x); err != nil {
			return result{}, err
		}
	}
	return m.launch(x)
}

func (m *machine) plan(x *act) error {
	if _, err := read(x, func() (map[string]any, error) { return x.in.All(x.env) }); err != nil {
		return err
	}
	if x.st.Loop == nil {
		x.inst.Children, x.inst.Width = []*run.Child{{}}, 1
		return nil
	}
	targets, many, err := m.targets(x)
	if err != nil {
		return err
	}
	var folded any
	if x.st.reducing != nil {
		if folded, err = x.eval(x.st.reducing); err != nil {
			return fmt.Errorf("reducing: %w", err)
		}
	}
	children := []*run.Child{}
	for i, target := range targets {
		c := &run.Child{Index: i, Target: run.Value{V: target}}
		ok, err := m.wanted(x, c)
		if err != nil {
			return err
		}
		if ok {
			children = append(children, c)
		}
	}
	width := 1
	if x.st.width != nil && len(children) > 0 {
		text, err := textOf(x.eval(x.st.width))
		if err != nil {
			return err
		}
		e, err := concurrency.Parse(text)
		if err != nil {
			return err
		}
		if width, err = e.At(len(children)); err != nil {
			return err
		}
	}
	x.inst.Many, x.inst.Children, x.inst.Width, x.inst.Folded = many, children, width,
		run.Value{V: folded}
	if many {
		x.inst.RunsOver(targets)
	}
	return nil
}

// targets are what a loop runs over. A single value that is no list is run for once, and its output
// is no list.
func (m *machine) targets(x *act) (all []any, many bool, err error) {
	v, err := x.eval(x.st.target)
	if err != nil {
		return nil, false, fmt.Errorf("target: %w", err)
	}
	switch v := v.(type) {
	case []any:
		all, many = v, true
	case string:
		if all, many, err = span(v); err != nil {
			return nil, false, err
		}
	default:
		all = []any{v}
	}
	if len(all) > run.MaxTargets {
		return nil, false, run.Failuref(run.NameLimit,
			"the loop has %d targets, more than %d: loop over parts of the list in flows of their own",
			len(all), run.MaxTargets)
	}
	return all, many, nil
}

// span reads M..N; another text is one target.
func span(text string) ([]any, bool, error) {
	from, to, ok := strings.Cut(text, "..")
	first, err1 := strconv.ParseInt(strings.TrimSpace(from), 10, 64)
	last, err2 := strconv.ParseInt(strings.TrimSpace(to), 10, 64)
	switch {
	case !ok || err1 != nil || err2 != nil:
		return []any{text}, false, nil
	case first > last:
		return nil, false, fmt.Errorf(
			"the range %s ends before it begins: write the smaller number first", text)
	case uint64(last)-uint64(first) >= run.MaxTargets:
		return nil, false, run.Failuref(run.NameLimit,
			"the range %s has more than %d targets: loop over parts of it in flows of their own",
			text, run.MaxTargets)
	}
	all := make([]any, 0, last-first+1)
	for n := first; ; n++ {
		all = append(all, n)
		if n == last {
			return all, true, nil
		}
	}
}

// given are the variables that a run of a loop begins with.
func (x *act) given(c *run.Child) map[string]any {
	l := x.st.Loop
	if l == nil {
		return nil
	}
	vars := maps.Clone(x.inst.Folded.Map())
	if vars == nil {
		vars = map[string]any{}
	}
	vars[l.Var], vars[l.IndexVar] = c.Target.V, int64(c.Index)
	if len(l.Spread) > 0 {
		for _, key := range l.Spread {
			vars[key] = c.Target.Map()[key]
		}
	}
	return vars
}

// wanted judges the condition of a loop for one target.
func (m *machine) wanted(x *act, c *run.Child) (bool, error) {
	if x.st.each == nil {
		return true, nil
	}
	x.extra = x.given(c)
	defer func() { x.extra = nil }()
	return x.holds(x.st.each, condition.Value(c.Target.V))
}

func (x *act) childID(i int) string { return x.id() + "/" + strconv.Itoa(i) }

// openChildren is how many children a run may have open (execution.Config.OpenChildren): those
// beyond it would be refused, and count as failed.
const openChildren = 1000

// launch starts what may run, or ends the step if nothing runs any more. After a failure nothing
// new is started.
func (m *machine) launch(x *act) (result, error) {
	running, failed := 0, 0
	for _, c := range x.inst.Children {
		switch c.Status {
		case run.Open:
			running++
		case run.ChildFailed:
			failed++
		}
	}
	for i, c := range x.inst.Children {
		if failed > 0 || running >= min(x.inst.Width, openChildren) || m.s.Draining && running > 0 {
			break
		}
		// The others are started in the next decision. One is in this, however full it is: nothing
		// under way would be the end of the step.
		if c.Status == run.Recorded && running > 0 && m.full() {
			id := x.id() + moreChildren
			if !slices.ContainsFunc(m.acts,
				func(a Action) bool { return a.Do == StartTimer && a.ID == id }) {
				// once, however many have ended
				m.do(Action{Do: StartTimer, ID: id})
			}
			break
		}
		if c.Status == run.Recorded {
			a, err := m.child(x, i, c)
			if err != nil {
				return result{}, err
			}
			m.do(a)
			c.Status = run.Open
			running++
		}
	}
	switch {
	case running > 0:
		return result{}, m.await(run.Wait{For: StartChild, ID: x.id()})
	case failed > 0:
		return result{}, x.failures()
	}
	return m.gathered(x)
}

func (m *machine) child(x *act, i int, c *run.Child) (Action, error) {
	a := Action{Do: StartChild, ID: x.childID(i)}
	inputs := x.in.Done()
	if x.st.Type == "child" && x.st.child == "" {
		var err error
		if a.Name, err = x.named("workflow", "workflow"); err != nil {
			return a, err
		}
		if a.Run, err = x.text("run_id"); err != nil {
			return a, err
		}
		args, _ := inputs["args"].(map[string]any)
		a.Child = &Begin{Input: args}
		return a, nil
	}
	a.Child = &Begin{
		Program: x.st.child, Input: inputs, Vars: x.given(c),
		IdempotentAll: m.s.IdempotentAll || m.p.def.IdempotentAll,
	}
	if folded := x.inst.Folded.Map(); folded != nil {
		a.Child.Reducing = value.Keys(folded)
	}
	if len(c.State) > 0 {
		a.Child.Replay = &Origin{State: c.State, From: atEnd}
	}
	return a, nil
}

// moreChildren ends the id of a timer that lets the runs of a loop be started in several decisions.
const moreChildren = "!more"

// childClosed notes the end of a run.
func (m *machine) childClosed(x *act, in Input) (result, error) {
	if in.Kind == Fired {
		return m.launch(x)
	}
	i, err := strconv.Atoi(strings.TrimPrefix(in.ID, x.id()+"/"))
	if err != nil || i < 0 || i >= len(x.inst.Children) || x.inst.Children[i].Status != run.Open {
		return result{}, errWaiting
	}
	c := x.inst.Children[i]
	c.State = nil
	if in.Kind == Failed {
		c.Status, c.Fault, c.State = run.ChildFailed, in.Failure, in.State
		return m.launch(x)
	}
	c.Status, c.Output = run.ChildDone, run.Value{V: in.Value}
	if folded := x.inst.Folded.Map(); folded != nil {
		next := maps.Clone(folded)
		maps.Copy(next, in.Reduced)
		for key, v := range c.Output.Map() {
			if _, ok := next[key]; ok {
				next[key] = v
			}
		}
		x.inst.Folded, c.Output = run.Value{V: next}, run.Value{}
	}
	return m.launch(x)
}

// failures make one error of those of the runs.
func (x *act) failures() *run.Failure {
	var all []*run.Failure
	for _, c := range x.inst.Children {
		if c.Status == run.ChildFailed {
			all = append(all, c.Fault)
		}
	}
	message := all[0].Message
	if len(all) > 1 {
		message = fmt.Sprintf("%d errors including: %s", len(all), message)
	}
	cause := all[0]
	if i := slices.IndexFunc(all, func(f *run.Failure) bool { return f.Has(run.NameInterrupted) }); i >= 0 {
		cause = all[i]
	}
	return run.NewFailure(run.NameChild, message).Because(cause)
}

// gathered is what the runs come to: the output, the list of outputs, or what reducing has come to,
// which is set outside too.
func (m *machine) gathered(x *act) (result, error) {
	if folded := x.inst.Folded.Map(); folded != nil {
		for _, name := range value.Keys(folded) {
			m.s.SetVar(name, folded[name])
		}
		return result{output: folded, set: true}, nil
	}
	if !x.inst.Many && len(x.inst.Children) == 1 {
		return result{output: x.inst.Children[0].Output.V, set: true}, nil
	}
	outputs := make([]any, len(x.inst.Children))
	for i, c := range x.inst.Children {
		outputs[i] = c.Output.V
	}
	return result{output: outputs, set: true}, nil
}
