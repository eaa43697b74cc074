package expr

import (
	"fmt"
	"strings"

	"github.com/droverhq/drover/decider/flow/value"
)

// text is several words that are one text.
type text struct {
	source string
	at     int
	parts  []node
}

// simple joins what is known already.
func (t *text) simple() node {
	var b strings.Builder
	for _, p := range t.parts {
		l, ok := p.(literal)
		if !ok {
			return t
		}
		b.WriteString(l.value.(string))
	}
	return literal{b.String()}
}

func (t *text) eval(env *Env) (any, error) {
	if err := env.Spend(1); err != nil {
		return nil, located(t.source, t.at, err)
	}
	var b strings.Builder
	for _, p := range t.parts {
		v, err := p.eval(env)
		if err != nil {
			return nil, err
		}
		s, err := t.embed(p, v)
		if err != nil {
			return nil, err
		}
		if err := env.fits(b.Len() + len(s)); err != nil {
			return nil, located(t.source, t.at, err)
		}
		b.WriteString(s)
	}
	return b.String(), nil
}

func (t *text) embed(p node, v any) (string, error) {
	s, err := value.Text(v)
	if err == nil {
		return s, nil
	}
	inner, ok := p.(*template)
	if !ok {
		return "", located(t.source, t.at, err)
	}
	instead, err := inner.instead(inner.parts[0], err)
	if err != nil {
		return "", err
	}
	return value.Text(instead)
}

type ternary struct {
	source                     string
	at                         int
	condition, then, otherwise node
}

func (t *ternary) eval(env *Env) (any, error) {
	yes, err := truth(env, t.source, t.at, "?", t.condition)
	if err != nil {
		return nil, err
	}
	if yes {
		return t.then.eval(env)
	}
	return t.otherwise.eval(env)
}

type not struct {
	source string
	at     int
	inner  node
}

func (n *not) eval(env *Env) (any, error) {
	yes, err := truth(env, n.source, n.at, "!", n.inner)
	return !yes, err
}

// truth evaluates a node that has to be a boolean, or a text that is one.
func truth(env *Env, source string, at int, op string, n node) (bool, error) {
	if err := env.Spend(1); err != nil {
		return false, located(source, at, err)
	}
	v, err := n.eval(env)
	if err != nil {
		return false, err
	}
	yes, err := value.Coerce(v, "boolean", env.ValueLimits())
	if err != nil {
		return false, located(source, at, fmt.Errorf("the operator %s needs booleans: %w", op, err))
	}
	return yes.(bool), nil
}

type binary struct {
	source      string
	at          int
	op          string
	left, right node
}

func (b *binary) eval(env *Env) (any, error) {
	switch b.op {
	case "??":
		return b.coalesce(env)
	case "&&", "||":
		left, err := truth(env, b.source, b.at, b.op, b.left)
		if err != nil || left == (b.op == "||") {
			return left, err
		}
		return truth(env, b.source, b.at, b.op, b.right)
	}
	if err := env.Spend(1); err != nil {
		return nil, located(b.source, b.at, err)
	}
	left, err := b.left.eval(env)
	if err != nil {
		return nil, err
	}
	right, err := b.right.eval(env)
	if err != nil {
		return nil, err
	}
	if err := env.Spend(Weigh(left) + Weigh(right)); err != nil {
		return nil, located(b.source, b.at, err)
	}
	v, err := b.compute(left, right)
	return v, located(b.source, b.at, err)
}

func (b *binary) coalesce(env *Env) (any, error) {
	if err := env.Spend(1); err != nil {
		return nil, located(b.source, b.at, err)
	}
	v, err := b.left.eval(env)
	if err == nil && v != nil || hard(err) {
		return v, err
	}
	return b.right.eval(env)
}

func (b *binary) compute(left, right any) (any, error) {
	switch b.op {
	case "==":
		return value.Equal(left, right), nil
	case "!=":
		return !value.Equal(left, right), nil
	case "<", "<=", ">", ">=":
		c, ok := value.Compare(left, right)
		if !ok {
			return nil, fmt.Errorf("%s and %s have no order, so %s cannot compare them: %s",
				describe(left), describe(right), b.op, quoteHint)
		}
		switch b.op {
		case "<":
			return c < 0, nil
		case "<=":
			return c <= 0, nil
		case ">":
			return c > 0, nil
		}
		return c >= 0, nil
	}
	return arithmetic(b.op, left, right)
}
