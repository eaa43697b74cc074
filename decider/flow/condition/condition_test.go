package condition_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/decider/flow/condition"
	"github.com/droverhq/drover/decider/flow/expr"
	"github.com/droverhq/drover/decider/flow/value"
)

type (
	list    = []any
	dict    = map[string]any
	problem string // what an error has to contain
)

// scope knows variables, and names under "later" that are not yet available.
type scope dict

func (s scope) Resolve(_ *expr.Env, path value.Path) (any, int, error) {
	if path[0].Key == "later" {
		return nil, 0, expr.NotYet(path)
	}
	return expr.Vars(s).Resolve(nil, path)
}

func env() *expr.Env {
	return expr.NewEnv(scope{
		"i": int64(7), "s": "text", "nothing": nil, "yes": true, "l": list{int64(1), int64(2)}, "pattern": "t.*t", "bad": "(",
		"entity": dict{"sensor": dict{"service.isUp": true, "empty": nil}, "config": dict{"size": int64(3)}},
	}, nil)
}

// judge parses and evaluates; what it returns is a bool or an error.
func judge(predicate any, s condition.Subject) any {
	c, err := condition.Parse(predicate)
	if err != nil {
		return err
	}
	ok, err := c.Eval(env(), s)
	if err != nil {
		if ok {
			return fmt.Errorf("true comes with the error %w", err)
		}
		return err
	}
	return ok
}

func check(t *testing.T, name string, got, want any) {
	t.Helper()
	if p, ok := want.(problem); ok {
		err, _ := got.(error)
		if _, ok := errors.AsType[*condition.Error](err); !ok || !strings.Contains(err.Error(), string(p)) {
			t.Errorf("%s: got %v, want an error with %q", name, got, p)
		}
		return
	}
	if got != want {
		t.Errorf("%s: got %v, want %v", name, got, want)
	}
}

// sometimes is a subject for the tables: absent is not a value.
type sometimes struct{}

var absent = sometimes{}

func subject(v any) condition.Subject {
	switch v := v.(type) {
	case sometimes:
		return condition.Subject{}
	case *condition.Failure:
		return condition.Failed(v)
	}
	return condition.Value(v)
}

