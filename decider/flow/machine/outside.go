package machine

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"strings"

	"github.com/droverhq/drover/decider/flow/condition"
	"github.com/droverhq/drover/decider/flow/expr"
	"github.com/droverhq/drover/decider/flow/model"
	"github.com/droverhq/drover/decider/flow/run"
	"github.com/droverhq/drover/decider/flow/value"
	"github.com/droverhq/drover/schemas/ops"
)

// outside runs the steps that ask for something and wait for the answer.
func (m *machine) outside(x *act) (result, error) {
	switch x.st.Type {
	case "sleep":
		return result{}, m.sleep(x)
	case "wait":
		return m.wait(x)
	case "wait-for-signal":
		return m.waitForSignal(x)
	case "approve":
		return m.approve(x)
	case "signal":
		return result{}, m.signal(x)
	case "set-state", "clear-state":
		return m.changeState(x)
	case "activity":
		return result{}, m.activity(x)
	case "http":
		return result{}, m.http(x)
	case "once":
		return result{}, m.once(x)
	case "ssh", "shell", "container", "publish", "request", "load":
		return result{}, m.kind(x)
	}
	return m.nested(x)
}

func (m *machine) sleep(x *act) error {
	v, err := x.input("duration")
	if err != nil {
		return err
	}
	d, err := x.duration(expr.Constant(v))
	if err != nil {
		return err
	}
	return m.waitFor(Action{Do: StartTimer, ID: x.id(), Delay: d})
}

func (m *machine) wait(x *act) (result, error) {
	v, err := x.input("value")
	if err != nil {
		if x.need == "" && expr.Absent(err) {
			return result{}, m.poll(x, err)
		}
		return result{}, err
	}
	if v, err = x.coerced(v); err != nil {
		return result{}, err
	}
	return x.store(v)
}

// approval is the signal that answers an approve step unless it names another.
const approval = "approve"

func (m *machine) waitForSignal(x *act) (result, error) {
	name, err := x.named("signal", "signal")
	if err != nil {
		return result{}, err
	}
	if v, ok := m.take(name); ok {
		return m.signaled(x, v)
	}
	return result{}, m.await(run.Wait{For: SendSignal, ID: x.id(), Key: name})
}

func (m *machine) signaled(x *act, v any) (result, error) {
	v, err := x.coerced(v)
	if err != nil {
		return result{}, err
	}
	return x.store(v)
}

// approvalLabel is the attribute of a run that shows what is to be approved.
const approvalLabel = "approval"

func (m *machine) approve(x *act) (result, error) {
	message, err := x.text("message")
	if err != nil {
		return result{}, err
	}
	name, err := x.text("signal")
	if err != nil {
		return result{}, err
	}
	if name == "" {
		name = approval
	}
	if v, ok := m.take(name); ok {
		return m.judged(v)
	}
	m.do(Action{Do: SetLabels, Labels: map[string]string{approvalLabel: run.Cut(message, 200)}})
	return result{}, m.await(run.Wait{For: SendSignal, ID: x.id(), Key: name})
}

func (m *machine) approved(_ *act, v any) (result, error) {
	m.do(Action{Do: SetLabels, Labels: map[string]string{approvalLabel: ""}})
	return m.judged(v)
}

// judged reads the answer: true or false, or a map with approved and reason.
func (m *machine) judged(v any) (result, error) {
	yes, answer := v, map[string]any{}
	if given, ok := v.(map[string]any); ok {
		yes, answer = given["approved"], maps.Clone(given)
	}
	answer["approved"] = truth(yes)
	if truth(yes) {
		return result{output: answer, set: true}, nil
	}
	reason, _ := value.Text(answer["reason"])
	f := run.NewFailure(run.NameRefused, strings.TrimSuffix("not approved: "+reason, ": "))
	f.Fields = run.Value{V: answer}
	return result{}, f
}

func (m *machine) signal(x *act) error {
	name, err := x.named("signal", "signal")
	if err != nil {
		return err
	}
	to, err := x.text("run")
	if err != nil {
		return err
	}
	v, err := x.input("value")
	if err != nil {
		return err
	}
	m.do(Action{Do: SendSignal, ID: x.id(), Name: name, Run: to, Value: v})
	return nil
}

func (m *machine) changeState(x *act) (result, error) {
	a := Action{Do: ClearState, ID: x.id()}
	var err error
	if x.st.part != nil {
		a.Name, err = textOf(x.eval(x.st.part.key))
	} else {
		a.Name, err = x.text("key")
	}
	if err != nil {
		return result{}, err
	}
	if a.Scope, err = x.text("scope"); err != nil {
		return result{}, err
	}
	if x.st.Type == "set-state" {
		a.Do = WriteState
		if lock, ok := strings.CutPrefix(a.Name, "lock-"); ok && lock != "" && m.s.Unkept {
			// see keepBy
			return result{}, errors.New(
				"the retention of the run is disabled, and nobody would know of the lock " + lock +
					" when it is purged: write retention 0 instead")
		}
		v, err := x.input("value")
		if err == nil {
			a.Value, err = x.coerced(v)
		}
		if err != nil {
			return result{}, err
		}
	}
	if x.st.part != nil {
		return m.changePart(x, a)
	}
	if x.st.Type == "set-state" {
		if a.Require, err = x.input("require"); err != nil {
			return result{}, err
		}
		if a.Require != nil {
			if _, err := condition.Parse(a.Require); err != nil {
				return result{}, err
			}
		}
	}
	return result{}, m.waitFor(a)
}

