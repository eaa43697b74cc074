// Package syntax holds what all readers of the little languages of flows share: the error that
// points into a text, a cursor over its bytes, and words with quotes.
//
// Invariants: an offset counts bytes from the start of the text that was given to the reader, never
// beyond its length; a message stays short whatever the text is; every function takes time linear
// in its text. It is pure and below all other packages of decider/flow. They call it, and so do
// those who add file, line and column to its errors, or look for the nearest name.
package syntax

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/droverhq/drover/internal/duration"
)

// Error says where and why a text is not what it should be.
type Error struct {
	What    string // the language: "let", "backoff", "path" …
	Text    string // what was given, shortened if it is long
	Offset  int    // bytes from the start of what was given
	Problem string
	Hint    string // the way out; may be empty
}

func (e *Error) Error() string {
	s := fmt.Sprintf("%s %q: %s (at %d)", e.What, e.Text, e.Problem, e.Offset)
	if e.Hint != "" {
		s += ": " + e.Hint
	}
	return s
}

// New returns an *Error about a place in a text.
func New(what, text string, offset int, problem, hint string) error {
	return &Error{
		What: what, Text: Clip(text), Offset: min(max(offset, 0), len(text)), Problem: problem,
		Hint: hint,
	}
}

// Within turns an error of a reader that was given a part of a text into one about the whole text;
// at is where the part begins. Errors without an offset become ones about the beginning of the
// part.
func Within(what, text string, at int, err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return New(what, text, at+e.Offset, e.Problem, e.Hint)
	}
	if e, ok := errors.AsType[*duration.Error](err); ok {
		return New(what, text, at+e.Offset, "the duration "+e.Problem, e.Hint)
	}
	return New(what, text, at, err.Error(), "")
}

// Clip shortens a text for messages, at a rune's border.
func Clip(s string) string {
	const most = 60
	if len(s) <= most {
		return s
	}
	end := most
	for end > most-utf8.UTFMax && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "..."
}

// Line is Clip of the first line.
func Line(s string) string {
	if line, _, more := strings.Cut(s, "\n"); more {
		s = line + "..."
	}
	return Clip(s)
}

// Quote is Clip in quotes, for a word in a message.
func Quote(s string) string { return fmt.Sprintf("%q", Clip(s)) }

// Space reports whether a byte separates words.
func Space(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// SkipSpace returns the offset of the first byte at or after at that is no white space.
func SkipSpace(s string, at int) int {
	for at < len(s) && Space(s[at]) {
		at++
	}
	return at
}

// Nearest returns the name that was probably meant, or "" if none is near. Only names of about the
// same length are compared.
func Nearest(got string, names []string) string {
	best, least := "", 3
	for _, name := range names {
		if max(len(got)-len(name), len(name)-len(got)) >= least {
			continue
		}
		if d := Distance(strings.ToLower(got), strings.ToLower(name)); d < least &&
			2*d < len(name) {
			best, least = name, d
		}
	}
	return best
}

// Distance counts the letters to insert, to remove or to change; two that changed places count as
// one.
func Distance(a, b string) int {
	var before []int
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next := make([]int, len(b)+1)
		next[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			next[j+1] = min(row[j+1]+1, next[j]+1, row[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}
