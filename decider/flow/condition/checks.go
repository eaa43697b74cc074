package condition

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/droverhq/drover/decider/flow/expr"
	"github.com/droverhq/drover/decider/flow/syntax"
	"github.com/droverhq/drover/decider/flow/value"
)

// presence are the words of when.
var presence = map[string]func(s Subject) bool{
	"absent":           func(s Subject) bool { return !s.present },
	"absent_or_null":   func(s Subject) bool { return !s.present || s.null() },
	"present":          func(s Subject) bool { return s.present },
	"present_non_null": func(s Subject) bool { return s.present && !s.null() },
	"truthy":           truthy,
	"falsy":            func(s Subject) bool { return !truthy(s) },
	"always":           func(Subject) bool { return true },
	"never":            func(Subject) bool { return false },
}

var presenceWords = []string{
	"absent", "absent_or_null", "present", "present_non_null", "truthy", "falsy", "always", "never",
}

func truthy(s Subject) bool { return s.failure != nil || s.present && value.Truth(s.value) }

func when(v any) (check, error) {
	word, _ := v.(string)
	holds, ok := presence[word]
	if !ok {
		hint := "words are " + strings.Join(presenceWords, ", ")
		if near := syntax.Nearest(word, presenceWords); near != "" {
			hint = "did you mean " + near + "?"
		}
		text, _ := value.Text(v)
		return nil, fmt.Errorf("there is no presence %s: %s", syntax.Quote(text), hint)
	}
	return func(_ *expr.Env, s Subject) (bool, error) { return holds(s), nil }, nil
}

func equals(v any) (check, error) {
	want, err := comparable(v)
	if err != nil {
		return nil, err
	}
	return func(env *expr.Env, s Subject) (bool, error) {
		v, err := want.Eval(env)
		if err != nil || !s.present {
			return false, err
		}
		return value.Equal(s.plain(), v), env.Spend(value.Size(v) / 256)
	}, nil
}

func (p *parser) order(v any) (check, error) {
	than, err := comparable(v)
	if err != nil {
		return nil, err
	}
	less := strings.HasPrefix(p.key, "less")
	orEqual := strings.HasSuffix(p.key, "or-equal-to")
	return func(env *expr.Env, s Subject) (bool, error) {
		v, err := than.Eval(env)
		if err != nil || !s.present {
			return false, err
		}
		c, ok := value.Compare(s.plain(), v)
		return ok && (c < 0 && less || c > 0 && !less || c == 0 && orEqual), nil
	}, nil
}

func inRange(v any) (check, error) {
	bounds, ok := v.([]any)
	if !ok || len(bounds) != 2 {
		return nil, errors.New(
			"a range is a list of the least and the greatest value, such as [1, 5]")
	}
	var ends [2]*expr.Expr
	var fixed [2]any
	for i, b := range bounds {
		var err error
		if ends[i], err = comparable(b); err != nil {
			return nil, err
		}
		fixed[i], _ = ends[i].IsConstant()
	}
	if fixed[0] != nil && fixed[1] != nil {
		if c, ok := value.Compare(fixed[0], fixed[1]); !ok || c > 0 {
			return nil, errors.New(
				"nothing is in this range: the first bound has to be the lesser one")
		}
	}
	return func(env *expr.Env, s Subject) (bool, error) {
		low, err := ends[0].Eval(env)
		if err != nil {
			return false, err
		}
		high, err := ends[1].Eval(env)
		if err != nil || !s.present {
			return false, err
		}
		fromLow, ok1 := value.Compare(s.plain(), low)
		toHigh, ok2 := value.Compare(s.plain(), high)
		return ok1 && ok2 && fromLow >= 0 && toHigh <= 0, nil
	}, nil
}

