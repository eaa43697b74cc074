package machine

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/droverhq/drover/decider/flow/condition"
	"github.com/droverhq/drover/decider/flow/expr"
	"github.com/droverhq/drover/decider/flow/run"
	"github.com/droverhq/drover/decider/flow/value"
	"github.com/droverhq/drover/schemas"
)

// errRead says that an expression reads a state key that is not known yet.
var errRead = errors.New("a state key has to be read first")

// act is what the expressions of one step, or of the run as a whole, are evaluated in. A state key
// that they name and that has not been read is noted in need; whatever an expression made of its
// absence is thrown away then.
type act struct {
	m     *machine
	st    *step // nil for the run
	inst  *run.Instance
	in    *expr.Inputs
	env   *expr.Env
	own   *run.Value     // the step's own output, while its output is made
	extra map[string]any // of one element of a loop
	need  string
	names bool // a name is being made: those within it stay as they are written
	past  bool // of another step: what it began with comes before what there is now
}

func (m *machine) act(st *step, inst *run.Instance) *act {
	x := &act{m: m, st: st, inst: inst}
	var source map[string]*expr.Expr
	if st != nil {
		source = st.inputs
	}
	x.in = expr.NewInputs(source, inst.Inputs.Map())
	x.env = expr.NewEnv(x, nil)
	m.spends(x.env)
	return x
}

// id names what the instance of a step asks for.
func (x *act) id() string { return x.inst.ID(x.st.Ref) }

// keep remembers the inputs that have been evaluated, unless one was made of a state key that was
// not known.
func (x *act) keep() {
	if x.need != "" {
		return
	}
	if done := x.in.Done(); len(done) > len(x.inst.Inputs.Map()) {
		x.inst.Inputs = run.Value{V: done}
	}
}

// eval evaluates an expression of the step.
func (x *act) eval(e *expr.Expr) (any, error) {
	return read(x, func() (any, error) { return e.Eval(x.env) })
}

func read[T any](x *act, f func() (T, error)) (T, error) {
	v, err := f()
	if x.need != "" {
		var none T
		return none, errRead
	}
	return v, err
}

func (x *act) holds(c *condition.Condition, s condition.Subject) (bool, error) {
	return read(x, func() (bool, error) { return c.Eval(x.env, s) })
}

// input evaluates an input; nil if it is not given.
func (x *act) input(name string) (any, error) {
	return read(x, func() (any, error) {
		v, _, err := x.in.Lookup(x.env, name)
		return v, err
	})
}

// text evaluates an input to a text; empty if it is not given.
func (x *act) text(name string) (string, error) {
	v, err := x.input(name)
	if err != nil || v == nil {
		return "", err
	}
	text, err := value.Text(v)
	if err != nil {
		return "", fmt.Errorf("input %s: %w", name, err)
	}
	return text, nil
}

// named evaluates an input that is the name of something outside, which nothing has that is empty.
func (x *act) named(input, what string) (string, error) {
	name, err := x.text(input)
	if err == nil && name == "" {
		err = fmt.Errorf("input %s: the name of the %s is empty", input, what)
	}
	return name, err
}

func (x *act) duration(e *expr.Expr) (time.Duration, error) {
	v, err := x.eval(e)
	if err != nil {
		return 0, err
	}
	d, err := value.Coerce(v, "duration", x.env.ValueLimits())
	if err != nil {
		return 0, err
	}
	return max(d.(time.Duration), 0), nil
}

// Resolve gives names their meaning.
func (x *act) Resolve(env *expr.Env, path value.Path) (any, int, error) {
	v, used, err := x.meaning(env, path)
	if err != nil {
		return v, used, err
	}
	v, used = parsed(v, used, path)
	return v, used, nil
}

func (x *act) meaning(env *expr.Env, path value.Path) (any, int, error) {
	switch name := path[0].Key; name {
	case "workflow":
		return x.workflow(env, path)
	case "entity":
		if len(path) > 2 && path[1].Key == "config" && path[2].Kind == value.Key {
			return x.config(path)
		}
		return x.state(path)
	case "state": // whatever has this name comes first
		v, used, err := x.bare(env, name, path)
		if e, missing := errors.AsType[*expr.NameError](err); missing &&
			e.Kind == expr.ErrMissing && len(e.Path) == 1 && len(path) > 1 {
			return x.state(path)
		}
		return v, used, err
	case "output":
		return x.outputs(path)
	default:
		return x.bare(env, name, path)
	}
}

// The output of http has its content as text, and as a value where that is JSON. A path into the
// text means the value.
const contentKey, parsedKey = "content", "content_json"