func TestValues(t *testing.T) {
	for _, tc := range []struct {
		predicate, subject, want any
	}{
		// bare values
		{5, int64(5), true},
		{5, "5.0", true},
		{5, int64(6), false},
		{"a", "a", true},
		{"5", "5.0", false},
		{"${i}", int64(7), true},
		{"${i} + 1", "7 + 1", true},
		{5, absent, false},
		{5, nil, false},
		{5, list{int64(5)}, problem("write equals or has-element")},
		{5, list{}, problem("write equals or has-element")},
		{true, absent, true},
		{false, "x", false},
		{"${yes}", absent, true},
		{"${absent}", "x", problem("no such value")},
		{"true", true, true},
		{2 * time.Minute, "120s", true},

		// equals
		{dict{"equals": 5}, "5.0", true},
		{dict{"equals": "${workflow.id}"}, "x", problem(`equals: "${workflow.id}"`)},
		{dict{"equals": list{1, 2}}, list{int64(1), "2"}, true},
		{dict{"equals": "${l}"}, list{int64(1), int64(2)}, true},
		{dict{"equals": dict{"a": "${i}"}}, dict{"a": int64(7)}, true},
		{dict{"equals": true}, "true", true},
		{dict{"equals": ""}, nil, false},
		{dict{"equals": ""}, absent, false},
		{dict{"equals": 5}, list{int64(5)}, false},

		// regex and glob judge whole texts
		{dict{"regex": "t.*t"}, "text", true},
		{dict{"regex": "ex"}, "text", false},
		{dict{"regex": "a|b"}, "ab", false},
		{dict{"regex": "a.b"}, "a\nb", true},
		{dict{"regex": "[0-9]+"}, int64(12), true},
		{dict{"regex": "true|yes"}, true, true},
		{dict{"regex": ".*"}, list{}, false},
		{dict{"regex": ".*"}, nil, false},
		{dict{"regex": ".*"}, absent, false},
		{dict{"regex": "${pattern}"}, "test", true},
		{dict{"regex": "${bad}"}, "test", problem("regex: ")},
		{dict{"regex": "${absent}"}, "test", problem("no such value")},
		{dict{"glob": "*.{gif,png}"}, "a.png", true},
		{dict{"glob": "*.{gif,png}"}, "a.pngx", false},
		{dict{"glob": "a?c"}, "abc", true},
		{dict{"glob": "a?c"}, "abbc", false},
		{dict{"glob": "[a]"}, "[a]", true},
		{dict{"glob": "[a]"}, "a", false},
		{dict{"glob": "a*"}, "a\nb", true},
		{dict{"glob": "a.c"}, "abc", false},

		// order
		{dict{"less-than": 3}, int64(2), true},
		{dict{"less-than": 3}, int64(3), false},
		{dict{"less-than": 3}, "2.5", true},
		{dict{"less-than": 3}, "two", false},
		{dict{"greater-than": "9"}, "10", true}, // natural order
		{dict{"greater-than": "v1.9"}, "v1.10", true},
		{dict{"less-than-or-equal-to": 3}, int64(3), true},
		{dict{"less-than-or-equal-to": 3}, int64(4), false},
		{dict{"greater-than-or-equal-to": "${i}"}, int64(7), true},
		{dict{"greater-than-or-equal-to": 7}, int64(6), false},
		{dict{"less-than": 2 * time.Minute}, "90s", true}, // typed values coerce the text
		{dict{"less-than": "2m"}, 90 * time.Second, true},
		{dict{"greater-than": "2026-01-01T00:00:00Z"}, time.Date(2026, 3, 29, 0, 0, 0, 0, time.UTC), true},
		{dict{"less-than": 3}, nil, false}, // upstream: null is equal
		{dict{"less-than-or-equal-to": 3}, nil, false},
		{dict{"greater-than-or-equal-to": 3}, nil, false},
		{dict{"less-than": 3}, absent, false},
		{dict{"less-than": 3}, list{}, false},
		{dict{"less-than": "${absent}"}, int64(1), problem("less-than: ")},
		{dict{"in-range": list{1, 5}}, int64(1), true},
		{dict{"in-range": list{1, 5}}, int64(5), true},
		{dict{"in-range": list{1, 5}}, 5.5, false},
		{dict{"in-range": list{1, 5}}, int64(0), false},
		{dict{"in-range": list{1, "${i}"}}, int64(7), true},
		{dict{"in-range": list{"${i}", 9}}, int64(7), true},
		{dict{"in-range": list{"${absent}", 9}}, int64(7), problem("in-range: ")},
		{dict{"in-range": list{1, "${absent}"}}, int64(7), problem("in-range: ")},
		{dict{"in-range": list{1, 5}}, nil, false},
		{dict{"in-range": list{1, 5}}, absent, false},

		// size and elements
		{dict{"size": 3}, "häh", true},
		{dict{"size": 2}, list{nil, nil}, true},
		{dict{"size": dict{"greater-than": 0}}, dict{"a": nil}, true},
		{dict{"size": 0}, "", true},
		{dict{"size": 1}, int64(5), false},
		{dict{"size": dict{"when": "absent"}}, int64(5), true},
		{dict{"size": 0}, absent, false},
		{dict{"size": 0}, nil, false},
		{dict{"has-element": 2}, list{int64(1), "2"}, true},
		{dict{"has-element": dict{"greater-than": 2}}, list{int64(1), int64(2)}, false},
		{dict{"has-element": "x"}, dict{"a": "x"}, true},
		{dict{"has-element": "x"}, list{}, false},
		{dict{"has-element": "x"}, "x", false},
		{dict{"has-element": "x"}, absent, false},
		{dict{"has-element": dict{"when": "absent_or_null"}}, list{nil}, true},
		{dict{"has-element": "x"}, list{list{}}, problem("write equals or has-element")},

		// types
		{dict{"java-instance-of": "String"}, "x", true},
		{dict{"java-instance-of": "java.lang.String"}, "x", true},
		{dict{"java-instance-of": "integer"}, int64(1), true},
		{dict{"java-instance-of": "Number"}, 1.5, true},
		{dict{"java-instance-of": "String"}, int64(1), false},
		{dict{"java-instance-of": "String"}, absent, false},
		{dict{"java-instance-of": "Object"}, nil, false},
		{dict{"java-instance-of": dict{"glob": "Lo*"}}, int64(1), true},
		{dict{"java-instance-of": dict{"any": list{"Map", "List"}}}, dict{}, true},

		// composition
		{dict{"not": 5}, int64(6), true},
		{dict{"not": 5}, int64(5), false},
		{dict{"not": dict{"equals": true}}, absent, true},
		{dict{"not": dict{"less-than": 3}}, nil, true},
		{dict{"not": "${absent}"}, "x", problem("not: ")},
		{dict{"any": list{}}, "x", false},
		{dict{"all": list{}}, "x", true},
		{dict{"any": list{"a", "b"}}, "b", true},
		{dict{"any": list{"a", "b"}}, "c", false},
		{dict{"any": list{dict{"when": "absent"}, dict{"equals": "${i}"}}}, absent, true}, // the try-lock example
		{dict{"any": list{dict{"when": "absent"}, dict{"equals": "${i}"}}}, int64(7), true},
		{dict{"any": list{dict{"when": "absent"}, dict{"equals": "${i}"}}}, "other", false},
		{dict{"any": list{"x", "${absent}"}}, "x", true}, // what is not needed is not evaluated
		{dict{"any": list{"y", "${absent}"}}, "x", problem("any[1]: ")},
		{dict{"all": list{dict{"less-than": 3}, dict{"greater-than": 1}}}, int64(2), true},
		{dict{"all": list{dict{"less-than": 3}, dict{"greater-than": 1}}}, int64(1), false},
		{dict{"check": dict{"equals": 5}}, int64(5), true},
		{dict{"less-than": 9, "greater-than": 5}, int64(7), true}, // all checks of a map have to pass
		{dict{"less-than": 9, "greater-than": 7}, int64(7), false},
	} {
		check(t, fmt.Sprintf("%v of %v", tc.predicate, tc.subject), judge(tc.predicate, subject(tc.subject)), tc.want)
	}
}

