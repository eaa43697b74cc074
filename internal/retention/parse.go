package retention

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/droverhq/drover/internal/duration"
)

// Bounds of what is parsed.
const (
	MaxLength = 4096 // bytes of an expression
	maxHash   = 512  // bytes of a hash
	maxValues = 64   // in one expression, with min and max
	maxDepth  = 16   // of min and max in each other
	maxCount  = 1_000_000_000
)

// Error says where and why a text is not a retention expression.
type Error struct {
	Text    string // what was given, shortened if it is long
	Offset  int    // bytes from the start of what was given
	Problem string
	Hint    string // what to write instead; may be empty
}

func (e *Error) Error() string {
	s := fmt.Sprintf("retention %q: %s", e.Text, e.Problem)
	if e.Hint != "" {
		s += " (" + e.Hint + ")"
	}
	return s
}

const (
	example   = "write a count, a duration, forever, context, parent, system, min(...), max(...) or disabled"
	quoteHint = `put a hash that holds the words soft or hard, or stands first and has more than ` +
		`one word, in double quotes`
)

// Parse reads an expression. White space alone is an expression in which nothing is given. Errors
// are of type *Error.
func Parse(text string) (Expr, error) {
	p := &parser{text: text, most: maxValues}
	if len(text) > MaxLength {
		return Expr{}, p.problem(MaxLength, "is longer than "+strconv.Itoa(MaxLength)+" bytes", "")
	}
	if !utf8.ValidString(text) {
		return Expr{}, p.problem(0, "is not UTF-8", "")
	}
	e, err := p.expression()
	if err != nil {
		return Expr{}, err
	}
	return e, nil
}

type parser struct {
	text   string
	at     int
	values int // so far
	most   int // values that may be
}

func (p *parser) expression() (Expr, error) {
	var e Expr
	if at := p.at; p.keyword("hash") {
		if err := p.hash(&e, at, p.word); err != nil {
			return e, err
		}
	}
	hardAt := p.space()
	e.Hard = p.keyword("hard")
	if err := p.main(&e); err != nil {
		return e, err
	}
	for p.space() < len(p.text) {
		if err := p.suffix(&e); err != nil {
			return e, err
		}
	}
	if e.Hard && e.Disk == nil && !e.Disabled {
		return e, p.problem(hardAt, "hard has no value beside it", "write for example 5 hard")
	}
	return e, nil
}

// main reads the value, if there is one.
func (p *parser) main(e *Expr) error {
	if slices.ContainsFunc([]string{"hash", "soft", "hard", ""}, p.ahead) {
		return nil
	}
	if e.Disabled = p.keyword("disabled"); e.Disabled {
		return nil
	}
	v, err := p.value(1)
	e.Disk = &v
	return err
}

func (p *parser) suffix(e *Expr) error {
	at := p.space()
	switch {
	case p.keyword("hash"):
		return p.hash(e, at, p.rest)
	case p.keyword("hard"):
		if e.Hard || e.Soft != nil {
			return p.problem(at, "more than one soft or hard", "give one of them, once")
		}
		e.Hard = true
	case p.keyword("soft"):
		if e.Hard || e.Soft != nil {
			return p.problem(at, "more than one soft or hard", "give one of them, once")
		}
		v, err := p.value(1)
		e.Soft = &v
		return err
	default:
		hint := "only hash, soft or hard may follow the value"
		if e.Hash != "" {
			hint += "; " + quoteHint
		}
		return p.problem(at, strconv.Quote(clip(p.text[at:]))+" is not understood here", hint)
	}
	return nil
}

// hash reads what comes after the word hash, by the way that its place asks for.
func (p *parser) hash(e *Expr, at int, plain func() string) error {
	if e.Hash != "" {
		return p.problem(at, "more than one hash", "give it once; "+quoteHint)
	}
	from := p.space()
	var err error
	if p.peek() == '"' {
		e.Hash, err = p.quoted()
	} else {
		e.Hash = plain()
	}
	switch bad := strings.IndexFunc(e.Hash, unicode.IsControl); {
	case err != nil:
		return err
	case strings.TrimSpace(e.Hash) == "":
		return p.problem(from, "hash has no text after it",
			"name the group, for example hash start-stop")
	case len(e.Hash) > maxHash:
		return p.problem(from, fmt.Sprintf("the hash is longer than %d bytes", maxHash),
			"any short name of the group will do")
	case bad >= 0:
		return p.problem(from, "the hash has a control character",
			"use letters, digits, spaces and signs")
	}
	return nil
}

func (p *parser) quoted() (string, error) {
	from := p.at
	var b strings.Builder
	for p.at++; p.at < len(p.text); p.at++ {
		switch c := p.text[p.at]; {
		case c == '"':
			p.at++
			if p.at < len(p.text) && !isSpace(p.text[p.at]) {
				return "", p.problem(p.at, "the quoted hash goes on after its quote",
					"put the whole hash in one pair of quotes, and a space after it")
			}
			return b.String(), nil
		case c == '\\' && p.at+1 < len(p.text) && (p.text[p.at+1] == '"' || p.text[p.at+1] == '\\'):
			p.at++
			b.WriteByte(p.text[p.at])
		default:
			b.WriteByte(c)
		}
	}
	return "", p.problem(from, "the quote is never closed", `end the hash with "`)
}

