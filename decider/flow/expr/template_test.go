package expr_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/decider/flow/expr"
	"github.com/droverhq/drover/decider/flow/syntax"
	"github.com/droverhq/drover/decider/flow/value"
	"github.com/google/go-cmp/cmp"
)

type (
	list    = []any
	dict    = map[string]any
	problem string // what an error has to contain
)

var noon = time.Date(2026, 3, 29, 12, 0, 0, 0, time.UTC)

// names is a Resolver for tests: variables, and names under "later" that are not yet available.
type names dict

func (n names) Resolve(_ *expr.Env, path value.Path) (any, int, error) {
	if path[0].Key == "later" {
		return nil, 0, expr.NotYet(path)
	}
	return expr.Vars(n).Resolve(nil, path)
}

func vars() names {
	return names{
		"i": int64(7), "f": 1.5, "b": true, "no": false, "s": "text", "empty": "", "five": "5", "nothing": nil,
		"l": list{int64(1), "two", dict{"deep": "found"}}, "m": dict{"a": dict{"b c": "x"}, "n": nil},
		"d": 90 * time.Second, "t": noon, "json": `{"a": [1, 2.0]}`, "spaces": "  a b  ", "csv": "a,b,,c",
		"nums": list{int64(3), int64(1), 2.5}, "big": int64(1<<63 - 1), "small": int64(-1 << 63), "tpl": "<${i}>",
	}
}

func env() *expr.Env { return expr.NewEnv(vars(), nil) }

// check compares an evaluation with what is wanted: a value, or a problem.
func check(t *testing.T, text string, got any, err error, want any) {
	t.Helper()
	if p, ok := want.(problem); ok {
		if err == nil || !strings.Contains(err.Error(), string(p)) {
			t.Errorf("%s: got %#v, %v, want an error with %q", text, got, err, p)
		}
		return
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%s: %v, -want +got\n%s", text, err, diff)
	}
}

func TestTemplate(t *testing.T) {
	for text, want := range map[string]any{
		"":                         "",
		"no expression":            "no expression",
		"$ { } $x {x}":             "$ { } $x {x}",
		"${i}":                     int64(7),
		"${f}":                     1.5,
		"${b}":                     true,
		"${d}":                     90 * time.Second,
		"${t}":                     noon,
		"${l}":                     list{int64(1), "two", dict{"deep": "found"}},
		"${l[2].deep}":             "found",
		"${m.a['b c']}":            "x",
		`${m["a"]['b c']}`:         "x",
		" ${i}":                    " 7",
		"${i}${i}":                 "77",
		"a ${i} b ${f} ${b} ${d}!": "a 7 b 1.5 true 1m30s!",
		"at ${t}":                  "at 2026-03-29T12:00:00Z",
		"${tpl}":                   "<${i}>", // a single pass
		"x${tpl}":                  "x<${i}>",
		"\"${s}\" + 'x'":           "\"text\" + 'x'", // quotes and operators are nothing special
		"x ${l}":                   problem("a list is no text"),
		"x ${m}":                   problem("a map is no text"),
		"${nothing}":               problem("the value is null"),
		"x ${nothing}":             problem("the value is null"),
		"${m.n}":                   problem("the value is null"),
		"${absent}":                problem("there is no such value"),
		"${m.absent.more}":         problem("there is no such value"),
		"${l[3]}":                  problem("there is no such value"),
		"${s.part}":                problem("a string has no keys"),
		"${later.x}":               problem("not yet available"),
	} {
		x, err := expr.ParseTemplate(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got, err := x.Eval(env())
		check(t, text, got, err, want)
	}
}

func TestTemplateRefuses(t *testing.T) {
	for _, tc := range []struct {
		text   string
		offset int
		want   string
	}{
		{"a ${", 2, "not closed"},
		{"a ${b", 2, "not closed"},
		{"a ${}", 4, "a name is missing"},
		{"${a b}", 3, "operators work in let"},
		{"${a ?? 1}", 3, "operators work in let"},
		{"${ a}", 2, "operators work in let"},
		{"x${a+1}", 4, "names have letters"},
		{"${a?upper_case}", 3, "names have letters"},
		{"${a.${b}}", 0, "inside another"},
		{"${a[]}", 0, "nothing can be read"},
		{"${a[-1]}", 0, "nothing can be read"},
		{"${a[-2]}", 4, "is negative"},
		{"${a[b]}", 4, "no index"},
		{"${" + strings.Repeat("a", 1<<16) + "}", 0, "too long"},
	} {
		got, err := expr.ParseTemplate(tc.text)
		e, ok := errors.AsType[*syntax.Error](err)
		if !ok || e.Offset != tc.offset || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%.40s: got %v, %v, want offset %d and %q", tc.text, got, err, tc.offset, tc.want)
		}
	}
}

