package expr

import (
	"maps"
	"slices"

	"github.com/droverhq/drover/decider/flow/syntax"
	"github.com/droverhq/drover/decider/flow/value"
)

// usage is how each transform is written.
var usage = map[string]string{
	"trim":               "write trim",
	"replace":            "write replace [all] [literal|regex|glob] PATTERN TEXT",
	"merge":              "write merge [list|set|map] [deep] [wait] [lax]",
	"prepend":            "write prepend X",
	"append":             "write append X",
	"join":               "write join [SEPARATOR]",
	"split":              "write split [limit N] [keep_delimiters] [literal|regex] SEPARATOR",
	"slice":              "write slice FROM [TO]",
	"remove":             "write remove KEY or remove INDEX",
	"wait":               "write wait",
	"type":               "write type NAME",
	"json":               "write json [string|parse|encode]",
	"yaml":               "write yaml [string|parse|encode]",
	"bash":               "write bash [string|encode]",
	"first":              "write first",
	"last":               "write last",
	"min":                "write min",
	"max":                "write max",
	"sum":                "write sum",
	"average":            "write average",
	"size":               "write size",
	"to_string":          "write to_string",
	"to_upper_case":      "write to_upper_case",
	"to_lower_case":      "write to_lower_case",
	"get":                "write get [PATH]",
	"resolve_expression": "write resolve_expression",
	"set":                "write set VARIABLE",
	"return":             "write return",
}

const transformHint = "transforms are trim replace merge prepend append join split slice remove " +
	"wait type json yaml bash first last min max " +
	"sum average size to_string to_upper_case to_lower_case get resolve_expression set return"

// args are the words after the name of a transform, of which the parsers take those that they know.
type args struct {
	text  string
	name  string
	words []syntax.Word
	last  int // offset of the word that was taken last
	end   int // offset after the last word
}

// fault is about the word that was taken last.
func (p *args) fault(problem, hint string) error {
	return syntax.New(whatTransform, p.text, p.last, problem, hint)
}

// problem is about the word that is next, or the end.
func (p *args) problem(problem, hint string) error {
	at := p.end
	if len(p.words) > 0 {
		at = p.words[0].Start
	}
	return syntax.New(whatTransform, p.text, at, problem, hint)
}

// flag takes one of the words if it is next, and returns which.
func (p *args) flag(names ...string) string {
	if len(p.words) == 0 || p.words[0].Quoted {
		return ""
	}
	for _, name := range names {
		if p.words[0].Text == name {
			p.last = p.words[0].Start
			p.words = p.words[1:]
			return name
		}
	}
	return ""
}

// arg takes a value. what is its name in errors.
func (p *args) arg(what string) (node, error) {
	if len(p.words) == 0 {
		return nil, p.problem(p.name+" lacks "+what, usage[p.name])
	}
	n, err := wordNode(whatTransform, p.text, p.words[0], Fail)
	p.last = p.words[0].Start
	p.words = p.words[1:]
	return n, err
}

// word takes a word that is never interpolated.
func (p *args) word(what string) (syntax.Word, error) {
	if len(p.words) == 0 {
		return syntax.Word{}, p.problem(p.name+" lacks "+what, usage[p.name])
	}
	w := p.words[0]
	p.last = w.Start
	p.words = p.words[1:]
	return w, nil
}

// textOf evaluates an argument to a text.
func textOf(r *run, n node) (string, error) {
	v, err := n.eval(r.env)
	if err != nil {
		return "", err
	}
	return value.Text(v)
}

// indexOf evaluates an argument to an integer.
func indexOf(r *run, n node) (int, error) {
	v, err := n.eval(r.env)
	if err != nil {
		return 0, err
	}
	i, err := value.Coerce(v, "integer", r.env.ValueLimits())
	if err != nil {
		return 0, err
	}
	const far = 1 << 40 // after the end of anything, and safe to add to
	return int(min(max(i.(int64), -far), far)), nil
}

type transform = func(r *run, v any) (any, error)

// transform reads the arguments of the transform that name says.
func (p *args) transform() (transform, error) {
	switch p.name {
	case "trim":
		return trim, nil
	case "to_string":
		return toString, nil
	case "to_upper_case":
		return upper, nil
	case "to_lower_case":
		return lower, nil
	case "replace":
		return p.replace()
	case "split":
		return p.split()
	case "join":
		return p.join()
	case "prepend", "append":
		return p.extend()
	case "slice":
		return p.slice()
	case "remove":
		return p.remove()
	case "merge":
		return p.merge()
	case "first", "last", "min", "max", "sum", "average":
		return p.reduce()
	case "size":
		return size, nil
	case "json", "yaml", "bash":
		return p.encoding()
	case "type":
		return p.toType()
	case "get":
		return p.get()
	case "set":
		return p.set()
	case "wait":
		return waited, nil
	case "return":
		return func(r *run, v any) (any, error) { r.done = true; return v, nil }, nil
	case "resolve_expression":
		return resolveExpression, nil
	}
	hint := transformHint
	if near := syntax.Nearest(p.name, slices.Sorted(maps.Keys(usage))); near != "" {
		hint = "did you mean " + near + "?"
	}
	return nil, p.fault("there is no transform "+syntax.Quote(p.name), hint)
}
