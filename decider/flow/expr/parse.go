package expr

import (
	"slices"
	"strings"

	"github.com/droverhq/drover/decider/flow/syntax"
	"github.com/droverhq/drover/decider/flow/value"
)

// Bounds of what may be written.
const (
	maxNesting   = 100
	maxOperators = 1000
)

// parseLet is a precedence parser: each level of binary takes all operators that bind at least as
// tight as its own.
func parseLet(text string, onError OnError) (node, error) {
	if len(text) > MaxText {
		return nil, syntax.New(whatLet, text, 0, "the text is too long",
			"put it under the key value instead")
	}
	tokens, err := lex(text)
	if err != nil {
		return nil, err
	}
	p := &parser{text: text, tokens: tokens, onError: onError}
	if p.peek().kind == tokenEnd {
		return nil, p.problem("the value is missing", `write "" for the empty text`)
	}
	n, err := p.ternary(0)
	if err != nil {
		return nil, err
	}
	if p.peek().kind != tokenEnd {
		return nil, p.problem(p.describe()+" does not belong here", quoteHint)
	}
	return n, nil
}

type parser struct {
	text      string
	tokens    []token
	at        int
	operators int
	onError   OnError
}

func (p *parser) peek() token { return p.tokens[p.at] }

func (p *parser) isOp(op string) bool { return p.peek().kind == tokenOperator && p.peek().op == op }

func (p *parser) problem(problem, hint string) error {
	return syntax.New(whatLet, p.text, p.peek().at, problem, hint)
}

// describe names the token that is next.
func (p *parser) describe() string {
	switch t := p.peek(); t.kind {
	case tokenOperator:
		return "the operator " + t.op
	case tokenNot:
		return "the operator !"
	case tokenOpen, tokenClose:
		return "the parenthesis"
	case tokenWord:
		return syntax.Quote(t.word.Text)
	}
	return "the end"
}

func (p *parser) enter(depth int) error {
	if p.operators++; depth > maxNesting || p.operators > maxOperators {
		return p.problem("the expression is too long", "put a part of it into a variable first")
	}
	return nil
}

func (p *parser) ternary(depth int) (node, error) {
	if err := p.enter(depth); err != nil {
		return nil, err
	}
	condition, err := p.binary(1, depth+1)
	if err != nil || !p.isOp("?") {
		return condition, err
	}
	at := p.peek().at
	p.at++
	then, err := p.ternary(depth + 1)
	if err != nil {
		return nil, err
	}
	if !p.isOp(":") {
		return nil, p.problem("the : of a ? is missing",
			"write condition ? value : other; "+quoteHint)
	}
	p.at++
	otherwise, err := p.ternary(depth + 1)
	return &ternary{p.text, at, condition, then, otherwise}, err
}

// binary reads operands with operators between them whose precedence is at least least.
func (p *parser) binary(least, depth int) (node, error) {
	left, err := p.unary(depth)
	for err == nil && p.peek().kind == tokenOperator && precedence[p.peek().op] >= least {
		t := p.peek()
		level := precedence[t.op]
		if err = p.enter(depth); err != nil {
			break
		}
		p.at++
		inner := level + 1
		if t.op == "??" {
			// groups to the right; the result is the same, but fewer errors are made and caught
			inner = level
		}
		var right node
		if right, err = p.binary(inner, depth+1); err != nil {
			break
		}
		left = &binary{p.text, t.at, t.op, left, right}
		if (level == 4 || level == 5) && p.peek().kind == tokenOperator &&
			precedence[p.peek().op] == level {
			return nil, p.problem(p.describe()+" follows another comparison",
				"join comparisons with &&, or put one in parentheses")
		}
	}
	return left, err
}

func (p *parser) unary(depth int) (node, error) {
	if err := p.enter(depth); err != nil {
		return nil, err
	}
	switch t := p.peek(); t.kind {
	case tokenNot:
		p.at++
		inner, err := p.unary(depth + 1)
		return &not{p.text, t.at, inner}, err
	case tokenOpen:
		p.at++
		inner, err := p.ternary(depth + 1)
		if err != nil {
			return nil, err
		}
		if p.peek().kind != tokenClose {
			return nil, p.problem("the parenthesis is not closed",
				"write ) after the group; "+quoteHint)
		}
		p.at++
		return inner, nil
	case tokenWord:
		return p.words()
	}
	if p.at > 0 {
		return nil, p.problem("a value is missing before "+p.describe(), quoteHint)
	}
	return nil, p.problem(p.describe()+" has no value before it", quoteHint)
}

// words reads an operand: one word, or several that are one text. Words in quotes lose them, as in
// 'a b' c; where a quote belongs to the text of one of them, as in say "a", "b", it does in all.
func (p *parser) words() (node, error) {
	first := p.at
	for p.peek().kind == tokenWord {
		p.at++
	}
	if p.at == first+1 {
		return wordNode(whatLet, p.text, p.tokens[first].word, p.onError)
	}
	words := p.tokens[first:p.at]
	asWritten := slices.ContainsFunc(words,
		func(t token) bool { return !t.word.Quoted && strings.ContainsAny(t.word.Text[:1], `"'`) })
	t := &text{source: p.text, at: p.tokens[first].at}
	end := p.tokens[first].word.Start
	for _, tok := range words {
		w := tok.word
		if asWritten {
			w.Text, w.Quoted = p.text[w.Start:w.End], false
		}
		space := literal{p.text[end:w.Start]}
		n, err := textNode(p.text, w, p.onError)
		if err != nil {
			return nil, err
		}
		t.parts = append(t.parts, space, n)
		end = w.End
	}
	return t.simple(), nil
}

// wordNode is a word by itself: a quoted text, a typed literal, or an expression.
func wordNode(what, source string, w syntax.Word, onError OnError) (node, error) {
	n, err := textNode(source, w, onError)
	if err != nil {
		return nil, syntax.Within(what, source, 0, err)
	}
	if l, ok := n.(literal); ok && !w.Quoted {
		return literal{typed(l.value.(string))}, nil
	}
	return n, nil
}

func textNode(source string, w syntax.Word, onError OnError) (node, error) {
	if w.Quoted {
		return literal{w.Text}, nil
	}
	n, err := parseTemplate(w.Text, onError)
	if err != nil {
		return nil, syntax.Within(whatLet, source, w.Start, err)
	}
	if t, ok := n.(*template); ok { // so that errors of evaluation point into the whole text
		t.text = source
		for i := range t.parts {
			t.parts[i].offset += w.Start
		}
	}
	return n, nil
}

// typed gives a bare word its type, if nothing of what was written is lost by that.
func typed(word string) any {
	switch word {
	case "true":
		return true
	case "false":
		return false
	case "null":
		return nil
	}
	if n, ok := value.Numeric(word); ok {
		if back, err := value.Text(n); err == nil && back == word {
			return n
		}
	}
	return word
}
