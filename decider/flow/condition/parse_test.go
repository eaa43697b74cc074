package condition_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/droverhq/drover/decider/flow/condition"
	"github.com/droverhq/drover/decider/flow/expr"
	"github.com/droverhq/drover/decider/flow/syntax"
	"github.com/droverhq/drover/decider/flow/value"
	"pgregory.net/rapid"
)

func TestParseRefuses(t *testing.T) {
	deep := any(true)
	for range 40 {
		deep = dict{"not": deep}
	}
	for _, tc := range []struct {
		predicate any
		path      string
		want      string
	}{
		{nil, "", "null is no predicate"},
		{list{"a"}, "", "a list is no predicate"},
		{struct{}{}, "", "no value of a flow"},
		{dict{}, "", "nothing to check"},
		{dict{"key": "a"}, "", "nothing to check"},
		{dict{"filter": true}, "", "nothing to check"},
		{dict{"error-field": "port"}, "", "nothing to check"},
		{dict{"equal": 5}, "equal", "did you mean equals?"},
		{dict{"lessthan": 5}, "lessthan", "did you mean less-than?"},
		{dict{"xyzzy": 5}, "xyzzy", "keys are equals, regex"},
		{dict{"tag": "x"}, "tag", "there are no tags here"},
		{dict{"equals": nil}, "equals", "absent_or_null"},
		{dict{"less-than": nil}, "less-than", "absent_or_null"},
		{dict{"equals": "${"}, "equals", "not closed"},
		{dict{"equals": list{"${a b}"}}, "equals", "operators work in let"},
		{"${", "", "not closed"},
		{dict{"target": "${"}, "target", "not closed"},
		{dict{"regex": "("}, "regex", "no regular expression"},
		{dict{"regex": "a)|(b"}, "regex", "no regular expression"},
		{dict{"regex": 5}, "regex", "want a pattern"},
		{dict{"regex": "${"}, "regex", "not closed"},
		{dict{"glob": "{a"}, "glob", "not closed"},
		{dict{"in-range": 5}, "in-range", "a list of the least"},
		{dict{"in-range": list{1}}, "in-range", "a list of the least"},
		{dict{"in-range": list{1, nil}}, "in-range", "absent_or_null"},
		{dict{"in-range": list{5, 1}}, "in-range", "nothing is in this range"},
		{dict{"in-range": list{1, "x"}}, "in-range", "nothing is in this range"},
		{dict{"when": "abzent"}, "when", "did you mean absent?"},
		{dict{"when": "now and then"}, "when", "words are absent"},
		{dict{"when": 5}, "when", "there is no presence"},
		{dict{"any": "x"}, "any", "want a list"},
		{dict{"all": dict{}}, "all", "want a list"},
		{dict{"any": list{"x", dict{"regex": "("}}}, "any[1].regex", "no regular expression"},
		{dict{"not": dict{"size": dict{"all": list{nil}}}}, "not.size.all[0]", "null is no predicate"},
		{dict{"has-element": list{}}, "has-element", "a list is no predicate"},
		{dict{"check": dict{}}, "check", "nothing to check"},
		{dict{"assert": nil}, "assert", "null is no predicate"},
		{dict{"assert": dict{"size": nil}}, "assert.size", "null is no predicate"},
		{dict{"java-instance-of": 5}, "java-instance-of", "want the name of a type"},
		{dict{"java-instance-of": nil}, "java-instance-of", "null is no predicate"},
		{dict{"key": "a", "index": 0, "when": "present"}, "key", "index and key cannot both"},
		{dict{"key": nil, "when": "present"}, "key", "null"},
		{dict{"index": "x", "when": "present"}, "index", "no integer"},
		{dict{"index": nil, "when": "present"}, "index", "null"},
		{dict{"error-field": nil, "when": "present"}, "error-field", "null"},
		{dict{"sensor": nil}, "sensor", "null"},
		{dict{"error-cause": dict{}}, "error-cause", "nothing to check"},
		{dict{"filter": nil, "size": 1}, "filter", "null is no predicate"},
		{dict{"jsonpath": 5, "when": "present"}, "jsonpath", "want a text"},
		{dict{"jsonpath": "$.*", "when": "present"}, "jsonpath", "only names"},
		{dict{"jsonpath": "$..a", "when": "present"}, "jsonpath", "only names"},
		{dict{"jsonpath": "$.a[?(@.b)]", "when": "present"}, "jsonpath", "only names"},
		{dict{"jsonpath": "$.a[0:2]", "when": "present"}, "jsonpath", "only names"},
		{dict{"jsonpath": "$.a[-1]", "when": "present"}, "jsonpath", "only names"},
		{dict{"jsonpath": "$.length()", "when": "present"}, "jsonpath", "only names"},
		{dict{"jsonpath": "", "when": "present"}, "jsonpath", "only names"},
		{deep, strings.Repeat("not.", 32) + "not", "more than 32 predicates"},
	} {
		got, err := condition.Parse(tc.predicate)
		e, ok := errors.AsType[*condition.Error](err)
		if !ok || got != nil || e.Path != tc.path || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v: got %v, %v, want path %q and %q", tc.predicate, got, err, tc.path, tc.want)
		}
	}
}

