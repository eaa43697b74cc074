package machine

import (
	"errors"
	"fmt"
	"time"

	"github.com/droverhq/drover/decider/flow/condition"
	"github.com/droverhq/drover/decider/flow/expr"
	"github.com/droverhq/drover/decider/flow/run"
	"github.com/droverhq/drover/decider/flow/value"
)

// start runs the body of a step until it is done, waits or goes elsewhere. It is called again from
// the beginning when a state key has been read, so nothing is done before all has been evaluated.
func (m *machine) start(x *act) (result, error) {
	switch x.st.Type {
	case "let":
		return m.let(x)
	case "transform":
		return m.transform(x)
	case "clear-workflow-variable":
		return m.clearVariable(x)
	case "log":
		return m.log(x)
	case "no-op", "label":
		return result{}, nil
	case "return":
		v, err := x.input("value")
		return result{output: v, set: true, end: true}, err
	case "goto":
		next, err := textOf(x.eval(x.st.next))
		return result{next: next}, err
	case "fail":
		return m.fail(x)
	case "if":
		return m.ifThen(x)
	case "switch":
		return m.choose(x)
	case "subworkflow":
		return result{}, m.push(run.Frame{Kind: run.Block, Ref: x.st.Ref})
	case "retry":
		return m.retry(x)
	case "workflow":
		if x.st.Nested == nil {
			return result{}, m.retain(x)
		}
	default:
		return m.outside(x)
	}
	return m.nested(x)
}

// answer goes on with the body of the step on top when what it waited for has come.
func (m *machine) answer(x *act, in Input) (result, error) {
	switch x.st.Type {
	case "retry":
		return m.retryNow(x)
	case "sleep":
		return result{}, nil
	case "wait", "transform":
		return m.waitAgain(x)
	case "wait-for-signal":
		return m.signaled(x, in.Value)
	case "approve":
		return m.approved(x, in.Value)
	case "set-state", "clear-state":
		if in.Kind == Fired { // it was refused before
			return m.changeState(x)
		}
		if in.Kind == Refused && x.st.part != nil {
			return m.partRefused(x)
		}
		if in.Kind == Refused {
			return result{}, run.NewFailure(run.NameRequire,
				"the state key does not have the required value")
		}
		if in.Kind == Failed {
			return result{}, in.Failure
		}
		return result{}, nil
	}
	if x.st.child != "" || x.st.Type == "child" {
		return m.childClosed(x, in)
	}
	return m.worked(x, in)
}

func (m *machine) let(x *act) (result, error) {
	v, err := x.input("value")
	if err == nil {
		v, err = x.coerced(v)
	}
	if err != nil {
		return result{}, err
	}
	return x.store(v)
}

// store sets the variable of a step. The name output is that of the step's output.
func (x *act) store(v any) (result, error) {
	if at := x.st.variable; len(at) == 0 || len(at) == 1 && at[0].Key == "output" {
		return result{output: v, set: true}, nil
	}
	return result{}, x.assign(x.st.variable, v)
}

func (m *machine) transform(x *act) (result, error) {
	st := x.st
	if st.pipe == nil {
		if st.inputs["value"] == nil {
			return result{}, nil
		}
		return m.let(x)
	}
	r, err := read(x, func() (expr.Result, error) { return st.pipe.Eval(x.env) })
	if err != nil {
		if st.chain.Waits() && x.need == "" && expr.Absent(err) {
			return result{}, m.poll(x, err)
		}
		return result{}, err
	}
	v, err := x.coerced(r.Value)
	if err != nil {
		return result{}, err
	}
	for _, set := range r.Sets {
		if err := x.assign(set.Path, set.Value); err != nil {
			return result{}, err
		}
	}
	if r.Return {
		return result{output: v, set: true, end: true}, nil
	}
	return x.store(v)
}

func (m *machine) clearVariable(x *act) (result, error) {
	vars, found, err := value.Clear(m.s.Vars.V, x.st.variable)
	if err != nil || !found {
		return result{}, err
	}
	m.s.Vars = run.Value{V: vars}
	return result{}, nil
}

const maxLine = 16 << 10

func (m *machine) log(x *act) (result, error) {
	message, err := x.text("message")
	if err != nil {
		return result{}, err
	}
	level, err := x.text("level")
	if err != nil {
		return result{}, err
	}
	category, err := x.text("category")
	if err != nil {
		return result{}, err
	}
	switch lower(level) {
	case "trace", "debug", "warn", "error":
		level = lower(level)
	default:
		level = "info"
	}
	m.do(Action{Do: LogLine, Level: level, Category: category, Text: run.Cut(message, maxLine)})
	return result{}, nil
}

