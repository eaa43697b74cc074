package expr_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/decider/flow/expr"
	"github.com/droverhq/drover/decider/flow/syntax"
	"github.com/google/go-cmp/cmp"
)

func TestTransforms(t *testing.T) {
	for _, tc := range []struct {
		in    any
		chain string
		want  any
	}{
		{"  a b \n", "trim", "a b"},
		{list{nil, "", nil, int64(0)}, "trim", list{"", int64(0)}},
		{dict{"a": nil, "b": int64(1)}, "trim", dict{"b": int64(1)}},
		{int64(5), "trim", problem(`trim: the integer "5" is not a string, list or map`)},
		{nil, "trim", problem("null is not")},

		{"a.b.c", "replace . -", "a-b.c"},
		{"a.b.c", "replace all . -", "a-b-c"},
		{"a.b.c", "replace literal . ''", "ab.c"},
		{"a.b.c", "replace x y", "a.b.c"},
		{"a b c", `replace all " " "${i}"`, "a${i}b${i}c"},
		{"a b c", `replace " " ${i}`, "a7b c"},
		{"a7b", `replace ${i} -`, "a-b"},
		{"a1b22c", `replace regex \d+ #`, "a#b22c"},
		{"a1b22c", `replace all regex "\d+" #`, "a#b#c"},
		{"John Smith", `replace regex "(\w+) (\w+)" "$2 $1x"`, "Smith Johnx"},
		{"cost", `replace regex (c)ost "\$5 $0 $1"`, "$5 cost c"},
		{"ab", "replace regex (x)?a $1-", "-b"},
		{"abc", "replace all regex '' -", "-a-b-c-"},
		{"a", "replace regex a $1", problem("has no group 1")},
		{"axxbxxc", "replace glob a*b -", "-xxc"},
		{"a1b2b3", "replace glob a*b -", "-3"},       // greedy
		{"a1b2a3b", "replace all glob a*b -", "-2-"}, // as short as possible
		{"a1b2b", "replace glob a?b -", "-2b"},
		{"cat.gif", "replace glob {gif,png} jpg", "cat.jpg"},
		{"a$1", "replace glob '$1' '$1$1'", "a$1$1"},
		{"a[b]", `replace glob [b] \*`, `a\*`},
		{"a*b", `replace glob '\*' x`, "axb"},
		{int64(5), "replace 5 6", problem("is not a string")},
		{"a", `replace "" x`, problem("the pattern is empty")},
		{"a", "replace ${l} x", problem("a list is no text")},
		{"a", "replace regex ${tpl}( x", problem("no regular expression")},

		{list{"a", int64(1), true}, "join", "a1true"},
		{list{"a", "b"}, `join ", "`, "a, b"},
		{list{"a", "b"}, "join ${i}", "a7b"},
		{list{}, "join ,", ""},
		{list{"a", list{}}, "join ,", problem("element 1: a list is no text")},
		{"a", "join ,", problem("is not a list")},

		{"a,b,,c", "split ,", list{"a", "b", "", "c"}},
		{"a,b,c", "split limit 2 ,", list{"a", "b"}}, // the rest is dropped
		{"a,b,c", "split keep_delimiters ,", list{"a", ",", "b", ",", "c"}},
		{"a,b,c", "split limit 3 keep_delimiters ,", list{"a", ",", "b"}},
		{"a1b22c", "split regex [0-9]+", list{"a", "b", "c"}},
		{"a1b22c", "split keep_delimiters regex [0-9]+", list{"a", "1", "b", "22", "c"}},
		{"a.b", "split literal .", list{"a", "b"}},
		{"a b", `split " "`, list{"a", "b"}},
		{"äbc", `split ""`, list{"ä", "b", "c"}},
		{"abc", `split regex ""`, list{"a", "b", "c"}},
		{"", "split ,", list{""}},
		{",", "split ,", list{"", ""}},
		{"a7b", "split ${i}", list{"a", "b"}},
		{list{}, "split ,", problem("is not a string")},

		{"hello", "slice 1", "ello"},
		{"hello", "slice 1 3", "el"},
		{"hello", "slice -3", "llo"},
		{"hello", "slice 0 -1", "hell"},
		{"häh", "slice 1 2", "ä"},
		{"hello", "slice 5", ""},
		{"hello", "slice 6", problem("the index 6 is outside of a length of 5")},
		{"hello", "slice -6", problem("outside")},
		{"hello", "slice 3 1", problem("the end 1 is before the beginning 3")},
		{list{int64(1), int64(2), int64(3)}, "slice 1", list{int64(2), int64(3)}},
		{list{int64(1), int64(2), int64(3)}, "slice -2 -1", list{int64(2)}},
		{dict{}, "slice 1", problem("is not a string or list")},
		{"hello", "slice x", problem("no integer")},
		{"hello", "slice 99999999999999999999", problem("no integer")},
		{"hello", "slice -9223372036854775808", problem("outside")},
		{"hello world", "slice ${i}", "orld"},

		{dict{"a": int64(1), "b": int64(2)}, "remove a", dict{"b": int64(2)}},
		{dict{"a": int64(1)}, "remove z", dict{"a": int64(1)}},
		{dict{"1": int64(1)}, "remove 1", dict{}},
		{list{"a", "b", "c"}, "remove 1", list{"a", "c"}},
		{list{"a", "b", "c"}, "remove -1", list{"a", "b"}},
		{list{"a"}, "remove 1", problem("outside")},
		{list{"a"}, "remove x", problem("no integer")},
		{"a", "remove 0", problem("is not a list or map")},

		{"b", "prepend a", "ab"},
		{"b", "append c", "bc"},
		{int64(5), "append 0", "50"},
		{"b", "append ${i}", "b7"},
		{"b", "append ${l}", problem("a list is no text")},
		{list{"b"}, "prepend a", list{"a", "b"}},
		{list{"b"}, "append 5", list{"b", int64(5)}},
		{list{"b"}, `append "5"`, list{"b", "5"}},
		{list{"b"}, "append ${nums}", list{"b", list{int64(3), int64(1), 2.5}}},
		{dict{}, "append x", problem("is not a list or a string")},

		{"5", "type integer", int64(5)},
		{"1.5", "type integer", problem("is no integer")},
		{"1h", "type duration", time.Hour},
		{"{a: 1}", "type map", dict{"a": int64(1)}},

		{`{"a": [1, 2.0]}`, "json", dict{"a": list{int64(1), 2.0}}},
		{`{"a": [1, 2.0]}`, "json parse", dict{"a": list{int64(1), 2.0}}},
		{`"x"`, "json", "x"},
		{dict{"a": int64(1)}, "json", dict{"a": int64(1)}},
		{int64(1), "json", int64(1)},
		{time.Hour, "json parse", "1h"}, // durations travel as text
		{"x", "json string", "x"},
		{dict{"a": time.Hour}, "json string", `{"a":"1h"}`},
		{"x", "json encode", `"x"`},
		{list{"x"}, "json encode", `["x"]`},
		{"x", "json", problem("decode JSON")},

		{"a: 1\nb: [x]", "yaml", dict{"a": int64(1), "b": list{"x"}}},
		{"noise: {\n---\na: 1", "yaml", dict{"a": int64(1)}},
		{"x\n--- \r\ny\n---\nz", "yaml string", "z"},
		{"x\n---", "yaml string", ""},
		{"x --- y", "yaml string", "x --- y"},
		{dict{"a": int64(1)}, "yaml string", "a: 1\n"},
		{dict{"a": int64(1)}, "yaml", dict{"a": int64(1)}},
		{"x\n---\ny", "yaml encode | yaml parse | size", int64(7)}, // encode keeps all of it in one text
		{"5", "yaml encode", "\"5\"\n"},
		{"5", "yaml parse", int64(5)},
		{"a: b: c", "yaml", problem("read YAML")},

		{`say "$HOME" \ ` + "`x`", "bash", `"say \"\$HOME\" \\ ` + "\\`x\\`" + `"`},
		{dict{"a": "b"}, "bash", `"{\"a\":\"b\"}"`},
		{"x", "bash string", `"x"`},
		{"x", "bash encode", `"\"x\""`},
		{"a\x00b", "bash", problem("NUL")},

		{list{int64(3), int64(1)}, "first", int64(3)},
		{list{int64(3), int64(1)}, "last", int64(1)},
		{list{int64(3), int64(1), 2.5}, "min", int64(1)},
		{list{int64(3), int64(1), 2.5}, "max", int64(3)},
		{list{"v1.9", "v1.10"}, "max", "v1.10"},
		{list{int64(1), "x"}, "max", problem("have no order")},
		{list{int64(3), int64(1), 2.5}, "sum", 6.5},
		{list{int64(1), "2"}, "sum", int64(3)},
		{list{time.Hour, "30m"}, "sum", 90 * time.Minute},
		{list{"5"}, "sum", int64(5)},
		{list{}, "sum", int64(0)},
		{list{int64(1<<63 - 1), int64(1)}, "sum", problem("64 bits")},
		{list{"x"}, "sum", problem("no number")},
		{list{int64(1), "x"}, "sum", problem("no number")},
		{list{int64(1), int64(2)}, "average", 1.5},
		{list{int64(1), int64(3)}, "average", int64(2)},
		{list{time.Hour, time.Minute * 30}, "average", 45 * time.Minute},
		{list{"x"}, "average", problem("no number")},
		{list{}, "first", problem("the list is empty")},
		{list{}, "average", problem("the list is empty")},
		{"x", "first", problem("is not a list")},
		{list{int64(1), int64(2)}, "size", int64(2)},
		{dict{"a": nil}, "size", int64(1)},
		{"häh", "size", int64(3)},
		{int64(5), "size", problem("is not a string, list or map")},

		{int64(5), "to_string", "5"},
		{2.0, "to_string", "2.0"},
		{dict{"a": list{}}, "to_string", `{"a":[]}`},
		{nil, "to_string", problem("null is no text")},
		{"aé", "to_upper_case", "AÉ"},
		{"AÄ", "to_lower_case", "aä"},
		{int64(5), "to_upper_case", problem("is not a string")},

		{dict{"a": list{"x", dict{"b c": "y"}}}, `get "a[1]['b c']"`, "y"},
		{dict{"a": int64(1)}, "get", dict{"a": int64(1)}},
		{list{"x", "y"}, "get [1]", "y"},
		{list{"x", "y"}, "get 1", "y"},
		{list{"x", "y"}, "get -1", problem("nothing can be read")},
		{dict{"text": "z"}, "get ${s}", "z"},
		{dict{}, "get a", problem("there is no such value")},
		{"x", "get a", problem("a string has no keys")},
		{dict{}, "get ${spaces}", problem("path")},

		{"${i} and ${s}", "resolve_expression", "7 and text"},
		{list{"${i}"}, "resolve_expression", list{int64(7)}},
		{"${", "resolve_expression", problem("not closed")},
		{"${absent}", "resolve_expression", problem("no such value")},

		{" a , b ", "split , | first | trim | to_upper_case", "A"},
		{" a | b ", "split '|' | size", int64(2)},
		{"x", "wait", "x"},
		{nil, "wait", problem("still null")},
	} {
		c, err := expr.ParseChain(tc.chain)
		if err != nil {
			t.Errorf("%s: %v", tc.chain, err)
			continue
		}
		got, err := c.Apply(env(), tc.in)
		check(t, fmt.Sprintf("%v | %s", tc.in, tc.chain), got.Value, err, tc.want)
	}
}

