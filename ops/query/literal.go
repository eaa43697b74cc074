package query

import (
	"slices"
	"strings"

	"github.com/droverhq/drover/decider/flow/syntax"
	"github.com/droverhq/drover/schemas"
)

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
	case f.words() != nil:
		all, near := oneOf(f, t.text)
		if all == nil {
			return refused(wordsOf(f), near)
		}
		return all, nil
	default:
		v = Value{Text: t.text}
		if t.kind == textToken {
			break
		}
		number, isNumber := ParseNumber(t.text)
		switch attribute := f.Column == ColumnAttribute; {
		case isNumber && attribute:
			v = number
		case isNumber:
			return refused("a text: write "+quote(t.text, '\''), "")
		case attribute && !beginsName(t.text):
			return refused("a number or a word; a text has quotes: "+quote(syntax.Clip(t.text), '\''), "")
		}
	}
	return []Value{v}, nil
}

// temporalRunning is open in Temporal. All other statuses have the same names.
const temporalRunning = "Running"

// oneOf finds the values of a word for a field that has certain values only, and otherwise the word
// that was probably meant.
func oneOf(f Field, word string) (all []Value, near string) {
	words := f.words()
	if f.Column == ColumnStatus {
		switch {
		case fold(word, temporalRunning):
			word = string(schemas.StatusOpen)
		case fold(word, string(schemas.StatusClosed)):
			for _, s := range statuses {
				if s.Closed() {
					all = append(all, Value{Text: string(s)})
				}
			}
			return all, ""
		}
	}
	i := slices.IndexFunc(words, func(w string) bool { return fold(w, word) })
	if i >= 0 {
		return []Value{{Text: words[i]}}, ""
	}
	if f.Column == ColumnStatus {
		words = append(words, string(schemas.StatusClosed), temporalRunning)
	}
	return nil, syntax.Nearest(word, words)
}

// wordsOf lists the values that there are of a field.
func wordsOf(f Field) string {
	words := f.words()
	if f.Column == ColumnStatus {
		words = append(words, string(schemas.StatusClosed))
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
