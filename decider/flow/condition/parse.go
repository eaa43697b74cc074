package condition

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/droverhq/drover/decider/flow/expr"
	"github.com/droverhq/drover/decider/flow/syntax"
	"github.com/droverhq/drover/decider/flow/value"
)

// keys are those of a predicate, for hints.
var keys = []string{
	"equals", "regex", "glob", "less-than", "greater-than", "less-than-or-equal-to",
	"greater-than-or-equal-to", "in-range", "size", "has-element", "java-instance-of", "not", "any",
	"all", "check", "when", "assert", "target", "key", "index", "filter", "jsonpath", "error-field",
	"error-cause", "config", "sensor", "state",
}

func parseTest(v any, path string, depth int) (*test, error) {
	t := &test{path: path}
	refuse := func(problem string) (*test, error) { return nil, &Error{Path: path, Err: errors.New(problem)} }
	if depth > maxDepth {
		return refuse(fmt.Sprintf("more than %d predicates are inside each other", maxDepth))
	}
	switch v := v.(type) {
	case map[string]any:
		return t, t.parseMap(v, depth)
	case []any:
		return refuse("a list is no predicate: write any or all before it, or equals to compare with it")
	case nil:
		return refuse("null is no predicate: write when: absent_or_null to ask for it, or leave the condition out")
	default:
		x, err := expression(v)
		t.implicit = x
		return t, located(path, err)
	}
}

// parseMap reads keys in their order, so that the first error is always the same.
func (t *test) parseMap(m map[string]any, depth int) error {
	retargeted := ""
	for _, key := range value.Keys(m) {
		p := &parser{key: key, path: join(t.path, key), depth: depth}
		if key == "target" {
			x, err := expression(m[key])
			if err != nil {
				return located(p.path, err)
			}
			t.target = x
			continue
		}
		to, isRetarget, err := p.retarget(m[key])
		if isRetarget {
			if err == nil && retargeted != "" {
				err = fmt.Errorf(
					"%s and %s cannot both say what is judged: put one into the check of the other",
					retargeted, key)
			}
			if err != nil {
				return located(p.path, err)
			}
			t.retarget, retargeted = to, key
			continue
		}
		c, err := p.check(m[key])
		if err != nil {
			return located(p.path, err)
		}
		t.checks = append(t.checks, p.located(c))
	}
	if len(t.checks) > 0 {
		return nil
	}
	switch {
	case t.target != nil,
		retargeted == "config",
		retargeted == "sensor",
		retargeted == "state",
		retargeted == "error-cause":
		t.checks = []check{func(_ *expr.Env, s Subject) (bool, error) {
			return presence["present_non_null"](s), nil
		}}
		return nil
	}
	return &Error{
		Path: t.path,
		Err: errors.New(
			"there is nothing to check: write, for example, when: present or equals: 5"),
	}
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// expression reads a value that may have ${…} in it.
func expression(v any) (*expr.Expr, error) {
	return expr.ParseValue(v, expr.Options{Mode: expr.Full})
}

// comparable reads a value to compare with, which null is not.
func comparable(v any) (*expr.Expr, error) {
	if v == nil {
		return nil, errors.New("nothing is compared with null: write when: absent_or_null")
	}
	return expression(v)
}

// parser reads what stands after one key.
type parser struct {
	key   string
	path  string
	depth int
}

func (p *parser) located(c check) check {
	path := p.path
	return func(env *expr.Env, s Subject) (bool, error) {
		if err := env.Spend(1 + s.weight()); err != nil {
			return false, located(path, err)
		}
		ok, err := c(env, s)
		return ok, located(path, err)
	}
}

func (p *parser) test(v any) (*test, error) { return parseTest(v, p.path, p.depth+1) }

func (p *parser) tests(v any) ([]*test, error) {
	list, ok := v.([]any)
	if !ok {
		return nil, fmt.Errorf("it is a %s, want a list of predicates", value.TypeName(v))
	}
	var all []*test
	for i, e := range list {
		t, err := parseTest(e, p.path+"["+strconv.Itoa(i)+"]", p.depth+1)
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}

func (p *parser) check(v any) (check, error) {
	switch p.key {
	case "equals":
		return equals(v)
	case "regex", "glob":
		return p.pattern(v)
	case "less-than", "greater-than", "less-than-or-equal-to", "greater-than-or-equal-to":
		return p.order(v)
	case "in-range":
		return inRange(v)
	case "when":
		return when(v)
	case "java-instance-of":
		return p.instance(v)
	case "size", "has-element", "not", "check":
		inner, err := p.test(v)
		if err != nil {
			return nil, err
		}
		return map[string]func(*test) check{
			"size": size, "has-element": hasElement, "not": not, "check": same,
		}[p.key](inner), nil
	case "any", "all":
		inner, err := p.tests(v)
		if err != nil {
			return nil, err
		}
		return several(inner, p.key == "any"), nil
	case "assert":
		return p.assert(v)
	case "tag":
		return nil, errors.New("there are no tags here: compare a value with target and equals")
	}
	hint := "keys are " + strings.Join(keys, ", ")
	if near := syntax.Nearest(p.key, keys); near != "" {
		hint = "did you mean " + near + "?"
	}
	return nil, errors.New("there is no such key in a predicate: " + hint)
}

// retarget reads a key that says what is judged, and returns whether the key is one.
func (p *parser) retarget(v any) (retarget, bool, error) {
	var to retarget
	var err error
	switch p.key {
	case "key":
		to, err = atKey(v)
	case "index":
		to, err = atIndex(v)
	case "jsonpath":
		to, err = atJSONPath(v)
	case "error-field":
		to, err = atField(v)
	case "config", "sensor":
		to, err = atName(p.key, v)
	case "state":
		to, err = atName("sensor", v)
	case "filter", "error-cause":
		var inner *test
		if inner, err = p.test(v); err != nil {
			break
		}
		to = filter(inner)
		if p.key == "error-cause" {
			to = cause(inner)
		}
	default:
		return nil, false, nil
	}
	return to, true, err
}