// Errors of texts inside keep their offset.
func TestParseErrorsPoint(t *testing.T) {
	_, err := condition.Parse(dict{"any": list{dict{"jsonpath": "$.a..b", "when": "present"}}})
	e, ok := errors.AsType[*syntax.Error](err)
	if !ok || e.Offset != 4 {
		t.Errorf("got %v, want offset 4", err)
	}
	_, err = condition.Parse(dict{"equals": "x ${a b}"})
	if e, ok = errors.AsType[*syntax.Error](err); !ok || e.Offset != 5 {
		t.Errorf("got %v, want offset 5", err)
	}
}

// The tree of closures against a plain recursion over the predicate itself.
func TestAgainstRecursion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := predicate(t, 3)
		var v any = absent
		if rapid.IntRange(0, 4).Draw(t, "present") > 0 {
			v = rapid.OneOf(
				rapid.Map(rapid.Int64Range(0, 4), func(n int64) any { return n }),
				rapid.Map(rapid.SliceOfN(rapid.Int64Range(0, 4), 0, 3), func(l []int64) any {
					out := list{}
					for _, n := range l {
						out = append(out, n)
					}
					return out
				}),
				rapid.Just[any](nil),
			).Draw(t, "subject")
		}
		want := plain(p, v)
		if got := judge(p, subject(v)); got != want {
			t.Fatalf("%v of %v: got %v, want %v", p, v, got, want)
		}
	})
}

func predicate(t *rapid.T, depth int) any {
	kinds := []string{"bool", "equals", "less-than", "when"}
	if depth > 0 {
		kinds = append(kinds, "not", "any", "all", "check", "index", "filter", "has-element", "size", "two")
	}
	n := rapid.Int64Range(0, 4).Draw(t, "n")
	switch kind := rapid.SampledFrom(kinds).Draw(t, "kind"); kind {
	case "bool":
		return rapid.Bool().Draw(t, "bool")
	case "equals", "less-than":
		return dict{kind: n}
	case "when":
		return dict{"when": rapid.SampledFrom([]string{"absent", "absent_or_null", "present", "truthy"}).Draw(t, "word")}
	case "any", "all":
		inner := list{}
		for range rapid.IntRange(0, 3).Draw(t, "inner") {
			inner = append(inner, predicate(t, depth-1))
		}
		return dict{kind: inner}
	case "index":
		return dict{"index": n - 2, "check": predicate(t, depth-1)}
	case "filter":
		return dict{"filter": predicate(t, depth-1), "check": predicate(t, depth-1)}
	case "two":
		return dict{"check": predicate(t, depth-1), "not": predicate(t, depth-1)}
	default:
		return dict{kind: predicate(t, depth-1)}
	}
}

