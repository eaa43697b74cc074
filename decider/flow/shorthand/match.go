package shorthand

import (
	"strings"

	"github.com/droverhq/drover/decider/flow/syntax"
)

// Capture is what one variable of a template took of a text.
type Capture struct {
	Name   string
	Text   string // without its quotes if it was one quoted word
	Offset int    // where Text begins in what was matched; -1 if it is not there as it is
	Flag   bool   // the variable is a flag, and present
}

// Mismatch says where a text stops to fit a template.
type Mismatch struct {
	Offset int
}

func (m *Mismatch) Error() string { return "does not fit the shorthand" }

// maxWork bounds how often Match may go back. What people write takes a few hundred.
const maxWork = 100_000

// Match takes a text apart:
//
//   - Optional groups are greedy: they are tried with, then without.
//   - ${v} takes one word. ${v...} takes one or more, as few as do. The last variable of the
//     template takes all the rest. A word ends at white space that neither quotes nor ${...}
//     enclose.
//   - A literal with a space at its edge needs white space, or an end of the text, there. Otherwise
//     white space never matters.
//   - A word in quotes is unwrapped, and so is all that a variable took if it is one word in
//     quotes. With raw, the last variable keeps its quotes. A word in which more follows the
//     closing quote, as "a", keeps them.
//
// Captures come in the order of the template; a flag that is absent, and a variable of a group that
// is, have none. The error is of type *Mismatch. A text that can be taken apart in very many ways
// is refused as one that does not fit.
func (t *Template) Match(text string, raw bool) ([]Capture, error) {
	m := &matcher{t: t, text: text, raw: raw, failed: map[[2]int]bool{}}
	got, ok := m.run(0, 0, nil)
	if !ok {
		return nil, &Mismatch{Offset: m.furthest}
	}
	var all []Capture
	for ; got != nil; got = got.before {
		all = append([]Capture{got.Capture}, all...)
	}
	return all, nil
}

// matcher goes back on its steps. It never tries a place of the program at a place of the text
// twice: whether the rest fits depends on nothing else.
type matcher struct {
	t        *Template
	text     string
	raw      bool
	furthest int
	work     int
	failed   map[[2]int]bool
}

type taken struct {
	Capture
	before *taken
}

func (m *matcher) run(pc, at int, got *taken) (*taken, bool) {
	if m.work++; m.work > maxWork || m.failed[[2]int{pc, at}] {
		return nil, false
	}
	if all, ok := m.step(pc, at, got); ok {
		return all, true
	}
	m.failed[[2]int{pc, at}] = true
	return nil, false
}

func (m *matcher) step(pc, at int, got *taken) (*taken, bool) {
	next := syntax.SkipSpace(m.text, at)
	m.furthest = max(m.furthest, next)
	if pc == len(m.t.program) {
		return got, next == len(m.text)
	}
	o := m.t.program[pc]
	switch o.kind {
	case opTry:
		if all, ok := m.run(pc+1, at, got); ok {
			return all, true
		}
		return m.run(o.to, at, got)
	case opFlag:
		return m.run(pc+1, at, &taken{Capture{Name: o.name, Flag: true, Offset: -1}, got})
	case opLiteral:
		end, ok := o.literal(m.text, at)
		if !ok {
			return nil, false
		}
		return m.run(pc+1, end, got)
	}
	if next == len(m.text) {
		return nil, false
	}
	return m.variable(o, pc, next, got)
}

func (m *matcher) variable(o op, pc, from int, got *taken) (*taken, bool) {
	if o.kind == opRest {
		end := len(strings.TrimRight(m.text, " \t\r\n"))
		if all, ok := m.run(pc+1, end, &taken{m.capture(o.name, from, end, m.raw), got}); ok {
			return all, true
		}
		return nil, false
	}
	for end := from; ; {
		end = WordEnd(m.text, syntax.SkipSpace(m.text, end))
		if all, ok := m.run(pc+1, end, &taken{m.capture(o.name, from, end, false), got}); ok {
			return all, true
		}
		if o.kind == opWord || m.work > maxWork || syntax.SkipSpace(m.text, end) == len(m.text) {
			return nil, false
		}
	}
}

func (m *matcher) capture(name string, from, end int, raw bool) Capture {
	c := Capture{Name: name, Text: m.text[from:end], Offset: from}
	if inner, ok := Unwrap(c.Text); ok && !raw {
		c.Offset = from + 1
		if len(inner) != len(c.Text)-2 {
			c.Offset = -1
		}
		c.Text = inner
	}
	return c
}

func (o op) literal(text string, at int) (end int, ok bool) {
	end = syntax.SkipSpace(text, at)
	if o.before && end == at && at > 0 {
		return 0, false
	}
	for i, w := range o.words {
		if i > 0 {
			gap := end
			if end = syntax.SkipSpace(text, end); end == gap {
				return 0, false
			}
		}
		if !strings.HasPrefix(text[end:], w) {
			return 0, false
		}
		end += len(w)
	}
	return end, !o.after || end == len(text) || syntax.Space(text[end])
}

// WordEnd returns where the word ends that begins at from, which is no space.
func WordEnd(text string, from int) int {
	if end, ok := quoteEnd(text, from); ok {
		from = end
	} else if text[from] == '{' {
		if n := strings.IndexByte(text[from:], '}'); n > 0 {
			from += n + 1
		}
	}
	for at := from; at < len(text); at++ {
		switch {
		case syntax.Space(text[at]):
			return at
		case strings.HasPrefix(text[at:], "${"):
			if n := strings.IndexByte(text[at:], '}'); n > 0 {
				at += n
			}
		}
	}
	return len(text)
}

// quoteEnd returns the offset after the first closing quote of a text in quotes. An apostrophe
// between two letters closes nothing: 'don't' is one text.
func quoteEnd(text string, from int) (int, bool) {
	quote := text[from]
	if quote != '"' && quote != '\'' {
		return 0, false
	}
	for at := from + 1; at < len(text); at++ {
		switch {
		case text[at] == '\\':
			at++
		case text[at] == quote && !syntax.Apostrophe(text, at):
			return at + 1, true
		}
	}
	return 0, false
}

// Unwrap takes the quotes off a text that is one word in quotes: its first closing quote is its
// last character. Of several, as in "a", "b", the quotes belong to the text. A backslash stands for
// the quote or backslash after it.
func Unwrap(text string) (string, bool) {
	if len(text) < 2 {
		return text, false
	}
	end, ok := quoteEnd(text, 0)
	if !ok || end != len(text) {
		return text, false
	}
	inner := text[1 : end-1]
	if !strings.Contains(inner, `\`) {
		return inner, true
	}
	return strings.NewReplacer(`\\`, `\`, `\`+text[:1], text[:1]).Replace(inner), true
}
