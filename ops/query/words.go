package query

import (
	"unicode"
)

// oldWords are the filters of the flags of drover list which are no fields.
var oldWords = []struct {
	name    string
	column  Column
	op      Op
	instead string // what one writes in a condition
}{
	{"prefix", ColumnID, StartsWith, "id STARTS_WITH 'x'"},
	{"started-after", ColumnStarted, Greater, "started > now-2h"},
	{"started-before", ColumnStarted, Less, "started < now-2h"},
	{"closed-after", ColumnClosed, Greater, "closed > now-2h"},
	{"closed-before", ColumnClosed, Less, "closed < now-2h"},
}

// word is NAME=VALUE.
type word struct{ name, value token }

// words reads a text that is nothing but words NAME=VALUE with blanks between them. It returns none
// if the text is something else.
func words(text []rune) (all []word) {
	for at := 0; ; {
		for at < len(text) && unicode.IsSpace(text[at]) {
			at++
		}
		if at == len(text) {
			return all
		}
		name := next(text, at)
		at = name.end
		if name.kind != wordToken || at+1 >= len(text) || text[at] != '=' ||
			text[at+1] == '=' || unicode.IsSpace(text[at+1]) {
			return nil
		}
		at++
		value := token{kind: wordToken, start: at}
		if text[at] == '\'' || text[at] == '"' {
			value = quoted(text, at)
			at = value.end
			if value.kind == badToken || at < len(text) && !unicode.IsSpace(text[at]) {
				return nil
			}
		} else {
			for at < len(text) && !unicode.IsSpace(text[at]) {
				at++
			}
			value.end, value.text = at, string(text[value.start:at])
		}
		all = append(all, word{name, value})
	}
}

// wordConditions reads words as conditions that all have to hold.
func (p *parser) wordConditions(all []word) (Expr, error) {
	var terms []Expr
	for _, w := range all {
		c, err := p.wordCondition(w)
		if err != nil {
			return nil, err
		}
		terms = append(terms, c)
	}
	return flat[And](terms), nil
}

func (p *parser) wordCondition(w word) (Expr, error) {
	for _, old := range oldWords {
		if !fold(w.name.text, old.name) {
			if alike(w.name.text, old.name) {
				return nil, refuse(p.text, w.name, "", "a field or a filter of lists", old.name)
			}
			continue
		}
		c := &Condition{Field: Field{Column: old.column}, Op: old.op}
		if _, ok := parseSpan(w.value.text); ok && c.Field.kind() == Instant {
			w.value.text = instantNow + "-" + w.value.text // so long ago
		}
		w.value.kind = textToken
		v, err := p.value(c.Field, w.name.text, w.value)
		c.Values = v
		return c, err
	}
	f, err := p.field(w.name)
	if err != nil {
		return nil, err
	}
	if w.value.is("NULL") {
		return nil, refuse(p.text, w.value, w.name.text, "a value, or IS NULL in place of =", "")
	}
	_, number := ParseNumber(w.value.text)
	if f.kind() == Text &&
		(f.Column != ColumnAttribute || !number && !beginsName(w.value.text)) {
		w.value.kind = textToken
	}
	v, err := p.value(f, w.name.text, w.value)
	return &Condition{Field: f, Values: v}, err
}
