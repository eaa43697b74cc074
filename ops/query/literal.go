package query

import "github.com/droverhq/drover/decider/flow/syntax"

// value reads a token as what a field is compared with: several values for a word that stands for
// them. Name is how the field was written.
func (p *parser) value(f Field, name string, t token) ([]Value, error) {
	refused := func(want, near string) ([]Value, error) {
		return nil, refuse(p.text, t, name, want, near)
	}
	switch {
	case t.kind != wordToken && t.kind != textToken:
		return refused("a value", "")
	case t.text == "":
		return refused("a value; what is empty is found by IS NULL", "")
	}
	var v Value
	var ok bool
	switch kind := f.kind(); {
	case kind == Instant:
		if v, ok = parseInstant(t.text, p.now); !ok {
			return refused(timeForm, "")
		}
	case kind == Span:
		if v, ok = parseSpan(t.text); !ok {
			return refused(spanForm, "")
		}
	case kind == Number:
		if v, ok = ParseNumber(t.text); !ok || t.kind == textToken {
			return refused("a number without quotes", "")
		}
	case f.choices() != nil:
		all, want, near := choose(t.text, f.choices())
		if all == nil {
			return refused(want, near)
		}
		return all, nil
	default:
		v = Value{Text: t.text}
		if t.kind == textToken {
			break
		}
		number, isNumber := ParseNumber(t.text)
		_, isInstant := parseInstant(t.text, p.now) // which no attribute is
		switch attribute := f.Column == ColumnAttribute; {
		case isNumber && attribute:
			v = number
		case isNumber:
			return refused("a text: write "+quote(t.text, '\''), "")
		case attribute && (!beginsName(t.text) || isInstant):
			return refused("a number or a word; a text has quotes: "+
				quote(syntax.Clip(t.text), '\''), "")
		}
	}
	return []Value{v}, nil
}
