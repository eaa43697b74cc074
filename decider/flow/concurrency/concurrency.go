// Package concurrency reads how many runs of a loop may go on at once: 5, all, 50%, all - 10,
// max(1, min(50%, -10)).
//
//	number        so many
//	all           as many as there are targets; "unlimited" means the same
//	p%            that part of them, with up to four digits after the point
//	-x            all but x, and none if x is more than there are
//	a + b, a - b  from left to right
//	min(a, b …)   the smallest
//	max(a, b …)   the largest
//
// Fractions are kept until the end and then dropped, so 50% + 50% of three targets is three. The
// result has to be at least one: 0, 10% of three and -10 of ten targets are errors before anything
// runs, and max(1, …) is the way to say otherwise.
//
// The package is pure. Its arithmetic cannot overflow: numbers, percentages and the length of an
// expression are bounded.
package concurrency

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/droverhq/drover/decider/flow/syntax"
)

// Bounds, which keep every sum of parts within an int64.
const (
	// MaxTargets is the largest number of targets that At takes and the largest number that may be
	// written.
	MaxTargets = 1_000_000

	maxPercent = 1000
	maxTerms   = 200
	maxDepth   = 32
)

// one is 1 in the unit that is computed in, a millionth.
const one = 1_000_000

const what = "concurrency"

// Expr is a checked expression.
type Expr struct {
	text string
	root node
}

// Parse reads an expression. Names and units have no case, and white space does not matter. Errors
// are of type *syntax.Error.
func Parse(text string) (*Expr, error) {
	p := parser{Cursor: syntax.Cursor{Text: text}}
	root, err := p.sum(0)
	if err != nil {
		return nil, err
	}
	if p.SkipSpace(); p.At < len(text) {
		return nil, p.problem(syntax.Quote(p.Rest())+" does not continue the expression",
			"join two parts with + or -")
	}
	return &Expr{text: text, root: root}, nil
}

// At returns how many of n targets may run at once, 1 or more; n is from 1 to MaxTargets.
func (e *Expr) At(n int) (int, error) {
	if n < 1 || n > MaxTargets {
		return 0, fmt.Errorf("concurrency %q: asked for %d targets, want 1 to %d",
			syntax.Clip(e.text), n, MaxTargets)
	}
	got := floor(e.root.of(int64(n)))
	if got < 1 {
		return 0, fmt.Errorf(
			"concurrency %q is %d for %d targets, want at least 1: write max(1, …) to run one at a time then",
			syntax.Clip(e.text), got, n)
	}
	return int(got), nil
}

func floor(x int64) int64 {
	if x < 0 {
		return (x - one + 1) / one
	}
	return x / one
}

// node is a part of an expression; of is in millionths.
type node struct {
	op    op
	value int64 // a number in millionths, or millionths of one percent
	parts []node
}

type op int

const (
	number op = iota + 1
	percent
	all
	allBut
	add
	subtract
	least
	most
)

func (n node) of(targets int64) int64 {
	switch n.op {
	case number:
		return n.value
	case percent:
		return n.value / 100 * targets
	case all:
		return targets * one
	case allBut:
		return max(targets*one-n.parts[0].of(targets), 0)
	}
	got := n.parts[0].of(targets)
	for _, p := range n.parts[1:] {
		switch x := p.of(targets); n.op {
		case add:
			got += x
		case subtract:
			got -= x
		case least:
			got = min(got, x)
		case most:
			got = max(got, x)
		}
	}
	return got
}

type parser struct {
	syntax.Cursor
	terms int
}

const example = "write a number, all, 50%, all - 10, or max(1, min(50%, -10))"

func (p *parser) problem(problem, hint string) error {
	return syntax.New(what, p.Text, p.At, problem, hint)
}

func (p *parser) sum(depth int) (node, error) {
	left, err := p.term(depth)
	for err == nil {
		var right node
		switch {
		case p.Take('+'):
			right, err = p.term(depth)
			left = node{op: add, parts: []node{left, right}}
		case p.Take('-'):
			right, err = p.term(depth)
			left = node{op: subtract, parts: []node{left, right}}
		default:
			return left, nil
		}
	}
	return node{}, err
}

func (p *parser) term(depth int) (node, error) {
	if p.terms++; p.terms > maxTerms || depth > maxDepth {
		return node{}, p.problem("the expression is too long", "write a simpler one")
	}
	if p.Take('-') {
		inner, err := p.term(depth + 1)
		return node{op: allBut, parts: []node{inner}}, err
	}
	p.SkipSpace()
	from := p.At
	switch word := strings.ToLower(p.While(letter)); word {
	case "":
		return p.number()
	case "all", "unlimited":
		return node{op: all}, nil
	case "min":
		return p.list(least, depth)
	case "max":
		return p.list(most, depth)
	default:
		p.At = from
		return node{}, p.problem(syntax.Quote(word)+" is no word for a concurrency", example)
	}
}

func (p *parser) list(op op, depth int) (node, error) {
	if !p.Take('(') {
		return node{}, p.problem("the bracket after min or max is missing", example)
	}
	n := node{op: op}
	for {
		part, err := p.sum(depth + 1)
		if err != nil {
			return node{}, err
		}
		n.parts = append(n.parts, part)
		switch {
		case p.Take(','):
		case p.Take(')'):
			return n, nil
		default:
			return node{}, p.problem("a comma or the closing bracket is missing", example)
		}
	}
}

func (p *parser) number() (node, error) {
	from := p.At
	digits := p.While(func(c byte) bool { return '0' <= c && c <= '9' || c == '.' })
	back := func(problem string) (node, error) {
		p.At = from
		return node{}, p.problem(problem, example)
	}
	if digits == "" {
		if p.At == len(p.Text) {
			return back("a part is missing")
		}
		return back(syntax.Quote(p.Rest()) + " is no number")
	}
	isPercent := p.Take('%')
	whole, fraction, point := strings.Cut(digits, ".")
	switch {
	case point && !isPercent:
		return back("a number has no fraction unless it is a percentage")
	case point && (fraction == "" || len(fraction) > 4 || strings.Contains(fraction, ".")) || whole == "":
		return back(syntax.Quote(digits) +
			" is no percentage with up to four digits after the point")
	}
	limit := int64(MaxTargets)
	if isPercent {
		limit = maxPercent
	}
	value, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || value > limit {
		return back(fmt.Sprintf("the number is larger than %d", limit))
	}
	if !isPercent {
		return node{op: number, value: value * one}, nil
	}
	part, err := strconv.ParseInt((fraction + "000000")[:6], 10, 64)
	if err != nil {
		return back(syntax.Quote(digits) + " is no percentage")
	}
	return node{op: percent, value: value*one + part}, nil
}

func letter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