func (m *machine) activity(x *act) error {
	name, err := x.text("activity")
	if err != nil {
		return err
	}
	list, err := x.text("list")
	if err != nil {
		return err
	}
	args, err := x.input("args")
	if err != nil {
		return err
	}
	return m.schedule(x, name, list, args)
}

// schedule asks for an activity, and waits for it.
func (m *machine) schedule(x *act, name, list string, in any) error {
	return m.waitFor(Action{
		Do: Schedule, ID: x.id(), Name: name, List: list, Value: in,
		Idempotent: m.idempotent(x.st) == model.Idempotent,
	})
}

// kind schedules an activity of the name of the step type, with the inputs of the step.
func (m *machine) kind(x *act) error {
	in, err := read(x, func() (map[string]any, error) { return x.in.All(x.env) })
	if err != nil {
		return err
	}
	in = maps.Clone(in)
	if x.st.Type == "publish" || x.st.Type == "request" {
		if v, ok := in["value"]; ok {
			in["body"] = v
		}
		delete(in, "value")
	}
	if x.st.Type == "load" {
		for _, name := range []string{"variable", "type", "interpolation_mode", "interpolation_errors"} {
			delete(in, name)
		}
	}
	return m.schedule(x, x.st.Type, "", in)
}

// once schedules the activity of the service that knows who is the first of a period.
func (m *machine) once(x *act) error {
	in := map[string]any{}
	for name, field := range map[string]string{"what": "name", "period": "period", "time_zone": "timeZone"} {
		text, err := x.text(name)
		if err != nil {
			return err
		}
		if text != "" {
			in[field] = text
		}
	}
	if in["name"] == nil {
		return errors.New("input what: it is empty: name what is done once a period")
	}
	return m.schedule(x, ops.ActivityOnce, ops.ServiceList, in)
}

// http schedules the activity of that name, whose input has the form of package kinds.
func (m *machine) http(x *act) error {
	in, err := read(x, func() (map[string]any, error) { return x.in.All(x.env) })
	if err != nil {
		return err
	}
	target, err := address(in)
	if err != nil {
		return err
	}
	call := map[string]any{"url": target}
	for _, name := range []string{"method", "headers", "body"} {
		if in[name] != nil {
			call[name] = in[name]
		}
	}
	if _, given := x.st.Inputs["status_code"]; given {
		var expect []any
		for code := int64(100); code < 600; code++ {
			if ok, err := x.holds(x.st.status, condition.Value(code)); err != nil {
				return err
			} else if ok {
				expect = append(expect, code)
			}
		}
		call["expect"] = expect
	}
	for _, name := range []string{"username", "password", "config", "charset"} {
		if in[name] != nil {
			call[name] = in[name]
		}
	}
	return m.schedule(x, "http", "", call)
}

func address(in map[string]any) (string, error) {
	text, err := value.Text(in["endpoint"])
	if err != nil {
		return "", fmt.Errorf("input endpoint: %w", err)
	}
	if !strings.Contains(text, "://") {
		text = "https://" + text
	}
	query, ok := in["query"].(map[string]any)
	if !ok {
		return text, nil
	}
	all := url.Values{}
	for _, key := range value.Keys(query) {
		v, err := value.Text(query[key])
		if err != nil {
			return "", fmt.Errorf("input query: key %s: %w", key, err)
		}
		all.Set(key, v)
	}
	if strings.Contains(text, "?") {
		return text + "&" + all.Encode(), nil
	}
	return text + "?" + all.Encode(), nil
}

const (
	maxSignals     = 1000
	maxSignalBytes = 1 << 20
)

// keep holds a signal back for a step that waits for it later. It reports whether there was room.
func (m *machine) keepSignal(name string, v any) bool {
	if m.p.signals != nil && !m.p.signals[name] {
		return true // nobody will ever wait for it
	}
	n, bytes := 0, value.Size(v)
	for _, queue := range m.s.Signals {
		n += len(queue)
		for _, one := range queue {
			bytes += value.Size(one.V)
		}
	}
	if n >= maxSignals || bytes > maxSignalBytes {
		return false
	}
	if m.s.Signals == nil {
		m.s.Signals = map[string][]run.Value{}
	}
	m.s.Signals[name] = append(m.s.Signals[name], run.Value{V: v})
	return true
}

func (m *machine) take(name string) (any, bool) {
	queue := m.s.Signals[name]
	if len(queue) == 0 {
		return nil, false
	}
	v := queue[0].V
	if len(queue) == 1 {
		delete(m.s.Signals, name)
	} else {
		m.s.Signals[name] = append([]run.Value(nil), queue[1:]...)
	}
	return v, true
}