func plain(p, v any) bool {
	if b, ok := p.(bool); ok {
		return b
	}
	m := p.(dict)
	l, isList := v.(list)
	if i, ok := m["index"].(int64); ok {
		if i < 0 {
			i += int64(len(l))
		}
		v = any(absent)
		if i >= 0 && i < int64(len(l)) {
			v = l[i]
		}
	}
	if f, ok := m["filter"]; ok {
		v = any(absent)
		if isList {
			kept := list{}
			for _, e := range l {
				if plain(f, e) {
					kept = append(kept, e)
				}
			}
			v = kept
		}
	}
	holds := true
	for key, arg := range m {
		holds = holds && plainCheck(key, arg, v)
	}
	return holds
}

func plainCheck(key string, arg, v any) bool {
	n, isNumber := v.(int64)
	l, isList := v.(list)
	switch key {
	case "equals":
		return isNumber && n == arg
	case "less-than":
		return isNumber && n < arg.(int64)
	case "when":
		switch arg {
		case "absent":
			return v == any(absent)
		case "absent_or_null":
			return v == nil || !isList && v == any(absent)
		case "present":
			return isList || v != any(absent)
		}
		return isNumber && n != 0 || len(l) > 0
	case "not":
		return !plain(arg, v)
	case "check":
		return plain(arg, v)
	case "any", "all":
		yes := 0
		for _, p := range arg.(list) {
			if plain(p, v) {
				yes++
			}
		}
		return key == "any" && yes > 0 || key == "all" && yes == len(arg.(list))
	case "has-element":
		for _, e := range l {
			if plain(arg, e) {
				return true
			}
		}
		return false
	case "size":
		if isList {
			return plain(arg, int64(len(l)))
		}
		return plain(arg, absent)
	}
	return true // index and filter
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		`5`, `{"any": [{"when": "absent"}, {"equals": "${i}"}]}`, `{"target": "${l}", "filter": {"less-than": 3}, "size": 1}`,
		`{"regex": "(a|b)*", "assert": "present"}`, `{"jsonpath": "$.a['b'][0]", "glob": "{a,b}*"}`, `{"not": {"error-cause": {"error-field": "x", "in-range": [1, 2]}}}`,
	} {
		f.Add(s, `{"a": ["x", 1]}`)
	}
	f.Fuzz(func(t *testing.T, text, in string) {
		p, err := value.Decode([]byte(text), value.Limits{})
		if err != nil {
			return
		}
		c, err := condition.Parse(p)
		if err != nil {
			if e, ok := errors.AsType[*condition.Error](err); !ok || e.Err == nil {
				t.Fatalf("%s: got %#v", text, err)
			}
			return
		}
		var v any = in
		if json.Valid([]byte(in)) {
			if v, err = value.Decode([]byte(in), value.Limits{}); err != nil {
				return
			}
		}
		cause := &condition.Failure{Message: in, Fields: dict{"x": v}}
		for _, s := range []condition.Subject{{}, condition.Value(v), condition.Failed(&condition.Failure{Message: text, Cause: cause})} {
			ok, err := c.Eval(expr.NewEnv(scope{"i": int64(7), "l": list{int64(1)}}, nil), s)
			if _, named := errors.AsType[*condition.Error](err); err != nil && (!named || ok) {
				t.Fatalf("%s: got %v, %#v", text, ok, err)
			}
		}
	})
}

func BenchmarkEval(b *testing.B) {
	c, err := condition.Parse(dict{"target": "${i}", "any": list{dict{"less-than": 3}, dict{"in-range": list{5, 9}}}})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	names := scope{"i": int64(7)}
	for b.Loop() {
		if ok, err := c.Eval(expr.NewEnv(names, nil), condition.Subject{}); err != nil || !ok {
			b.Fatal(ok, err)
		}
	}
}
