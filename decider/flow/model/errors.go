package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/droverhq/drover/decider/flow/syntax"
)

// Position is a place in a text, both counted from 1, columns in characters. The zero Position is
// unknown.
type Position struct {
	Line   int `json:"line"`
	Column int `json:"column"`
}

func (p Position) compare(q Position) int {
	return cmp.Or(cmp.Compare(p.Line, q.Line), cmp.Compare(p.Column, q.Column))
}

// Error is one thing that is wrong with a definition.
type Error struct {
	File string // as given to Parse; may be empty
	Position
	Problem string
	Hint    string // the way out; may be empty
	Excerpt string // the line with a caret below it; empty if the position is unknown
}

// Error gives "file:line:column: problem (hint)", and the excerpt on lines of its own.
func (e *Error) Error() string {
	s := e.String()
	if e.Excerpt != "" {
		s += "\n" + e.Excerpt
	}
	return s
}

// String is Error without the excerpt.
func (e *Error) String() string {
	var b strings.Builder
	if e.File != "" {
		b.WriteString(e.File + ":")
	}
	if e.Line > 0 {
		fmt.Fprintf(&b, "%d:%d:", e.Line, e.Column)
	}
	if b.Len() > 0 {
		b.WriteByte(' ')
	}
	b.WriteString(e.Problem)
	if e.Hint != "" {
		b.WriteString(" (" + e.Hint + ")")
	}
	return b.String()
}

// Errors are all that were found, in the order of the text; never empty.
type Errors []*Error

func (e Errors) Error() string {
	texts := make([]string, len(e))
	for i, one := range e {
		texts[i] = one.Error()
	}
	return strings.Join(texts, "\n")
}

// Unwrap lets errors.AsType find the first.
func (e Errors) Unwrap() []error {
	all := make([]error, len(e))
	for i, one := range e {
		all[i] = one
	}
	return all
}

const maxErrors = 20

// report collects errors about one text.
type report struct {
	file  string
	lines []string
	found Errors
}

func newReport(file, text string) *report {
	return &report{file: file, lines: strings.Split(text, "\n")}
}

func (r *report) add(at Position, problem, hint string) {
	e := r.make(at, problem, hint)
	if len(r.found) < maxErrors && !slices.ContainsFunc(r.found,
		func(o *Error) bool { return o.Position == at && o.Problem == problem }) {
		r.found = append(r.found, e)
	}
}

func (r *report) make(at Position, problem, hint string) *Error {
	return &Error{File: r.file, Position: at, Problem: problem, Hint: hint, Excerpt: r.excerpt(at)}
}

// err is nil if nothing was found.
func (r *report) err() error {
	if len(r.found) == 0 {
		return nil
	}
	slices.SortStableFunc(r.found, func(a, b *Error) int { return a.compare(b.Position) })
	return r.found
}

// excerpt shows the line and the one before it. Long lines are cut around the column.
func (r *report) excerpt(at Position) string {
	if at.Line < 1 || at.Line > len(r.lines) {
		return ""
	}
	var b strings.Builder
	if at.Line > 1 && strings.TrimSpace(r.lines[at.Line-2]) != "" {
		line, _ := window(r.lines[at.Line-2], 1)
		fmt.Fprintf(&b, "%5d | %s\n", at.Line-1, line)
	}
	line, column := window(r.lines[at.Line-1], at.Column)
	fmt.Fprintf(&b, "%5d | %s\n      | %s^", at.Line, line, strings.Repeat(" ", column-1))
	return b.String()
}

// window returns at most 100 characters of a line, and where the column is in them. Tabs and what
// cannot be shown become one space or one mark each, so that the caret stands right.
func window(line string, column int) (string, int) {
	const most, before = 100, 60
	line = strings.TrimSuffix(line, "\r")
	from := max(0, column-1-before)
	var b strings.Builder
	at, n := 0, 0
	for len(line) > 0 && n < most {
		c, size := utf8.DecodeRuneInString(line)
		if at >= from {
			switch {
			case c == '\t':
				c = ' '
			case c < ' ' || c == 0x7f || c == utf8.RuneError:
				c = '�'
			}
			b.WriteRune(c)
			n++
		}
		at++
		line = line[size:]
	}
	return b.String(), max(1, min(column-from, n+1))
}

func quoted(s string) string { return fmt.Sprintf("%q", syntax.Line(s)) }

func didYouMean(got string, names []string) string {
	if name := syntax.Nearest(got, names); name != "" {
		return "did you mean " + name + "?"
	}
	return ""
}

// At makes an error about a place in a text, for those who find more wrong with a definition than
// Parse does.
func At(file string, text []byte, at Position, problem, hint string) *Error {
	return newReport(file, strings.TrimPrefix(string(text), "\ufeff")).make(at, problem, hint)
}