// parsed walks from v along the path, up to a content with a value of its own.
func parsed(v any, used int, path value.Path) (any, int) {
	at := v
	for i := used; i < len(path)-1; i++ {
		m, ok := at.(map[string]any)
		if !ok || path[i].Kind != value.Key {
			break
		}
		next, ok := entry(m, path[i:])
		if _, changed := m[path[i].Key].(string); ok && changed {
			return next, i + 1
		}
		at = next
	}
	return v, used
}

// entry is what the first name of a path means in a map.
func entry(m map[string]any, path value.Path) (any, bool) {
	v, ok := m[path[0].Key]
	if _, text := v.(string); text && path[0].Key == contentKey && len(path) > 1 {
		if value, has := m[parsedKey]; has {
			return value, true
		}
	}
	return v, ok
}

func (x *act) outputs(path value.Path) (any, int, error) {
	if x.own != nil {
		return x.own.V, 1, nil
	}
	if x.past && x.inst.Prev.V != nil {
		return x.inst.Prev.V, 1, nil
	}
	if x.m.s.Prev.V == nil {
		return nil, 0, expr.Missing(path[:1])
	}
	return x.m.s.Prev.V, 1, nil
}

// bare searches from the step outwards.
func (x *act) bare(env *expr.Env, name string, path value.Path) (any, int, error) {
	if x.own != nil {
		if v, ok := entry(x.own.Map(), path); ok {
			return v, 1, nil
		}
	}
	if v, ok := x.extra[name]; ok {
		return v, 1, nil
	}
	if v, found, err := x.in.Lookup(env, name); err != nil || found {
		return v, 1, err
	}
	if x.past {
		for _, m := range []map[string]any{x.inst.Prev.Map(), x.inst.Vars.Map()} {
			if v, ok := entry(m, path); ok {
				return v, 1, nil
			}
		}
	}
	for _, m := range []map[string]any{x.m.s.Prev.Map(), x.m.s.Vars.Map(), x.m.s.Input.Map()} {
		if v, ok := entry(m, path); ok {
			return v, 1, nil
		}
	}
	return nil, 0, &expr.NameError{Kind: expr.ErrMissing, Path: path[:1], Hint: x.m.p.given(name)}
}

// config reads entity.config.NAME, which is an input of the run.
func (x *act) config(path value.Path) (any, int, error) {
	v, ok := x.m.s.Input.Map()[path[2].Key]
	if !ok {
		return nil, 0, expr.Missing(path[:3])
	}
	return v, 3, nil
}

// state reads entity.sensor.KEY and state.KEY.
func (x *act) state(path value.Path) (any, int, error) {
	used := 2
	if path[0].Key == "entity" {
		used = 3
		if len(path) > 1 && path[1].Key != "sensor" && path[1].Key != "state" {
			return nil, 0, &expr.NameError{
				Kind: expr.ErrMissing,
				Path: path,
				Hint: "there are no entities here: read state keys as ${state.KEY}, and inputs by their names",
			}
		}
	}
	if len(path) < used || path[used-1].Kind != value.Key {
		return nil, 0, &expr.NameError{
			Kind: expr.ErrMissing, Path: path, Hint: "name the state key",
		}
	}
	key := path[used-1].Key
	v, ok := x.inst.Reads[key]
	switch {
	case !ok:
		x.need = key
		return nil, 0, expr.NotYet(path[:used])
	case v.V == nil:
		return nil, 0, expr.Missing(path[:used])
	}
	return v.V, used, nil
}

// orNone is all inputs or variables; a state that has none keeps nothing.
func orNone(all run.Value) any {
	if all.V == nil {
		return map[string]any{}
	}
	return all.V
}

func (x *act) workflow(env *expr.Env, path value.Path) (any, int, error) {
	if len(path) < 2 || path[1].Kind != value.Key {
		return nil, 0, &expr.NameError{
			Kind: expr.ErrMissing, Path: path, Hint: "name a part of it, such as workflow.id",
		}
	}
	s := x.m.s
	switch part := path[1].Key; part {
	case "name":
		return x.m.p.def.Name, 2, nil
	case "id":
		return s.ID, 2, nil
	case "task_id":
		return s.Task, 2, nil
	case "start_mode":
		return cmp.Or(s.Mode, string(schemas.ModeManual)), 2, nil
	case "input":
		return orNone(s.Input), 2, nil
	case "output":
		if s.Result.V != nil {
			return s.Result.V, 2, nil
		}
		return s.Prev.V, 2, nil
	case "error":
		if fr := x.m.handler(); fr != nil {
			return fr.Failure.Shown(), 2, nil
		}
	case "var":
		return orNone(s.Vars), 2, nil
	case "util":
		return x.util(path)
	case "current_step":
		return x.part(env, x.st, x.inst, path, 2)
	case "previous_step", "error_handler":
		ref := x.inst.Previous
		if part == "error_handler" {
			ref = ""
			if fr := x.m.handler(); fr != nil {
				ref = fr.Ref
			}
		}
		if st := x.m.p.steps[ref]; st != nil {
			return x.part(env, st, s.Record(ref).Last, path, 2)
		}
	case "step":
		if len(path) > 2 {
			for ref, st := range x.m.p.steps {
				// ids within blocks may repeat: the first by ref would surprise nobody
				if st.ID == path[2].Key && s.Records[ref] != nil && x.sees(st) {
					return x.part(env, st, s.Records[ref].Last, path, 3)
				}
			}
		}
	}
	return nil, 0, expr.Missing(path)
}

