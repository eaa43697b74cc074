package condition

import (
	"errors"
	"fmt"
	"strings"

	"github.com/droverhq/drover/decider/flow/expr"
	"github.com/droverhq/drover/decider/flow/syntax"
	"github.com/droverhq/drover/decider/flow/value"
)

func atKey(v any) (retarget, error) {
	x, err := comparable(v)
	if err != nil {
		return nil, err
	}
	return func(env *expr.Env, s Subject) (Subject, error) {
		key, err := x.Text(env)
		if err != nil {
			return Subject{}, fmt.Errorf("key: %w", err)
		}
		m, _ := s.value.(map[string]any)
		part, ok := m[key]
		return Subject{present: ok, value: part}, nil
	}, nil
}

// atIndex takes an element of a list; negative indices count from the end.
func atIndex(v any) (retarget, error) {
	x, err := comparable(v)
	if err != nil {
		return nil, err
	}
	if fixed, ok := x.IsConstant(); ok {
		if _, err := value.Coerce(fixed, "integer", value.Limits{}); err != nil {
			return nil, err
		}
	}
	return func(env *expr.Env, s Subject) (Subject, error) {
		v, err := x.Eval(env)
		if err != nil {
			return Subject{}, fmt.Errorf("index: %w", err)
		}
		n, err := value.Coerce(v, "integer", env.ValueLimits())
		if err != nil {
			return Subject{}, fmt.Errorf("index: %w", err)
		}
		list, _ := s.value.([]any)
		i := n.(int64)
		if i < 0 {
			i += int64(len(list))
		}
		if i < 0 || i >= int64(len(list)) {
			return Subject{}, nil
		}
		return Value(list[i]), nil
	}, nil
}

// atJSONPath knows the part of JSONPath that leads to one place: names, ['names'] and [indices].
func atJSONPath(v any) (retarget, error) {
	const what = "jsonpath"
	text, ok := v.(string)
	if !ok {
		return nil, fmt.Errorf("it is a %s, want a text such as $.a.b[0]", value.TypeName(v))
	}
	rest, at := text, 0
	if strings.HasPrefix(rest, "$") {
		rest, at = rest[1:], 1
		if strings.HasPrefix(rest, ".") {
			rest, at = rest[1:], 2
		} else if rest == "" {
			return func(_ *expr.Env, s Subject) (Subject, error) { return s, nil }, nil
		}
	}
	path, err := value.ParseRelative(rest)
	if err == nil {
		for _, step := range path {
			if step.Kind == value.Append {
				err = errors.New("there is no index -1")
			}
		}
	}
	if err != nil {
		err = syntax.Within(what, text, at, err)
		if e, ok := errors.AsType[*syntax.Error](err); ok {
			e.Hint = "only names, ['names'] and [indices] from 0 are supported, as in $.a['b " +
				"c'][0]: use filter, has-element or the transforms for more"
		}
		return nil, err
	}
	return func(_ *expr.Env, s Subject) (Subject, error) {
		part, ok, err := value.Get(s.value, path)
		return Subject{present: ok && err == nil, value: part}, nil // no such part is no error here
	}, nil
}

// filter leaves the elements of a list that pass.
func filter(inner *test) retarget {
	return func(env *expr.Env, s Subject) (Subject, error) {
		list, ok := s.value.([]any)
		if !ok {
			return Subject{}, nil
		}
		passed := []any{}
		for _, e := range list {
			ok, err := inner.holds(env, Value(e))
			if err != nil {
				return Subject{}, err
			}
			if ok {
				passed = append(passed, e)
			}
		}
		return Value(passed), nil
	}
}

// cause finds the first error that passes, from the error itself on.
func cause(inner *test) retarget {
	return func(env *expr.Env, s Subject) (Subject, error) {
		f := s.failure
		for range maxCauses {
			if f == nil {
				break
			}
			if ok, err := inner.holds(env, Failed(f)); err != nil || ok {
				return Failed(f), err
			}
			f = f.Cause
		}
		return Subject{}, nil
	}
}

// atField takes a field of an error: message, type, cause or one of its own.
func atField(v any) (retarget, error) {
	x, err := comparable(v)
	if err != nil {
		return nil, err
	}
	return func(env *expr.Env, s Subject) (Subject, error) {
		name, err := x.Text(env)
		if err != nil {
			return Subject{}, fmt.Errorf("error-field: %w", err)
		}
		f := s.failure
		if f == nil {
			return Subject{}, nil
		}
		if field, ok := f.Fields[name]; ok {
			return Value(field), nil
		}
		switch {
		case name == "message":
			return Value(f.Message), nil
		case name == "type" && len(f.Names) > 0:
			return Value(f.Names[0]), nil
		case name == "cause":
			return Failed(f.Cause), nil
		}
		return Subject{}, nil
	}, nil
}

// atName looks up what an author may also write as ${entity.sensor.NAME}, where sensor is a kind.
// The name is one step of the path, dots and all.
func atName(kind string, v any) (retarget, error) {
	x, err := comparable(v)
	if err != nil {
		return nil, err
	}
	return func(env *expr.Env, _ Subject) (Subject, error) {
		name, err := x.Text(env)
		if err != nil {
			return Subject{}, fmt.Errorf("%s: %w", kind, err)
		}
		s, err := found(env.Lookup(value.Path{
			{Kind: value.Key, Key: "entity"},
			{Kind: value.Key, Key: kind},
			{Kind: value.Key, Key: name},
		}))
		if err != nil {
			return s, fmt.Errorf("%s: %w", kind, err)
		}
		return s, nil
	}, nil
}