func TestTransformsRefuse(t *testing.T) {
	for _, tc := range []struct {
		text   string
		offset int
		want   string
	}{
		{"", 0, "a transform is missing"},
		{"trim |", 6, "a transform is missing"},
		{"| trim", 0, "a transform is missing"},
		{"trim | | trim", 7, "a transform is missing"},
		{"trimm", 0, "did you mean trim?"},
		{"xyz", 0, "transforms are trim replace"},
		{"trim|json", 0, "there is no transform"},
		{"trim x", 5, `trim does not take "x"`},
		{"trim | size 3", 12, `size does not take "3"`},
		{"replace", 7, "replace lacks a pattern"},
		{"replace a", 9, "replace lacks the text"},
		{"replace a b c", 12, "does not take"},
		{"replace regex ( x", 14, "no regular expression"},
		{"replace regex (?=a) x", 14, "no regular expression"},
		{"replace glob {a x", 13, "not closed in the glob"},
		{"replace regex a{999}{999} x", 14, "no regular expression"},
		{"replace regex " + strings.Repeat("a{1000}", 100) + " x", 14, "too large"},
		{"replace regex " + strings.Repeat("a", 1025) + " x", 14, "more than 1024 bytes"},
		{"replace null x", 8, "null is no text"},
		{"split", 5, "split lacks a separator"},
		{"split limit", 11, "split lacks the limit"},
		{"split limit 0 ,", 12, "not a number above 0"},
		{"split limit x ,", 12, "not a number above 0"},
		{"split regex [ ", 12, "no regular expression"},
		{"join a b", 7, "does not take"},
		{"slice", 5, "slice lacks"},
		{"slice 1 2 3", 10, "does not take"},
		{"remove", 6, "remove lacks"},
		{"append", 6, "append lacks"},
		{"merge x", 6, "merge does not take"},
		{"merge list map", 14, "both a list and a map"},
		{"merge deep list", 15, "deep is for maps"},
		{"type", 4, "type lacks"},
		{"type integr", 5, "did you mean integer?"},
		{"json pars", 5, "does not take"},
		{"bash parse", 5, "does not take"},
		{"get a..b", 6, "cannot begin with"},
		{"get null", 4, "null is no text"},
		{"set", 3, "set lacks a path"},
		{"set a b", 6, "does not take"},
		{"set [0]", 4, "cannot begin with"},
		{"return | trim", 0, "nothing may follow return"},
		{"trim | wait", 7, "wait comes too late"},
		{"append ${a b}", 10, "operators work in let"},
		{"append 'x", 7, "not closed"},
		{"replace a \xd3", 0, "not valid UTF-8"},
		{strings.Repeat("trim | ", 100) + "trim", 700, "too many transforms"},
		{strings.Repeat("x", 1<<16+1), 0, "too long"},
	} {
		got, err := expr.ParseChain(tc.text)
		e, ok := errors.AsType[*syntax.Error](err)
		if !ok || got != nil || e.Offset != tc.offset || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%.40q: got %v, %v, want offset %d and %q", tc.text, got, err, tc.offset, tc.want)
		}
	}
	if _, err := expr.ParseChains(nil); err == nil {
		t.Error("got no error for an empty list")
	}
	if _, err := expr.ParseChains([]string{"trim", "nope"}); err == nil || !strings.Contains(err.Error(), "transform 1") {
		t.Errorf("got %v, want one about transform 1", err)
	}
}

