package expr_test

import (
	"errors"
	"testing"

	"github.com/droverhq/drover/decider/flow/expr"
	"github.com/droverhq/drover/decider/flow/syntax"
	"github.com/droverhq/drover/decider/flow/value"
)

// judged fails if an error of a parser does not point into the text, or the result of an evaluation is no value within the limits.
func judged(t *testing.T, text string, err error) bool {
	if e, ok := errors.AsType[*syntax.Error](err); err != nil && (!ok || e.Offset > len(text) || e.Problem == "") {
		t.Fatalf("%q: got %#v", text, err)
	}
	return err == nil
}

func valid(t *testing.T, text string, v any, err error) {
	if e, ok := errors.AsType[*expr.Error](err); err != nil && ok && e.Offset > len(text) {
		t.Fatalf("%q: got %#v", text, err)
	}
	if err != nil {
		return
	}
	if err := value.Check(v, value.Limits{}); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	if _, err := value.Pack(v); err != nil {
		t.Fatalf("%q: %#v: %v", text, v, err)
	}
}

func FuzzTemplate(f *testing.F) {
	for _, s := range []string{"${i} x ${s}", "${m.a['b c']}", "${", "${a b}", "${l[2].deep}", "$${i}}", "${a['}']}", "${later.x}", "${l[]}"} {
		f.Add(s)
	}
	f.Add("a\xff")
	f.Fuzz(func(t *testing.T, text string) {
		for _, onError := range []expr.OnError{expr.Fail, expr.Ignore, expr.Blank} {
			x, err := expr.ParseValue(text, expr.Options{Mode: expr.Full, OnError: onError})
			if !judged(t, text, err) {
				continue
			}
			v, err := x.Eval(env())
			valid(t, text, v, err)
			if onError != expr.Fail && err != nil && !errors.Is(err, expr.ErrLimit) {
				t.Fatalf("%q: %v", text, err)
			}
		}
	})
}

func FuzzLet(f *testing.F) {
	for _, s := range []string{"${x} * 3 + 1", "(1 + 2) * -3 / 0", "a ? b : c ? d : e", "${absent} ?? 'x y'", "!!${b} && !(${no} || false)", "1m + 30s", "9223372036854775807 + 1", "2026-03-29T12:00:00Z - 1h", "f(x) (y", "1 < 2 == true", "\"a", "5 % -1"} {
		f.Add(s)
	}
	f.Add("a\xff")
	f.Fuzz(func(t *testing.T, text string) {
		x, err := expr.ParseLet(text)
		if judged(t, text, err) {
			v, err := x.Eval(env())
			valid(t, text, v, err)
		}
	})
}

func FuzzChain(f *testing.F) {
	for _, s := range []string{"trim", "replace all regex (a|b)* $1", "replace glob {a,b*}? x", "split limit 2 keep_delimiters regex ''", "merge deep lax", "slice -1 0", "get a[0]", "set x | return", "json | yaml encode | bash", "type duration", "wait | resolve_expression", "append ${l} | prepend ${i}"} {
		f.Add(s, `{"a": [1, "b"]}`)
		f.Add(s, " a,b ${i} ")
		f.Add(s, "[3, 1, 2.5]")
	}
	f.Fuzz(func(t *testing.T, text, in string) {
		c, err := expr.ParseChain(text)
		if !judged(t, text, err) {
			return
		}
		inputs := []any{in}
		if v, err := value.FromYAML(in, value.Limits{}); err == nil {
			inputs = append(inputs, v)
		}
		for _, in := range inputs {
			if in, err = value.Of(in, value.Limits{}); err != nil {
				return
			}
			got, err := c.Apply(env(), in)
			valid(t, text, got.Value, err)
			if p, err := c.From(in, expr.Options{}); err == nil {
				got, err := p.Eval(env())
				valid(t, "", got.Value, ignoreOffset(err))
			}
		}
	})
}

// ignoreOffset drops errors: they point into the value, not into the chain.
func ignoreOffset(err error) error {
	if err != nil {
		return errors.New("failed")
	}
	return nil
}