// sees tells whether a step's id is meant by it here: the innermost list around that has it.
func (x *act) sees(st *step) bool {
	for l := x.around(); l != nil; {
		if i, ok := l.ids[st.ID]; ok {
			return l.steps[i] == st
		}
		if l.owner == nil {
			break
		}
		l = l.owner.list
	}
	i, ok := x.m.p.body.ids[st.ID]
	return ok && x.m.p.body.steps[i] == st
}

func (x *act) around() *list {
	if x.st == nil {
		return x.m.p.body
	}
	return x.st.list
}

// nameOf is the name of a step, which is for people and fails nothing: what has no value in it
// stays as it is written. That of another step is made of the inputs and variables which that one
// had.
func (x *act) nameOf(env *expr.Env, st *step, inst *run.Instance) string {
	if st.name == nil || x.names {
		return st.Name
	}
	if st != x.st {
		x = x.m.act(st, inst)
		x.past, env = true, x.env
	}
	need := x.need
	x.names = true
	text, err := st.name.Text(env)
	x.names = false
	if err != nil || x.need != need {
		x.need = need
		return st.Name
	}
	return text
}

// part is what is known of a step.
func (x *act) part(
	env *expr.Env, st *step, inst *run.Instance, path value.Path, at int,
) (any, int, error) {
	if st == nil || inst == nil || len(path) <= at {
		return nil, 0, expr.Missing(path)
	}
	used := at + 1
	switch path[at].Key {
	case "name":
		return x.nameOf(env, st, inst), used, nil
	case "task_id":
		return inst.ID(st.Ref), used, nil
	case "step_id":
		return st.ID, used, nil
	case "step_index":
		return int64(st.index), used, nil
	case "output":
		if st == x.st && x.own != nil {
			return x.own.V, used, nil
		}
		return inst.Output.V, used, nil
	case "input":
		if st != x.st {
			return inst.Inputs.V, used, nil
		}
		if len(path) > used {
			v, found, err := x.in.Lookup(env, path[used].Key)
			if err == nil && !found {
				err = expr.Missing(path)
			}
			return v, used + 1, err
		}
		return x.in.Done(), used, nil
	}
	return nil, 0, expr.Missing(path)
}

func (x *act) util(path value.Path) (any, int, error) {
	if len(path) < 3 {
		return nil, 0, expr.Missing(path)
	}
	now := x.m.now.UTC()
	texts := map[string]any{
		"now":         now.UnixMilli(),
		"now_utc":     now.UnixMilli(),
		"now_instant": now,
		"now_iso":     now.Format(time.RFC3339Nano),
		"now_stamp": now.Format("20060102-150405") +
			"000"[:3-len(strconv.Itoa(now.Nanosecond()/1e6))] + strconv.Itoa(now.Nanosecond()/1e6),
		"now_nice": now.Format("2006-01-02 15:04:05"),
	}
	if v, ok := texts[path[2].Key]; ok {
		return v, 3, nil
	}
	if path[2].Key == "random" {
		return x.m.random(), 3, nil
	}
	return nil, 0, expr.Missing(path)
}

// assign sets a variable, or a part of one.
func (x *act) assign(path value.Path, v any) error {
	vars, err := value.Set(x.m.s.Vars.Map(), path, v)
	if err != nil {
		return err
	}
	parts, err := value.Measure(vars, value.Limits{Bytes: maxVars})
	if err != nil {
		return fmt.Errorf(
			"the variables of the run: %w: clear what is not needed, or hand large values through state keys",
			err)
	}
	x.m.spent += parts / partsPerSpent
	x.m.s.Vars = run.Value{V: vars}
	return nil
}

const (
	maxVars = 16 << 20
	// partsPerSpent is how many parts of a value are looked at in the time of one step of
	// evaluation.
	partsPerSpent = 10
)

// coerced is a value of the type that a step names.
func (x *act) coerced(v any) (any, error) {
	name, err := x.text("type")
	if err != nil || name == "" || name == "any" {
		return v, err
	}
	return value.Coerce(v, name, x.env.ValueLimits())
}

func lower(s string) string { return strings.ToLower(s) }
