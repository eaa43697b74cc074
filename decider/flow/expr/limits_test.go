package expr_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/droverhq/drover/decider/flow/expr"
	"github.com/droverhq/drover/decider/flow/value"
	"github.com/google/go-cmp/cmp"
)

// Whatever is written, an evaluation ends in time and space, and nothing catches that it did.
func TestLimits(t *testing.T) {
	large := strings.Repeat("x", 1<<19)
	wide := dict{}
	for i := range 10_000 {
		wide[fmt.Sprint(i)] = list{}
	}
	vars := expr.Vars{"large": large, "l": list{large}, "m": dict{"a": large}, "i": int64(1), "wide": wide}
	for _, tc := range []struct {
		in     any
		chain  string
		limits expr.Limits
	}{
		{in: "${large}${large}${large}"},
		{in: "${large} ${large} ${large} ?? small"},
		{in: "(${large} ${large} ${large}) == a ?? true"},
		{in: list{"${large}", "${large}", "${large}"}},
		{in: "${i} + ${i} + ${i}", limits: expr.Limits{Steps: 4}},
		{in: "${i} + ${i} + ${i} ?? 5", limits: expr.Limits{Steps: 5}},
		{in: "true && true && true && true", limits: expr.Limits{Steps: 4}},
		{in: "${large} == ${large}" + strings.Repeat(" && ${large} == ${large}", 200)},
		{in: "${large} < ${large}" + strings.Repeat(" || ${large} < ${large}", 200)},
		{in: strings.Repeat("${wide} ", 5000), chain: "merge"},
		{in: strings.Repeat("${wide} ", 5000), chain: "merge deep"},
		{in: "${large}", chain: "append ${large} | append ${large}"},
		{in: "${large}", chain: "replace all x xxxx"},
		{in: "${large}", chain: "replace all regex x xxxx"},
		{in: "${large}", chain: "replace all regex (x) $1$1$1$1"},
		{in: "${large}", chain: "replace all glob ? xxxx"},
		{in: "${large}", chain: "split x"},
		{in: "${large}", chain: "split ''"},
		{in: "${large}", chain: "split regex x"},
		{in: "${l}", chain: "append ${large} | append ${large} | join ${large}"},
		{in: "${large}", chain: "replace regex (x+x+)+y z", limits: expr.Limits{Steps: 1000}},
		{in: "${l} ${l} ${l}", chain: "merge"},
		{in: "${large}", chain: "json encode | json encode | append ${large}"},
	} {
		name := fmt.Sprintf("%v | %s", tc.in, tc.chain)
		env := expr.NewEnv(vars, &tc.limits)
		var err error
		if tc.chain == "" {
			var x *expr.Expr
			if x, err = expr.ParseValue(tc.in, expr.Options{}); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			_, err = x.Eval(env)
		} else {
			c, parseErr := expr.ParseChain(tc.chain)
			if parseErr != nil {
				t.Fatalf("%s: %v", name, parseErr)
			}
			p, parseErr := c.From(tc.in, expr.Options{Mode: expr.Full})
			if parseErr != nil {
				t.Fatalf("%s: %v", name, parseErr)
			}
			_, err = p.Eval(env)
		}
		if !errors.Is(err, expr.ErrLimit) || expr.Absent(err) {
			t.Errorf("%s: got %v, want ErrLimit", name, err)
		}
		if want := max(tc.limits.Steps, 1); tc.limits.Steps > 0 && env.Spent() > want {
			t.Errorf("%s: %d steps, want at most %d", name, env.Spent(), want)
		}
	}
}

func inputs(t *testing.T, texts map[string]string, done map[string]any) *expr.Inputs {
	t.Helper()
	source := map[string]*expr.Expr{}
	for name, text := range texts {
		x, err := expr.ParseTemplate(text)
		if err != nil {
			t.Fatal(err)
		}
		source[name] = x
	}
	return expr.NewInputs(source, done)
}

// scope looks into the inputs first and then further out.
type scope struct {
	inputs *expr.Inputs
	outer  expr.Vars
	asked  int
}

func (s *scope) Resolve(env *expr.Env, path value.Path) (any, int, error) {
	if v, found, err := s.inputs.Lookup(env, path[0].Key); found {
		return v, 1, err
	}
	s.asked++
	return s.outer.Resolve(env, path)
}

