package query

import (
	"slices"
	"strings"

	"github.com/droverhq/drover/decider/flow/syntax"
)

// operators are the words and signs after a field, and operatorOps what they ask for. BETWEEN
// begins with >=.
var (
	operators = []string{
		"=", "!=", "<", "<=", ">", ">=", "IN", "BETWEEN", "STARTS_WITH", "CONTAINS", "IS", "NOT",
	}
	operatorOps = []Op{
		In, In, Less, LessEqual, Greater, GreaterEqual, In, GreaterEqual, StartsWith, Contains, IsNull,
	}
)

func isOperator(t token) bool { return slices.ContainsFunc(operators, t.is) }

// otherSigns are operators elsewhere, with what they are here.
var otherSigns = map[string]string{
	"==": "=", "<>": "!=", "=!": "!=", "=<": "<=", "=>": ">=", "!": "NOT",
	"LIKE": "STARTS_WITH or CONTAINS", "~": "CONTAINS",
}

// nearest is the word that a token was probably meant to be.
func nearest(t token, words []string) string {
	if t.kind != wordToken && t.kind != signToken || len(words) == 0 {
		return ""
	}
	if other, ok := otherSigns[strings.ToUpper(t.text)]; ok {
		return other
	}
	return syntax.Nearest(t.text, words)
}

// condition reads a field, an operator and values.
func (p *parser) condition() (Expr, error) {
	if p.here().kind == wordToken && p.after().is("(") && !isOperator(p.here()) {
		return nil, p.refuse("", "a field: there are no functions")
	}
	f, name, err := p.name()
	if err != nil {
		return nil, err
	}
	not := p.skip("NOT")
	operator := p.here()
	i := slices.IndexFunc(operators, operator.is)
	switch {
	case not && (operator.kind != wordToken || i < 0 || i >= len(operatorOps)-1):
		want := "IN, BETWEEN, STARTS_WITH or CONTAINS; or IS NOT NULL"
		return nil, p.refuse(name, want, operators[6:10]...)
	case i < 0:
		return nil, p.refuse(name, "an operator: "+strings.Join(operators, " "), operators...)
	case !f.takes(operatorOps[i]) && f.takes(Contains):
		return nil, p.refuse(name, "= != IN STARTS_WITH CONTAINS or IS")
	case !f.takes(operatorOps[i]) && f.takes(Less):
		return nil, p.refuse(name, "= != < <= > >= IN BETWEEN or IS")
	case !f.takes(operatorOps[i]):
		return nil, p.refuse(name, "= != IN or IS")
	}
	p.take()
	c := &Condition{Field: f, Op: operatorOps[i], Not: not || operator.is("!=")}
	switch {
	case operator.is("IS"):
		c.Not = p.skip("NOT")
		if !p.skip("NULL") {
			return nil, p.refuse(name, "NULL or NOT NULL", "NULL")
		}
		return c, nil
	case operator.is("BETWEEN"):
		e, err := p.between(f, name)
		if not && err == nil {
			e = negated(e)
		}
		return e, err
	case operator.is("IN"):
		return c, p.list(c, name)
	}
	c.Values, err = p.operand(c, name)
	return c, err
}

// name reads the name of a field, and returns how it was written, too.
func (p *parser) name() (Field, string, error) {
	t := p.here()
	named := t.kind == nameToken ||
		t.kind == wordToken && (isName(t) || beginsName(t.text) && isOperator(p.after()))
	if !named {
		return Field{}, "", p.refuse("", "the name of a field")
	}
	f, err := p.field(t)
	if err == nil {
		p.take()
	}
	return f, t.text, err
}

func (p *parser) field(t token) (Field, error) {
	f, want, near := fieldNamed(t.text)
	if want != "" {
		return f, refuse(p.text, t, "", want, near)
	}
	return f, nil
}

// operand reads what stands after an operator. All values of a condition are of one kind.
func (p *parser) operand(c *Condition, name string) ([]Value, error) {
	t := p.here()
	switch {
	case isKeyword(t), !isName(t) && p.after().is("BY"),
		t.is("LIMIT") && p.after().kind == wordToken:
		return nil, p.refuse(name, "a value; a text has quotes")
	case t.kind == wordToken && p.after().is("("):
		return nil, p.refuse(name, "a value: there are no functions")
	}
	values, err := p.value(c.Field, name, t)
	switch {
	case err != nil:
		return nil, err
	case len(c.Values) > 0 && c.Values[0].Kind != values[0].Kind:
		return nil, p.refuse(name, "numbers alone, or texts alone: a text has quotes")
	case values[0].Kind == Number && (c.Op == StartsWith || c.Op == Contains):
		return nil, p.refuse(name, "a text: write "+quote(t.text, '\''))
	}
	p.take()
	return values, nil
}

// between reads two values with AND.
func (p *parser) between(f Field, name string) (e Expr, err error) {
	from, to := &Condition{Field: f, Op: GreaterEqual}, &Condition{Field: f, Op: LessEqual}
	if from.Values, err = p.operand(from, name); err != nil {
		return nil, err
	}
	if !p.skip("AND") {
		return nil, p.refuse(name, "AND and the upper value of BETWEEN", "AND")
	}
	to.Values = from.Values // for their kind
	to.Values, err = p.operand(to, name)
	return And{from, to}, err
}

// list reads values in brackets.
func (p *parser) list(c *Condition, name string) error {
	if !p.skip("(") {
		return p.refuse(name, "a bracket ( before the values")
	}
	for {
		values, err := p.operand(c, name)
		if err != nil {
			return err
		}
		for _, v := range values {
			if !slices.Contains(c.Values, v) {
				c.Values = append(c.Values, v)
			}
		}
		if p.skip(")") {
			return nil
		}
		if !p.skip(",") {
			return p.refuse(name, "a comma or a bracket ) after the values")
		}
	}
}