func TestPresence(t *testing.T) {
	subjects := []any{absent, nil, false, "false", "", int64(0), int64(1), list{}, dict{}, list{nil}}
	for word, want := range map[string]string{ // one letter for each subject
		"absent":           "ynnnnnnnnn",
		"absent_or_null":   "yynnnnnnnn",
		"present":          "nyyyyyyyyy",
		"present_non_null": "nnyyyyyyyy",
		"truthy":           "nnnynnynny",
		"falsy":            "yyynyynyyn",
		"always":           "yyyyyyyyyy",
		"never":            "nnnnnnnnnn",
	} {
		for i, s := range subjects {
			check(t, fmt.Sprintf("when %s of %v", word, s), judge(dict{"when": word}, subject(s)), want[i] == 'y')
			var asserted any = true
			if want[i] == 'n' {
				asserted = problem("assert: the assertion does not hold")
			}
			check(t, fmt.Sprintf("assert %s of %v", word, s), judge(dict{"assert": word}, subject(s)), asserted)
		}
	}
}

func TestAssert(t *testing.T) {
	for _, tc := range []struct {
		predicate, subject, want any
	}{
		{dict{"assert": dict{"less-than": 3}}, int64(2), true},
		{dict{"assert": dict{"less-than": 3}}, int64(3), problem("assert: the assertion")},
		{dict{"assert": 5}, int64(5), true},
		{dict{"assert": "x"}, "y", problem("assert: the assertion")},
		{dict{"assert": "present", "equals": 5}, int64(6), false},
		{dict{"not": dict{"assert": "absent"}}, "x", problem("not.assert: the assertion")},
		{dict{"any": list{dict{"assert": "absent"}, true}}, "x", problem("any[0].assert")},
		{dict{"assert": "${absent}"}, "x", problem("no such value")},
	} {
		check(t, fmt.Sprintf("%v of %v", tc.predicate, tc.subject), judge(tc.predicate, subject(tc.subject)), tc.want)
	}
	if err, _ := judge(dict{"assert": "absent"}, condition.Value(1)).(error); !errors.Is(err, condition.ErrAssert) {
		t.Errorf("got %v, want ErrAssert", err)
	}
}

