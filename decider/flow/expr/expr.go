package expr

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/droverhq/drover/decider/flow/syntax"
	"github.com/droverhq/drover/decider/flow/value"
)

// Mode says how the text of a value is read.
type Mode int

const (
	// Words is how the rest of a let is read: words, quotes and operators.
	Words Mode = iota + 1
	// Full interpolates the whole text and leaves quotes and operators alone.
	Full
	// Disabled takes the text as it is.
	Disabled
)

// ParseMode reads the value of interpolation_mode: words, full or disabled.
func ParseMode(text string) (Mode, error) {
	return choice("interpolation_mode", text,
		map[string]Mode{"words": Words, "full": Full, "disabled": Disabled})
}

// OnError says what stands for a ${…} that has no value or cannot be a text.
type OnError int

const (
	// Fail makes it an error of the whole expression.
	Fail OnError = iota
	// Ignore leaves it as it is written, and what is no expression too.
	Ignore
	// Blank puts nothing in its place.
	Blank
)

// ParseOnError reads the value of interpolation_errors: fail, ignore or blank.
func ParseOnError(text string) (OnError, error) {
	return choice("interpolation_errors", text,
		map[string]OnError{"fail": Fail, "ignore": Ignore, "blank": Blank})
}

func choice[T any](what, text string, choices map[string]T) (T, error) {
	got, ok := choices[strings.ToLower(strings.TrimSpace(text))]
	if !ok {
		names := make([]string, 0, len(choices))
		for _, name := range []string{"words", "full", "disabled", "fail", "ignore", "blank"} {
			if _, ok := choices[name]; ok {
				names = append(names, name)
			}
		}
		return got, syntax.New(what, text, 0, "there is no such choice",
			"write "+strings.Join(names, ", "))
	}
	return got, nil
}

// Options of parsing.
type Options struct {
	Mode    Mode    // of texts. Defaults to Words
	OnError OnError // Defaults to Fail
}

// Expr is a parsed expression. It is immutable.
type Expr struct{ root node }

// node is a part of an expression. A constant part is a literal.
type node interface {
	eval(env *Env) (any, error)
}

// ParseTemplate reads a text with ${…} in it. Errors are of type *syntax.Error.
func ParseTemplate(text string) (*Expr, error) {
	return ParseValue(text, Options{Mode: Full})
}

// ParseLet reads what stands after the = of a let. Errors are of type *syntax.Error.
func ParseLet(text string) (*Expr, error) {
	return ParseValue(text, Options{})
}

// ParseValue reads a value as it stands in a definition. Texts are read as the mode says. Texts
// inside lists and maps are always interpolated in full, unless the mode is Disabled; keys never
// are. Errors about a text are of type *syntax.Error, wrapped in words that say where in a list or
// map it is; others say that the value has no place in a flow.
func ParseValue(v any, o Options) (*Expr, error) {
	if o.Mode == 0 {
		o.Mode = Words
	}
	if text, ok := v.(string); ok && !utf8.ValidString(text) {
		return nil, syntax.New(whatTemplate, text, 0, "the text is not valid UTF-8",
			"encode bytes, for example in base64")
	}
	v, err := value.Of(v, value.Limits{})
	if err != nil {
		return nil, err
	}
	if o.Mode == Disabled {
		return &Expr{literal{v}}, nil
	}
	if text, ok := v.(string); ok && o.Mode == Words {
		return made(parseLet(text, o.OnError))
	}
	return made(parseTree(v, o.OnError))
}

func made(root node, err error) (*Expr, error) {
	if err != nil {
		return nil, err
	}
	return &Expr{root}, nil
}

// Constant returns a value that needs no evaluation.
func Constant(v any) *Expr { return &Expr{literal{v}} }

// Eval returns the value of the expression. Errors point into its text and are told apart with
// errors.Is.
func (x *Expr) Eval(env *Env) (any, error) {
	if err := env.enter(); err != nil {
		return nil, err
	}
	defer env.leave()
	return x.root.eval(env)
}

// Text is Eval for where a text is needed: a list, a map or null is an error.
func (x *Expr) Text(env *Env) (string, error) {
	v, err := x.Eval(env)
	if err != nil {
		return "", err
	}
	return value.Text(v)
}

// IsConstant returns the value if it is the same in every Env.
func (x *Expr) IsConstant() (any, bool) {
	l, ok := x.root.(literal)
	return l.value, ok
}

type literal struct{ value any }

func (l literal) eval(*Env) (any, error) { return l.value, nil }

// tree is a list or a map with an expression somewhere inside.
type tree struct {
	list  []node
	keys  []string // sorted; for a map, with the values in list
	isMap bool
}

// parseTree returns a literal if there is nothing to interpolate.
func parseTree(v any, onError OnError) (node, error) {
	t := &tree{}
	switch v := v.(type) {
	case string:
		return parseTemplate(v, onError)
	case []any:
		for i, e := range v {
			n, err := parseTree(e, onError)
			if err != nil {
				return nil, fmt.Errorf("element %d: %w", i, err)
			}
			t.list = append(t.list, n)
		}
	case map[string]any:
		t.isMap, t.keys = true, value.Keys(v)
		for _, k := range t.keys {
			n, err := parseTree(v[k], onError)
			if err != nil {
				return nil, fmt.Errorf("key %s: %w", syntax.Quote(k), err)
			}
			t.list = append(t.list, n)
		}
	default:
		return literal{v}, nil
	}
	for _, n := range t.list {
		if _, ok := n.(literal); !ok {
			return t, nil
		}
	}
	return literal{v}, nil
}

func (t *tree) eval(env *Env) (any, error) {
	if err := env.Spend(1 + len(t.list)); err != nil {
		return nil, err
	}
	list := make([]any, len(t.list))
	for i, n := range t.list {
		var err error
		if list[i], err = n.eval(env); err != nil {
			return nil, t.inside(i, err)
		}
	}
	var v any = list
	if t.isMap {
		m := make(map[string]any, len(list))
		for i, k := range t.keys {
			m[k] = list[i]
		}
		v = m
	}
	return v, value.Check(v, env.ValueLimits())
}

func (t *tree) inside(i int, err error) error {
	if t.isMap {
		return fmt.Errorf("key %s: %w", syntax.Quote(t.keys[i]), err)
	}
	return fmt.Errorf("element %d: %w", i, err)
}
