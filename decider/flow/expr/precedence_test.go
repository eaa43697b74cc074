package expr_test

import (
	"errors"
	"math/big"
	"strconv"
	"testing"

	"github.com/droverhq/drover/decider/flow/expr"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// formula is a tree that knows its own structure, so that it can be written with as few parentheses as the precedence allows, and
// computed without any parsing.
type formula struct {
	op   string // "" for a literal
	text string
	args []*formula
}

var levels = map[string]int{"?": 0, "??": 1, "||": 2, "&&": 3, "==": 4, "!=": 4, "<": 5, "<=": 5, ">": 5, ">=": 5, "+": 6, "-": 6, "*": 7, "/": 7, "%": 7, "!": 8}

func (f *formula) level() int {
	if f.op == "" {
		return 9
	}
	return levels[f.op]
}

// sparse writes only the parentheses that are needed.
func (f *formula) sparse() string {
	wrap := func(a *formula, least int) string {
		if a.level() < least {
			return "(" + a.sparse() + ")"
		}
		return a.sparse()
	}
	l := f.level()
	switch f.op {
	case "":
		return f.text
	case "!":
		return "! " + wrap(f.args[0], l)
	case "?":
		return wrap(f.args[0], 1) + " ? " + f.args[1].sparse() + " : " + f.args[2].sparse()
	case "??":
		return wrap(f.args[0], l+1) + " ?? " + wrap(f.args[1], l)
	case "==", "!=", "<", "<=", ">", ">=":
		return wrap(f.args[0], l+1) + " " + f.op + " " + wrap(f.args[1], l+1)
	}
	return wrap(f.args[0], l) + " " + f.op + " " + wrap(f.args[1], l+1)
}

// full writes parentheses around everything.
func (f *formula) full() string {
	switch f.op {
	case "":
		return "(" + f.text + ")"
	case "!":
		return "(!" + f.args[0].full() + ")"
	case "?":
		return "(" + f.args[0].full() + " ? " + f.args[1].full() + " : " + f.args[2].full() + ")"
	}
	return "(" + f.args[0].full() + " " + f.op + " " + f.args[1].full() + ")"
}

var errDumb = errors.New("no value")

// dumb computes the tree, with integers of any size that are cut at the end.
func (f *formula) dumb() (any, error) {
	switch f.op {
	case "":
		switch f.text {
		case "true", "false":
			return f.text == "true", nil
		case "${absent}":
			return nil, errDumb
		}
		return strconv.ParseInt(f.text, 10, 64)
	case "??":
		if v, err := f.args[0].dumb(); err == nil {
			return v, nil
		}
		return f.args[1].dumb()
	}
	first, err := f.args[0].dumb()
	if err != nil {
		return nil, err
	}
	if yes, ok := first.(bool); ok {
		switch {
		case f.op == "!":
			return !yes, nil
		case f.op == "?" && yes:
			return f.args[1].dumb()
		case f.op == "?":
			return f.args[2].dumb()
		case f.op == "&&" && !yes, f.op == "||" && yes:
			return yes, nil
		}
	}
	second, err := f.args[1].dumb()
	if err != nil {
		return nil, err
	}
	switch f.op {
	case "&&", "||":
		return second, nil
	case "==":
		return order(first, second) == 0, nil
	case "!=":
		return order(first, second) != 0, nil
	case "<":
		return order(first, second) < 0, nil
	case "<=":
		return order(first, second) <= 0, nil
	case ">":
		return order(first, second) > 0, nil
	case ">=":
		return order(first, second) >= 0, nil
	}
	return dumbArithmetic(f.op, first, second)
}

// order compares exact fractions.
func order(a, b any) int { return fraction(a).Cmp(fraction(b)) }

func fraction(v any) *big.Rat {
	if n, ok := v.(int64); ok {
		return new(big.Rat).SetInt64(n)
	}
	return new(big.Rat).SetFloat64(v.(float64))
}

func dumbFloat(v any) float64 {
	if n, ok := v.(int64); ok {
		return float64(n)
	}
	return v.(float64)
}

func dumbArithmetic(op string, a, b any) (any, error) {
	x, ok1 := a.(int64)
	y, ok2 := b.(int64)
	if !ok1 || !ok2 {
		f, g := dumbFloat(a), dumbFloat(b)
		switch {
		case op == "+":
			return f + g, nil
		case op == "-":
			return f - g, nil
		case op == "*":
			return f * g, nil
		case op == "/" && g != 0:
			return f / g, nil
		}
		return nil, errDumb
	}
	p, q, z := big.NewInt(x), big.NewInt(y), new(big.Int)
	switch {
	case op == "+":
		z.Add(p, q)
	case op == "-":
		z.Sub(p, q)
	case op == "*":
		z.Mul(p, q)
	case y == 0:
		return nil, errDumb
	case op == "%":
		z.Rem(p, q)
	default:
		var rest big.Int
		if z.QuoRem(p, q, &rest); rest.Sign() != 0 {
			return float64(x) / float64(y), nil
		}
	}
	if !z.IsInt64() {
		return nil, errDumb
	}
	return z.Int64(), nil
}

func number(t *rapid.T, depth int) *formula {
	if depth == 0 || rapid.IntRange(0, 4).Draw(t, "leaf") == 0 {
		return &formula{text: rapid.SampledFrom([]string{"0", "1", "2", "3", "7", "-5", "1000", "9223372036854775807", "-9223372036854775808", "${absent}"}).Draw(t, "number")}
	}
	switch op := rapid.SampledFrom([]string{"+", "-", "*", "/", "%", "+", "-", "??", "?"}).Draw(t, "op"); op {
	case "?":
		return &formula{op: op, args: []*formula{truth(t, depth-1), number(t, depth-1), number(t, depth-1)}}
	default:
		return &formula{op: op, args: []*formula{number(t, depth-1), number(t, depth-1)}}
	}
}

func truth(t *rapid.T, depth int) *formula {
	if depth == 0 {
		return &formula{text: rapid.SampledFrom([]string{"true", "false", "${absent}"}).Draw(t, "truth")}
	}
	switch op := rapid.SampledFrom([]string{"&&", "||", "!", "==", "!=", "<", "<=", ">", ">=", "??", "?"}).Draw(t, "op"); op {
	case "!":
		return &formula{op: op, args: []*formula{truth(t, depth-1)}}
	case "&&", "||", "??":
		return &formula{op: op, args: []*formula{truth(t, depth-1), truth(t, depth-1)}}
	case "?":
		return &formula{op: op, args: []*formula{truth(t, depth-1), truth(t, depth-1), truth(t, depth-1)}}
	default:
		return &formula{op: op, args: []*formula{number(t, depth-1), number(t, depth-1)}}
	}
}

// The precedence parser gives what a dumb computation of the tree gives, with as few and with as many parentheses as possible.
func TestPrecedenceAgainstParentheses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := truth(t, rapid.IntRange(1, 4).Draw(t, "depth"))
		if rapid.Bool().Draw(t, "number") {
			f = number(t, rapid.IntRange(1, 4).Draw(t, "depth"))
		}
		want, wantErr := f.dumb()
		for _, text := range []string{f.sparse(), f.full()} {
			x, err := expr.ParseLet(text)
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			got, err := x.Eval(env())
			if (err != nil) != (wantErr != nil) {
				t.Fatalf("%s: got %v, %v, want %v, %v", text, got, err, want, wantErr)
			}
			if diff := cmp.Diff(want, got); err == nil && diff != "" {
				t.Fatalf("%s: -want +got\n%s", text, diff)
			}
		}
	})
}