// fail raises. With rethrow the error that is handled is the cause, or is raised itself if there is
// nothing to add.
func (m *machine) fail(x *act) (result, error) {
	message, err := x.text("message")
	if err != nil {
		return result{}, err
	}
	data, err := x.input("value")
	if err != nil {
		return result{}, err
	}
	again, err := x.input("rethrow")
	if err != nil {
		return result{}, err
	}
	if x.st.Retention != nil {
		if err := m.retain(x); err != nil {
			return result{}, err
		}
	}
	var cause *run.Failure
	if h := m.handler(); h != nil && truth(again) {
		cause = h.Failure
	}
	if cause != nil && message == "" && data == nil {
		return result{}, cause
	}
	if message == "" {
		message = "the step fails"
	}
	f := run.NewFailure(run.NameFail, message)
	f.Fields = run.Value{V: data}
	return result{}, f.Because(cause)
}

// truth reads a flag of a step.
func truth(v any) bool {
	if text, ok := v.(string); ok {
		return lower(text) == "true" || lower(text) == "yes"
	}
	return value.Truth(v)
}

func (m *machine) ifThen(x *act) (result, error) {
	target, err := m.found(x, "target")
	if err != nil {
		return result{}, err
	}
	holds := false
	if x.st.inputs["equals"] != nil {
		want, err := x.input("equals")
		if err != nil {
			return result{}, err
		}
		holds = target != nil && value.Equal(target, want)
	} else if text, ok := target.(string); ok {
		holds = lower(text) != "false" && text != ""
	} else {
		holds = value.Truth(target)
	}
	if !holds {
		return result{}, nil
	}
	return result{}, m.push(run.Frame{Kind: x.st.block.kind, Ref: x.st.Ref})
}

// found evaluates an input, for which a name without a value is no error.
func (m *machine) found(x *act, name string) (any, error) {
	v, err := x.input(name)
	if err != nil && x.need == "" && expr.Absent(err) {
		return nil, nil
	}
	return v, err
}

// choose enters the first case whose condition holds.
func (m *machine) choose(x *act) (result, error) {
	v, err := m.found(x, "value")
	if err != nil {
		return result{}, err
	}
	subject := condition.Subject{}
	if v != nil {
		subject = condition.Value(v)
	} else if x.st.inputs["value"] == nil {
		subject = m.subject()
	}
	for i, one := range x.st.cases.steps {
		ok := true
		if one.cond != nil {
			if ok, err = x.holds(one.cond, subject); err != nil {
				return result{}, err
			}
		}
		if ok {
			return result{}, m.push(run.Frame{Kind: run.Case, Ref: x.st.Ref, Index: i})
		}
	}
	shown, _ := value.Text(v)
	return result{}, run.Failuref(run.NameNoCase,
		"no case of the switch is for %q: add one without a condition as the last", shown)
}

// retain changes how the run is kept.
func (m *machine) retain(x *act) error {
	e := x.st.Retention
	if e == nil {
		return nil
	}
	a := Action{Do: SetRetention}
	if e.Hash != "" {
		hash, err := expr.ParseTemplate(e.Hash)
		if err != nil {
			return err
		}
		if a.Hash, err = textOf(x.eval(hash)); err != nil {
			return fmt.Errorf("hash: %w", err)
		}
		if _, err := e.WithHash(a.Hash); err != nil {
			return fmt.Errorf("retention: %w", err)
		}
	}
	plain := *e
	plain.Hash = ""
	a.Text = plain.String()
	return m.keepBy(a, e.Disabled)
}

// keepBy says how the run is kept. The service refuses a whole reply that disables the retention of
// a run with a lock, so that the run would not get on: here it is an error of the step.
func (m *machine) keepBy(a Action, disabled bool) error {
	if disabled && m.s.Holds {
		return errors.New(
			"a run that has a lock cannot disable its retention, since nobody would know of the " +
				"lock: write retention 0 instead")
	}
	m.s.Unkept = disabled
	m.do(a)
	return nil
}

// poll looks again for a value that is not there yet, after 1 s, 2 s, 4 s … 30 s. State keys are
// read anew; nothing else of what an expression can name comes while a step waits, so without any
// the wait has failed.
func (m *machine) poll(x *act, missing error) error {
	if len(x.inst.Reads) == 0 {
		return fmt.Errorf("the wait would not end, for no state key is waited for: %w", missing)
	}
	delay := min(time.Second<<min(x.inst.Polls, 10), 30*time.Second)
	x.inst.Polls = min(x.inst.Polls+1, 10)
	return m.waitFor(Action{Do: StartTimer, ID: x.id() + "!poll", Delay: delay})
}

func (m *machine) waitAgain(x *act) (result, error) {
	x.inst.Reads, x.inst.Inputs = nil, run.Value{}
	fresh := m.act(x.st, x.inst)
	*x = *fresh
	x.env = expr.NewEnv(x, nil)
	m.spends(x.env)
	return m.start(x)
}