// pattern is regex and glob, of whole texts.
func (p *parser) pattern(v any) (check, error) {
	text, ok := v.(string)
	if !ok {
		return nil, fmt.Errorf("it is a %s, want a pattern in quotes", value.TypeName(v))
	}
	compile := expr.CompileRegex
	if p.key == "glob" {
		compile = expr.CompileGlob
	}
	x, err := expression(text)
	if err != nil {
		return nil, err
	}
	var fixed *expr.Pattern
	if _, ok := x.IsConstant(); ok {
		if fixed, err = compile(text, true); err != nil {
			return nil, err
		}
	}
	return func(env *expr.Env, s Subject) (bool, error) {
		pattern := fixed
		if pattern == nil {
			text, err := x.Text(env)
			if err != nil {
				return false, err
			}
			if pattern, err = compile(text, true); err != nil {
				return false, err
			}
			if err := pattern.Pay(env); err != nil {
				return false, err
			}
		}
		judged, ok := s.text()
		if !ok {
			return false, nil
		}
		return pattern.Match(env, judged)
	}, nil
}

// classes are the names that java-instance-of knows for the types of values.
var classes = map[string][]string{
	"boolean":  {"boolean", "Boolean"},
	"integer":  {"integer", "Integer", "Long", "Number"},
	"double":   {"double", "Double", "Number"},
	"string":   {"string", "String", "CharSequence"},
	"list":     {"list", "List", "Collection", "Iterable"},
	"map":      {"map", "Map"},
	"duration": {"duration", "Duration"},
	"instant":  {"instant", "Instant"},
}

// instance judges the names of a type or an error; what stands before the last dot of a name does
// not matter.
func (p *parser) instance(v any) (check, error) {
	inner, err := p.test(v)
	if err != nil {
		return nil, err
	}
	if inner.implicit != nil {
		if name, ok := inner.implicit.IsConstant(); ok {
			text, ok := name.(string)
			if !ok {
				return nil, fmt.Errorf("it is a %s, want the name of a type or an error",
					value.TypeName(name))
			}
			short := text[strings.LastIndexByte(text, '.')+1:]
			return func(_ *expr.Env, s Subject) (bool, error) { return slices.Contains(s.names(), short), nil }, nil
		}
	}
	return func(env *expr.Env, s Subject) (bool, error) {
		for _, name := range s.names() {
			if ok, err := inner.holds(env, Value(name)); err != nil || ok {
				return ok, err
			}
		}
		return false, nil
	}, nil
}

func (s Subject) names() []string {
	switch {
	case s.failure != nil:
		return append(slices.Clone(s.failure.Names), "Exception", "Throwable")
	case s.present:
		return classes[value.TypeName(s.value)]
	}
	return nil
}

func size(inner *test) check {
	return func(env *expr.Env, s Subject) (bool, error) {
		n, ok := expr.Length(s.plain())
		if !ok || !s.present {
			return inner.holds(env, Subject{})
		}
		return inner.holds(env, Value(int64(n)))
	}
}

// hasElement judges the elements of a list and the values of a map.
func hasElement(inner *test) check {
	return func(env *expr.Env, s Subject) (bool, error) {
		elements, _ := s.value.([]any)
		if m, ok := s.value.(map[string]any); ok {
			for _, k := range value.Keys(m) {
				elements = append(elements, m[k])
			}
		}
		for _, e := range elements {
			if ok, err := inner.holds(env, Value(e)); err != nil || ok {
				return ok, err
			}
		}
		return false, nil
	}
}

func not(inner *test) check {
	return func(env *expr.Env, s Subject) (bool, error) {
		ok, err := inner.holds(env, s)
		return !ok && err == nil, err
	}
}

func same(inner *test) check { return inner.holds }

// several is any and all: the first that decides is the last that is judged.
func several(inner []*test, decides bool) check {
	return func(env *expr.Env, s Subject) (bool, error) {
		for _, t := range inner {
			if ok, err := t.holds(env, s); err != nil || ok == decides {
				return ok, err
			}
		}
		return !decides, nil
	}
}

// assert is a word of when, or a predicate.
func (p *parser) assert(v any) (check, error) {
	var holds check
	if word, ok := v.(string); ok && presence[word] != nil {
		c, err := when(v)
		if err != nil {
			return nil, err
		}
		holds = c
	} else {
		inner, err := p.test(v)
		if err != nil {
			return nil, err
		}
		holds = inner.holds
	}
	return func(env *expr.Env, s Subject) (bool, error) {
		ok, err := holds(env, s)
		if err == nil && !ok {
			err = ErrAssert
		}
		return ok, err
	}, nil
}