func TestSetAndReturn(t *testing.T) {
	c, err := expr.ParseChains([]string{"split , | set parts", "first | set a['b'] | return"})
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Apply(env(), "x,y")
	if err != nil {
		t.Fatal(err)
	}
	var sets []string
	for _, s := range got.Sets {
		sets = append(sets, fmt.Sprintf("%s = %v", s.Path, s.Value))
	}
	if diff := cmp.Diff([]string{"parts = [x y]", "a.b = x"}, sets); diff != "" || got.Value != "x" || !got.Return || !c.Returns() {
		t.Errorf("got %+v, -want +got\n%s", got, diff)
	}
	if c, err := expr.ParseChain("trim"); err != nil || c.Returns() || c.Waits() {
		t.Errorf("got %v, returns %v, waits %v", err, c.Returns(), c.Waits())
	}
}

func TestMerge(t *testing.T) {
	e := func() *expr.Env {
		return expr.NewEnv(names{
			"l1": list{int64(1), int64(2)}, "l2": list{int64(2), "2"}, "nothing": nil, "i": int64(7),
			"m1": dict{"a": int64(1), "n": dict{"x": int64(1), "l": list{int64(1)}}},
			"m2": dict{"b": int64(2), "n": dict{"y": int64(2), "l": list{int64(2)}}},
		}, nil)
	}
	for _, tc := range []struct {
		in    any
		chain string
		want  any
	}{
		{"${l1} ${l2}", "merge", list{int64(1), int64(2), int64(2), "2"}},
		{"${l1} ${l2}", "merge list", list{int64(1), int64(2), int64(2), "2"}},
		{"${l1} ${l2}", "merge set", list{int64(1), int64(2), "2"}},
		{"${m1} ${m2}", "merge", dict{"a": int64(1), "b": int64(2), "n": dict{"y": int64(2), "l": list{int64(2)}}}},
		{"${m1} ${m2}", "merge map deep", dict{"a": int64(1), "b": int64(2), "n": dict{"x": int64(1), "y": int64(2), "l": list{int64(1), int64(2)}}}},
		{"${m2} ${m2} ${m1}", "merge deep | get n.l | size", int64(3)},
		{"${l1} [5]", "merge", list{int64(1), int64(2), int64(5)}},
		{`'{"c": 3}' ${m1}`, "merge | get c", int64(3)},
		{"${l1} ${m1}", "merge", problem("operand 1 is a map among lists")},
		{"${m1} ${l1}", "merge", problem("operand 1 is a list among maps")},
		{"${l1}", "merge map", problem("operand 0 is a list among maps")},
		{"${m1} ${l1}", "merge deep", problem("operand 1 is a list among maps")},
		{"${l1}", "merge deep", problem("deep is for maps")},
		{"${l1} ${i}", "merge", problem(`operand 1: the integer "7"`)},
		{"${l1} x", "merge", problem("say lax")},
		{"${l1} ${i} x null", "merge lax", list{int64(1), int64(2)}},
		{"${l1} ${nothing}", "merge", problem("the value is null")},
		{"${l1} ${nothing} ${absent} ${later}", "merge lax", list{int64(1), int64(2)}},
		{"${l1} ${later}", "merge", problem("not yet available")},
		{"${absent}", "merge lax", problem("nothing to merge")},
		{"${absent}", "merge lax list", list{}},
		{"${absent}", "merge lax map", dict{}},
		{"${absent}", "merge lax set", list{}},
		{list{"${l1}", "${l2}"}, "merge list | size", int64(4)},
		{list{list{int64(1)}, nil}, "merge", problem("null is no list")},
		{int64(5), "merge", problem("a list of what is to be merged")},
	} {
		c, err := expr.ParseChain(tc.chain)
		if err != nil {
			t.Fatal(err)
		}
		p, err := c.From(tc.in, expr.Options{Mode: expr.Full})
		if err != nil {
			t.Fatal(err)
		}
		got, err := p.Eval(e())
		check(t, fmt.Sprintf("%v | %s", tc.in, tc.chain), got.Value, err, tc.want)
	}
}