func TestRetargets(t *testing.T) {
	v := dict{"a": dict{"b c": list{int64(1), "two"}}, "n": nil, "7": "seven"}
	for _, tc := range []struct {
		predicate any
		want      any
	}{
		{dict{"target": "${i}", "equals": 7}, true},
		{dict{"target": "${i} apples", "equals": "7 apples"}, true},
		{dict{"target": list{"${i}"}, "has-element": 7}, true},
		{dict{"target": 5, "less-than": 6}, true},
		{dict{"target": "${l}", "index": 1, "equals": 2}, true},
		{dict{"target": "${absent}", "when": "absent"}, true},
		{dict{"target": "${nothing}", "when": "absent"}, true},
		{dict{"target": "${later.x}", "when": "absent"}, true},
		{dict{"target": "${s.part}", "when": "absent"}, true},
		{dict{"target": "${absent}", "equals": false}, false},
		{dict{"target": "${absent}", "when": "falsy"}, true}, // the approval example
		{dict{"target": "${absent}", "not": dict{"equals": true}}, true},
		{dict{"target": "x ${l}", "when": "absent"}, problem("target: ")},
		{dict{"target": nil, "when": "absent"}, true},
		// a target by itself has to be present and not null, not truthy
		{dict{"target": "${i}"}, true},
		{dict{"target": ""}, true},
		{dict{"target": 0}, true},
		{dict{"target": false}, true},
		{dict{"target": "${absent}"}, false},
		{dict{"target": "${nothing}"}, false},
		{dict{"target": "${l}", "index": 1}, true},
		{dict{"target": "${l}", "index": 2}, false},

		{dict{"key": "a", "size": 1}, true},
		{dict{"key": "z", "when": "absent"}, true},
		{dict{"key": "n", "when": "absent"}, false},
		{dict{"key": "n", "when": "absent_or_null"}, true},
		{dict{"key": "z", "equals": 1}, false},
		{dict{"key": "z", "not": 1}, true},
		{dict{"key": "${i}", "equals": "seven"}, true},
		{dict{"key": 7, "equals": "seven"}, true},
		{dict{"key": "${absent}", "when": "absent"}, problem("no such value")},
		{dict{"key": "a", "check": dict{"key": "b c", "check": dict{"index": -1, "equals": "two"}}}, true},
		{dict{"target": "${l}", "key": "x", "when": "absent"}, true},

		{dict{"target": "${l}", "index": 0, "equals": 1}, true},
		{dict{"target": "${l}", "index": -2, "equals": 1}, true},
		{dict{"target": "${l}", "index": 2, "when": "absent"}, true},
		{dict{"target": "${l}", "index": -3, "when": "absent"}, true},
		{dict{"target": "${l}", "index": "${s}", "when": "absent"}, problem("no integer")},
		{dict{"target": "${l}", "index": "${absent}", "when": "absent"}, problem("no such value")},
		{dict{"index": 0, "when": "absent"}, true},

		{dict{"target": "${l}", "filter": dict{"greater-than": 1}, "size": 1}, true},
		{dict{"target": "${l}", "filter": dict{"greater-than": 9}, "equals": list{}}, true},
		{dict{"target": "${l}", "filter": "${absent}", "size": 1}, problem("filter: ")},
		{dict{"filter": true, "when": "absent"}, true},

		{dict{"jsonpath": "$.a['b c'][1]", "equals": "two"}, true},
		{dict{"jsonpath": "a['b c'][0]", "equals": 1}, true},
		{dict{"jsonpath": "$['a']", "size": 1}, true},
		{dict{"jsonpath": "$", "size": 3}, true},
		{dict{"jsonpath": "$.a.z", "when": "absent"}, true},
		{dict{"jsonpath": "$.7.z", "when": "absent"}, true},

		{dict{"sensor": "service.isUp", "equals": true}, true},
		{dict{"sensor": "service.isUp"}, true},
		{dict{"sensor": "empty"}, false},
		{dict{"sensor": "other"}, false},
		{dict{"sensor": "other", "when": "absent"}, true},
		{dict{"state": "service.isUp", "when": "truthy"}, true},
		{dict{"config": "size", "equals": 3}, true},
		{dict{"config": "size"}, true},
		{dict{"config": "${absent}"}, problem("no such value")},
		{dict{"error-field": "message", "when": "absent"}, true},
		{dict{"error-cause": true}, false},
	} {
		check(t, fmt.Sprint(tc.predicate), judge(tc.predicate, condition.Value(v)), tc.want)
	}
}
