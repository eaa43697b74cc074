package query

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/droverhq/drover/decider/flow/syntax"
)

// Error says where and why a text is no query.
type Error struct {
	Text    string // the whole query
	Column  int    // in runes, from 1; one after the last rune if something is missing there
	Field   string // that a value or an operator does not suit; may be empty
	Found   string // what stands there
	Want    string // what would be right
	Nearest string // the word that was probably meant; may be empty

	width int // of what was found, in runes
}

// Error is one line.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "column %d: ", e.Column)
	if e.Field != "" {
		b.WriteString(bareOrQuoted(syntax.Clip(e.Field)) + ": ")
	}
	b.WriteString("found " + e.Found + ", want " + e.Want)
	if e.Nearest != "" {
		b.WriteString("; did you mean " + e.Nearest + "?")
	}
	return b.String()
}

// Caret shows the place in two lines: the query, or the part of it around the place, and marks
// below it. It is for letters that are all of one width.
func (e *Error) Caret() string {
	const most, before = 76, 40
	text := []rune(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, e.Text))
	at := min(e.Column-1, len(text))
	from := 0
	if len(text) > most {
		from = max(min(at-before, len(text)-most), 0)
	}
	text = text[from:min(from+most, len(text))]
	at -= from
	width := max(min(e.width, len(text)-at), 1)
	return string(text) + "\n" + strings.Repeat(" ", at) + strings.Repeat("^", width)
}

// refuse says what should stand in the place of a token.
func refuse(text []rune, t token, field, want, nearest string) *Error {
	if t.err != nil {
		return t.err
	}
	found := "the end of the query"
	if t.kind != endToken {
		found = syntax.Quote(t.text)
	}
	return &Error{
		Text: string(text), Column: t.start + 1, Field: field, Found: found, Want: want,
		Nearest: nearest, width: t.end - t.start,
	}
}