func TestInputs(t *testing.T) {
	in := inputs(t, map[string]string{"a": "${b}-${x}", "b": "${c}", "c": "${y}", "x": "inner ${x}", "u": "unused ${y}"}, nil)
	s := &scope{inputs: in, outer: expr.Vars{"x": "outer", "y": int64(5), "z": "out"}}
	env := expr.NewEnv(s, nil)
	if got, found, err := in.Lookup(env, "a"); err != nil || !found || got != "5-inner outer" {
		t.Errorf("got %v, %v, %v", got, found, err)
	}
	asked := s.asked
	if got, _, err := in.Lookup(env, "a"); err != nil || got != "5-inner outer" || s.asked != asked {
		t.Errorf("got %v, %v, asked again %d times, want the remembered value", got, err, s.asked-asked)
	}
	if _, found, err := in.Lookup(env, "z"); found || err != nil {
		t.Errorf("got %v, %v for a name that is no input", found, err)
	}
	want := map[string]any{"a": "5-inner outer", "b": int64(5), "c": int64(5), "x": "inner outer"}
	if diff := cmp.Diff(want, in.Done()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	want["u"] = "unused 5"
	got, err := in.All(env)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v, -want +got\n%s", err, diff)
	}
}

// A0-8: what was evaluated before stays as it was, whatever the variables are now.
func TestInputsStay(t *testing.T) {
	in := inputs(t, map[string]string{"a": "${y}", "b": "${a} ${y}"}, map[string]any{"a": "before"})
	s := &scope{inputs: in, outer: expr.Vars{"y": "now"}}
	if got, err := in.All(expr.NewEnv(s, nil)); err != nil || got["a"] != "before" || got["b"] != "before now" {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestInputsRefuse(t *testing.T) {
	for _, tc := range []struct {
		texts map[string]string
		name  string
		want  error
	}{
		{map[string]string{"a": "${b}", "b": "x${a}"}, "a", expr.ErrCycle},
		{map[string]string{"a": "${b}", "b": "${c}", "c": "${a}"}, "b", expr.ErrCycle},
		{map[string]string{"a": "${a}"}, "a", expr.ErrMissing}, // no outer one of this name
		{map[string]string{"a": "${zz}"}, "a", expr.ErrMissing},
	} {
		in := inputs(t, tc.texts, nil)
		s := &scope{inputs: in, outer: expr.Vars{}}
		_, found, err := in.Lookup(expr.NewEnv(s, nil), tc.name)
		if !found || !errors.Is(err, tc.want) || !strings.Contains(err.Error(), "input "+tc.name) {
			t.Errorf("%v: got %v, %v, want %v", tc.texts, found, err, tc.want)
		}
		if _, _, err := in.Resolve(expr.NewEnv(s, nil), value.Path{{Kind: value.Key, Key: "none"}}); !errors.Is(err, expr.ErrMissing) {
			t.Errorf("got %v, want ErrMissing", err)
		}
	}
	deep := map[string]string{"n0": "end"}
	for i := range 200 {
		deep[fmt.Sprintf("n%d", i+1)] = fmt.Sprintf("${n%d}", i)
	}
	in := inputs(t, deep, nil)
	if _, err := expr.Constant(nil).Eval(expr.NewEnv(in, &expr.Limits{Depth: 1})); err != nil {
		t.Errorf("got %v for a constant", err)
	}
	if _, _, err := in.Lookup(expr.NewEnv(in, nil), "n200"); !errors.Is(err, expr.ErrLimit) {
		t.Errorf("got %v, want ErrLimit", err)
	}
	if got, _, err := in.Lookup(expr.NewEnv(in, nil), "n40"); err != nil || got != "end" {
		t.Errorf("got %v, %v: an error must leave the inputs usable", got, err)
	}
}

// resolvers that do not keep the rules must not break anything.
type odd struct {
	v    any
	used int
}

func (o odd) Resolve(*expr.Env, value.Path) (any, int, error) { return o.v, o.used, nil }

func TestOddResolvers(t *testing.T) {
	x, err := expr.ParseTemplate("${a.b}")
	if err != nil {
		t.Fatal(err)
	}
	for used, want := range map[int]any{-1: "in", 0: "in", 1: "in", 2: dict{"b": "in"}, 9: dict{"b": "in"}} {
		got, err := x.Eval(expr.NewEnv(odd{dict{"b": "in"}, used}, nil))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("used %d: %v, -want +got\n%s", used, err, diff)
		}
	}
	if _, err := x.Eval(expr.NewEnv(nil, nil)); !errors.Is(err, expr.ErrMissing) {
		t.Errorf("got %v, want ErrMissing", err)
	}
}
