package expr

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/droverhq/drover/decider/flow/syntax"
	"github.com/droverhq/drover/decider/flow/value"
)

const whatTransform = "transform"

const maxTransforms = 100

// Chain is a checked chain of transforms. It is immutable.
type Chain struct {
	steps []step
}

// step is one transform of a chain.
type step struct {
	name   string
	source string // the text that it is part of
	at     int
	apply  func(r *run, v any) (any, error)
}

// run is one evaluation of a chain.
type run struct {
	env  *Env
	sets []Assignment
	done bool
}

// Assignment is a variable that a transform set.
type Assignment struct {
	Path  value.Path
	Value any
}

// Result is what a chain gives.
type Result struct {
	Value  any
	Sets   []Assignment // of the transform set, in their order; the caller assigns them
	Return bool         // the chain ends in return: the run ends with Value
}

// ParseChain reads transforms with | between them. The | is a word of its own; in quotes it is a
// text. Arguments are words as in a let: in quotes a text, else interpolated. Errors are of type
// *syntax.Error.
func ParseChain(text string) (*Chain, error) {
	if len(text) > MaxText {
		return nil, syntax.New(whatTransform, text, 0, "the text is too long",
			"split it over several steps")
	}
	if !utf8.ValidString(text) {
		return nil, syntax.New(whatTransform, text, 0, "the text is not valid UTF-8", "")
	}
	words, err := syntax.Words(whatTransform, text)
	if err != nil {
		return nil, err
	}
	c := &Chain{}
	for from := 0; from <= len(words); {
		to := from
		for to < len(words) && (words[to].Quoted || words[to].Text != "|") {
			to++
		}
		end := len(text)
		if to < len(words) {
			end = words[to].Start
		}
		if from == to {
			return nil, syntax.New(whatTransform, text, end, "a transform is missing",
				"write one on each side of |; "+transformHint)
		}
		if err := c.add(text, words[from:to], end); err != nil {
			return nil, err
		}
		from = to + 1
	}
	return c.checked()
}

// ParseChains reads a list of chains as one.
func ParseChains(texts []string) (*Chain, error) {
	c := &Chain{}
	for i, text := range texts {
		one, err := ParseChain(text)
		if err != nil {
			return nil, fmt.Errorf("transform %d: %w", i, err)
		}
		c.steps = append(c.steps, one.steps...)
	}
	if len(c.steps) == 0 {
		return nil, errors.New("the list of transforms is empty: " + transformHint)
	}
	return c.checked()
}

func (c *Chain) add(text string, words []syntax.Word, end int) error {
	p := &args{text: text, name: words[0].Text, words: words[1:], last: words[0].Start, end: end}
	if len(c.steps) == maxTransforms {
		return syntax.New(whatTransform, text, words[0].Start, "there are too many transforms",
			"split them over several steps")
	}
	apply, err := p.transform()
	if err == nil && len(p.words) > 0 {
		err = p.problem(p.name+" does not take "+syntax.Quote(p.words[0].Text), usage[p.name])
	}
	if err != nil {
		return err
	}
	c.steps = append(c.steps, step{name: p.name, source: text, at: words[0].Start, apply: apply})
	return nil
}

// checked refuses transforms in places where they would have no effect.
func (c *Chain) checked() (*Chain, error) {
	resolved := false
	for i, s := range c.steps {
		refuse := func(problem, hint string) (*Chain, error) {
			return nil, syntax.New(whatTransform, s.source, s.at, problem, hint)
		}
		switch {
		case s.name == "return" && i < len(c.steps)-1:
			return refuse("nothing may follow return", "put it last")
		case s.name == "wait" && resolved:
			return refuse("wait comes too late, the value is needed before", "put it first")
		}
		resolved = resolved || s.name != "wait"
	}
	return c, nil
}

// Returns reports whether the chain ends the run.
func (c *Chain) Returns() bool { return c.steps[len(c.steps)-1].name == "return" }

// Waits reports whether the chain is to wait for its value: an error of evaluation for which
// Waiting is true is no failure then.
func (c *Chain) Waits() bool {
	first := c.steps[0]
	return first.name == "wait" || first.name == waitingMerge
}

// Apply gives a value to the chain.
func (c *Chain) Apply(env *Env, v any) (Result, error) {
	r := &run{env: env}
	for _, s := range c.steps {
		var err error
		if v, err = s.do(r, v); err != nil {
			return Result{}, located(s.source, s.at,
				fmt.Errorf("%s: %w", strings.TrimSuffix(s.name, " wait"), err))
		}
	}
	return Result{Value: v, Sets: r.sets, Return: r.done}, nil
}

func (s step) do(r *run, v any) (any, error) {
	if err := r.env.Spend(1 + value.Size(v)/256); err != nil {
		return nil, err
	}
	v, err := s.apply(r, v)
	if err != nil {
		return nil, err
	}
	return v, value.Check(v, r.env.ValueLimits())
}

// Pipeline is a value and the chain that it goes through.
type Pipeline struct {
	source *Expr
	chain  *Chain
}

// From reads the value that a chain begins with, as ParseValue does. For merge a text is a list of
// words, each a value of its own.
func (c *Chain) From(v any, o Options) (*Pipeline, error) {
	text, ok := v.(string)
	if !ok || !c.merges() {
		source, err := ParseValue(v, o)
		if err != nil {
			return nil, err
		}
		return &Pipeline{source, c}, nil
	}
	words, err := syntax.Words(whatTransform, text)
	if err != nil {
		return nil, err
	}
	parts := &operands{}
	for _, w := range words {
		n, err := wordNode(whatTransform, text, w, Fail)
		if err != nil {
			return nil, err
		}
		parts.list = append(parts.list, n)
	}
	return &Pipeline{&Expr{parts}, c}, nil
}

func (c *Chain) merges() bool {
	for _, s := range c.steps {
		if s.name != "wait" {
			return strings.HasPrefix(s.name, "merge")
		}
	}
	return false
}

// Eval evaluates the value and sends it through the chain.
func (p *Pipeline) Eval(env *Env) (Result, error) {
	v, err := p.source.Eval(env)
	if err != nil {
		return Result{}, err
	}
	return p.chain.Apply(env, v)
}

// operands is the list of values that merge begins with: a value for each that could be evaluated,
// and a failed for each other, for merge to judge.
type operands struct{ list []node }

// failed stands for an operand of merge that has no value. It never leaves a chain.
type failed struct{ err error }

func (o *operands) eval(env *Env) (any, error) {
	out := make([]any, 0, len(o.list))
	total := 0
	for _, n := range o.list {
		v, err := n.eval(env)
		if err == nil { // a small text may name a large value often
			total += value.Size(v)
			err = env.fits(total)
		}
		switch {
		case hard(err):
			return nil, err
		case err != nil:
			out = append(out, failed{err})
		default:
			out = append(out, v)
		}
	}
	return out, nil
}