func (p *parser) value(depth int) (Value, error) {
	at := p.space()
	p.values++
	switch c := p.peek(); {
	case at == len(p.text):
		return Value{}, p.problem(at, "a value is missing", example)
	case p.values > p.most:
		return Value{}, p.problem(at, fmt.Sprintf("has more than %d values", p.most),
			"one count and one duration say most of what can be said")
	case depth > maxDepth:
		return Value{}, p.problem(at, fmt.Sprintf("is nested deeper than %d", maxDepth),
			"flatten it: max(max(a, b), c) is max(a, b, c)")
	case '0' <= c && c <= '9':
		return p.number()
	case c == '-' || c == '+':
		return Value{}, p.problem(at, "a number has a sign",
			"a count is 0, 1, 2 and so on, a duration is for example 24h; forever keeps all")
	}
	name := p.name()
	switch kind := valueNames[name]; kind {
	case Min, Max:
		return p.call(kind, depth)
	case 0:
		return Value{}, p.unknown(at, name)
	case Forever:
		if open := p.space(); name == "all" && p.peek() == '(' {
			return Value{}, p.problem(open, "all(...) is not a function",
				"min(...) keeps what all of its values keep")
		}
		return Value{Kind: kind}, nil
	default:
		return Value{Kind: kind}, nil
	}
}

var valueNames = map[string]Kind{
	"forever": Forever, "all": Forever, "context": Context, "parent": Parent, "system": System,
	"min": Min, "max": Max,
}

// number reads a duration if there is a unit after the digits, or a count.
func (p *parser) number() (Value, error) {
	d, n, err := duration.Prefix(p.text[p.at:])
	if err == nil {
		p.at += n
		return Value{Kind: Duration, Duration: d}, nil
	}
	from := p.at
	end := from
	for end < len(p.text) && '0' <= p.text[end] && p.text[end] <= '9' {
		end++
	}
	if end < len(p.text) && !isSpace(p.text[end]) && p.text[end] != ',' && p.text[end] != ')' {
		return Value{}, p.notCount(from, end, err)
	}
	count, err := strconv.Atoi(p.text[from:end])
	if err != nil || count > maxCount {
		return Value{}, p.problem(from, "the count is too large", "write forever to keep all")
	}
	p.at = end
	return Value{Kind: Count, Count: count}, nil
}

// notCount tells what is wrong with digits that something stands after.
func (p *parser) notCount(from, end int, err error) error {
	if p.text[end] == '.' && strings.Contains(err.Error(), "has no unit") {
		return p.problem(from, "a count is a whole number",
			"for a duration write the unit too, for example 2.5h")
	}
	if e, ok := errors.AsType[*duration.Error](err); ok {
		return p.problem(from+e.Offset, e.Problem, e.Hint)
	}
	return p.problem(end, "the number is not understood", example)
}

// call reads the arguments of min or max.
func (p *parser) call(kind Kind, depth int) (Value, error) {
	v := Value{Kind: kind}
	open := p.space()
	if p.peek() != '(' {
		return v, p.problem(open, kind.String()+" has no bracket after it",
			"write for example "+kind.String()+"(24h, 5)")
	}
	p.at++
	if p.space(); p.peek() == ')' {
		return v, p.problem(p.at, kind.String()+"() has no values",
			"write for example "+kind.String()+"(24h, 5)")
	}
	for {
		arg, err := p.value(depth + 1)
		if err != nil {
			return v, err
		}
		v.Args = append(v.Args, arg)
		switch at := p.space(); p.peek() {
		case ',':
			p.at++
		case ')':
			p.at++
			if p.at < len(p.text) && !isSpace(p.text[p.at]) && p.text[p.at] != ',' &&
				p.text[p.at] != ')' {
				return v, p.problem(p.at,
					strconv.Quote(clip(p.text[p.at:]))+" clings to the bracket",
					"only a space, a comma or a bracket may follow")
			}
			return v, nil
		default:
			return v, p.problem(at, "the bracket of "+kind.String()+" is not closed",
				"separate values by commas and end with )")
		}
	}
}

func (p *parser) unknown(at int, name string) error {
	hint := example
	switch name {
	case "any":
		hint = "max(...) keeps what any of its values keeps"
	case "disabled":
		return p.problem(at, "disabled is no value among others",
			"it stands alone, or before hash, soft or hard; 0 keeps none")
	case "hash", "soft", "hard":
		return p.problem(at, name+" cannot stand here",
			"soft, hard and hash come once, outside of brackets")
	case "unlimited", "infinite", "infinity", "always":
		hint = "write forever"
	case "none", "never", "off", "no":
		hint = "write 0 to keep none, or disabled to store as little as can be"
	case "default", "inherit":
		hint = "write parent or system"
	case "":
		name = clip(p.text[at:])
	}
	return p.problem(at, strconv.Quote(clip(name))+" is no retention value", hint)
}

// WithHash is the expression with a hash that is given beside it.
func (e Expr) WithHash(hash string) (Expr, error) {
	switch {
	case !utf8.ValidString(hash) || strings.IndexFunc(hash, unicode.IsControl) >= 0:
		return e, errors.New(
			"hash: it has a control character, or is not UTF-8: use letters, digits, spaces and signs")
	case strings.TrimSpace(hash) == "":
		return e, errors.New("hash: it is blank: name the group, for example start-stop")
	case len(hash) > maxHash:
		return e, fmt.Errorf(
			"hash: it is longer than %d bytes: any short name of the group will do", maxHash)
	}
	e.Hash = hash
	return e, nil
}