// The three kinds of names without a value can be told apart, and errors point into the text.
func TestErrorKinds(t *testing.T) {
	for text, want := range map[string]struct {
		kind   error
		offset int
	}{
		"ab ${absent}":   {expr.ErrMissing, 3},
		"ab ${m.x}":      {expr.ErrMissing, 3},
		"abc ${nothing}": {expr.ErrNull, 4},
		"${later}":       {expr.ErrUnavailable, 0},
		"a ${later.y}":   {expr.ErrUnavailable, 2},
	} {
		x, err := expr.ParseTemplate(text)
		if err != nil {
			t.Fatal(err)
		}
		_, err = x.Eval(env())
		e, ok := errors.AsType[*expr.Error](err)
		if !ok || !errors.Is(err, want.kind) || e.Offset != want.offset || !expr.Absent(err) {
			t.Errorf("%s: got %v, want %v at %d", text, err, want.kind, want.offset)
		}
		if n, ok := errors.AsType[*expr.NameError](err); !ok || len(n.Path) == 0 {
			t.Errorf("%s: got %v, want a NameError with the path", text, err)
		}
	}
}

func TestModesAndErrors(t *testing.T) {
	for _, tc := range []struct {
		in      any
		mode    expr.Mode
		onError expr.OnError
		want    any
	}{
		{"${i} + 1", expr.Words, expr.Fail, int64(8)},
		{"${i} + 1", 0, expr.Fail, int64(8)},
		{"${i} + 1", expr.Full, expr.Fail, "7 + 1"},
		{"${i} + 1", expr.Disabled, expr.Fail, "${i} + 1"},
		{`"${i}" is ${i}`, expr.Words, expr.Fail, "${i} is 7"},
		{`"${i}" is ${i}`, expr.Full, expr.Fail, `"7" is 7`},
		{"x ${absent} y", expr.Full, expr.Fail, problem("no such value")},
		{"x ${absent} y", expr.Full, expr.Ignore, "x ${absent} y"},
		{"x ${absent} y", expr.Full, expr.Blank, "x  y"},
		{"${absent}", expr.Full, expr.Ignore, "${absent}"},
		{"${absent}", expr.Full, expr.Blank, ""},
		{"x ${l} ${later}", expr.Full, expr.Ignore, "x ${l} ${later}"},
		{"x ${l} ${nothing}", expr.Full, expr.Blank, "x  "},
		{"x ${l} y", expr.Words, expr.Ignore, "x ${l} y"},
		{"x ${l} y", expr.Words, expr.Blank, "x  y"},
		{"x ${a b} ${i} ${", expr.Full, expr.Ignore, "x ${a b} 7 ${"},
		{"x ${a b}", expr.Full, expr.Blank, problem("operators work in let")},
		{dict{"k${i}": list{"${i}", "a ${f}", "${i} + 1", nil, 5}}, expr.Words, expr.Fail, dict{"k${i}": list{int64(7), "a 1.5", "7 + 1", nil, int64(5)}}},
		{dict{"k": list{"${i}"}}, expr.Disabled, expr.Fail, dict{"k": list{"${i}"}}},
		{dict{"k": list{"x", "${absent}"}}, expr.Full, expr.Fail, problem(`key "k": element 1: "${absent}"`)},
		{dict{"k": "${"}, expr.Full, expr.Fail, problem(`key "k": expression`)},
		{list{"${"}, expr.Full, expr.Fail, problem("element 0: expression")},
		{5, expr.Words, expr.Fail, int64(5)},
		{nil, expr.Full, expr.Fail, nil},
		{struct{}{}, expr.Full, expr.Fail, problem("no value of a flow")},
	} {
		x, err := expr.ParseValue(tc.in, expr.Options{Mode: tc.mode, OnError: tc.onError})
		var got any
		if err == nil {
			got, err = x.Eval(env())
		}
		check(t, strings.TrimSpace(strings.Join([]string{value.TypeName(tc.in), ""}, " "))+" "+shown(tc.in), got, err, tc.want)
	}
}

func shown(v any) string { s, _ := v.(string); return s }

func TestParseModes(t *testing.T) {
	for text, want := range map[string]expr.Mode{"words": expr.Words, "Full": expr.Full, " disabled ": expr.Disabled, "wrods": 0} {
		got, err := expr.ParseMode(text)
		if got != want || (err == nil) != (want != 0) {
			t.Errorf("%s: got %v, %v, want %v", text, got, err, want)
		}
	}
	for text, want := range map[string]expr.OnError{"fail": expr.Fail, "ignore": expr.Ignore, "BLANK": expr.Blank} {
		if got, err := expr.ParseOnError(text); err != nil || got != want {
			t.Errorf("%s: got %v, %v, want %v", text, got, err, want)
		}
	}
	if _, err := expr.ParseOnError("skip"); err == nil || !strings.Contains(err.Error(), "write fail, ignore, blank") {
		t.Errorf("got %v, want the choices", err)
	}
}

func TestConstants(t *testing.T) {
	for text, want := range map[string]bool{
		"a b":              true,
		"${a.b} x ${c[0]}": false,
		"${a} ?? ( ${b} + 1 ) ? !${c} : x ${d} \"${e}\"": false,
	} {
		x, err := expr.ParseLet(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, constant := x.IsConstant(); constant != want {
			t.Errorf("%s: constant is %v", text, constant)
		}
	}
	if v, ok := expr.Constant(int64(5)).IsConstant(); !ok || v != int64(5) {
		t.Errorf("got %v, %v", v, ok)
	}
	x, err := expr.ParseTemplate("${l}")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := x.Text(env()); err == nil {
		t.Errorf("got %q, want an error: a list is no text", got)
	}
}