// A chain that waits says so, and its error tells waiting from failing.
func TestWait(t *testing.T) {
	for _, tc := range []struct {
		in, chain string
		waits     bool // the chain is one that waits
		waiting   bool // and it does
		want      any
	}{
		{"${later}", "wait | trim", true, true, nil},
		{"${nothing}", "wait", true, true, nil},
		{"${absent}", "wait", true, false, nil},
		{"${s}", "wait | to_upper_case", true, false, "TEXT"},
		{"${later}", "trim", false, true, nil},
		{"${l} ${later}", "merge wait", true, true, nil},
		{"${l} ${later}", "merge wait lax", true, true, nil},
		{"${l} ${nothing}", "merge wait lax | size", true, false, int64(3)},
		{"${l} ${later}", "wait | merge lax", true, true, nil},
		{"${l} ${l}", "wait | merge lax | size", true, false, int64(6)},
	} {
		c, err := expr.ParseChain(tc.chain)
		if err != nil {
			t.Fatal(err)
		}
		p, err := c.From(tc.in, expr.Options{Mode: expr.Full})
		if err != nil {
			t.Fatal(err)
		}
		got, err := p.Eval(env())
		waiting := errors.Is(err, expr.ErrUnavailable) || errors.Is(err, expr.ErrNull)
		if c.Waits() != tc.waits || waiting != tc.waiting || (err == nil) != (tc.want != nil) || tc.want != got.Value {
			t.Errorf("%s | %s: got %v, %v, waits %v, waiting %v, want %+v", tc.in, tc.chain, got.Value, err, c.Waits(), waiting, tc)
		}
	}
	c, err := expr.ParseChain("merge")
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []any{"'x", "${", struct{}{}} {
		if _, err := c.From(bad, expr.Options{}); err == nil {
			t.Errorf("%v: got no error", bad)
		}
	}
}
