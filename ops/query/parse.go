package query

import (
	"strings"
	"time"
	"unicode/utf8"
)

// The limits of a query.
const (
	MaxText  = 64 << 10 // bytes
	maxDepth = 100      // of brackets and NOTs inside each other
)

// Parse reads a query; now is what now means in it. An empty text asks for all rows. Errors are of
// type *Error.
func Parse(text string, now time.Time) (*Query, error) {
	p := &parser{text: []rune(text), now: now}
	if len(text) > MaxText {
		return nil, bad(p.text, 0, 1, "at most 64 KiB of text").err
	}
	column := 0
	for i, r := range text {
		if r == utf8.RuneError && !strings.HasPrefix(text[i:], string(r)) {
			return nil, bad(p.text, column, column+1, "text in UTF-8").err
		}
		column++
	}
	if all := words(p.text); all != nil {
		where, err := p.wordConditions(all)
		if err != nil {
			return nil, err
		}
		return &Query{Where: where}, nil
	}
	p.tokens = tokens(p.text)
	return p.query()
}

// parser goes through the tokens of a query. The last one is endToken or badToken, and stays.
type parser struct {
	text   []rune
	now    time.Time
	tokens []token
	depth  int
}

func (p *parser) here() token { return p.tokens[0] }

func (p *parser) after() token { return p.tokens[min(1, len(p.tokens)-1)] }

// take returns the token here and goes on.
func (p *parser) take() token {
	t := p.tokens[0]
	if len(p.tokens) > 1 {
		p.tokens = p.tokens[1:]
	}
	return t
}

// skip goes on if the next token is a keyword or a sign.
func (p *parser) skip(word string) bool {
	if !p.here().is(word) {
		return false
	}
	p.take()
	return true
}

// refuse says what should stand here.
func (p *parser) refuse(field, want string, words ...string) error {
	return refuse(p.text, p.here(), field, want, nearest(p.here(), words))
}

// atClause tells whether no condition follows.
func (p *parser) atClause() bool {
	t := p.here()
	return t.kind == endToken ||
		(t.is("GROUP") || t.is("ORDER") || t.is("LIMIT")) && !isOperator(p.after())
}

// or reads conditions down to the end, a clause or a closing bracket.
func (p *parser) or() (Expr, error) {
	var terms []Expr
	for {
		term, err := p.and()
		if err != nil {
			return nil, err
		}
		if terms = append(terms, term); !p.skip("OR") {
			return flat[Or](terms), nil
		}
	}
}

func (p *parser) and() (Expr, error) {
	var terms []Expr
	for {
		term, err := p.not()
		if err != nil {
			return nil, err
		}
		if terms = append(terms, term); !p.skip("AND") {
			return flat[And](terms), nil
		}
	}
}

func (p *parser) not() (Expr, error) {
	not, bracket := p.here().is("NOT"), p.here().is("(")
	if !not && !bracket {
		return p.condition()
	}
	if p.depth == maxDepth {
		return nil, p.refuse("", "at most 100 brackets and NOTs inside each other")
	}
	p.depth++
	defer func() { p.depth-- }()
	p.take()
	if not {
		term, err := p.not()
		if err != nil {
			return nil, err
		}
		return negated(term), nil
	}
	expr, err := p.or()
	if err == nil && !p.skip(")") {
		err = p.refuse("", "AND, OR or a bracket )", "AND", "OR")
	}
	return expr, err
}

// flat joins terms, one of which may be such a list itself.
func flat[T interface {
	~[]Expr
	Expr
}](terms []Expr) Expr {
	var all T
	for _, term := range terms {
		if inner, ok := term.(T); ok {
			all = append(all, inner...)
		} else {
			all = append(all, term)
		}
	}
	if len(all) == 1 {
		return all[0]
	}
	return all
}

// negated is NOT: it holds where the fields are there and the condition does not hold.
func negated(e Expr) Expr {
	switch e := e.(type) {
	case And:
		return flat[Or](negatedEach(e))
	case Or:
		return flat[And](negatedEach(e))
	case *Condition:
		c := *e
		switch c.Op {
		case Less:
			c.Op = GreaterEqual
		case LessEqual:
			c.Op = Greater
		case Greater:
			c.Op = LessEqual
		case GreaterEqual:
			c.Op = Less
		default:
			c.Not = !c.Not
		}
		return &c
	}
	return e
}

func negatedEach(terms []Expr) []Expr {
	var all []Expr
	for _, term := range terms {
		all = append(all, negated(term))
	}
	return all
}
