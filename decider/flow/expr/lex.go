package expr

import (
	"strings"

	"github.com/droverhq/drover/decider/flow/syntax"
)

const whatLet = "let"

type tokenKind int

const (
	tokenEnd tokenKind = iota
	tokenWord
	tokenOperator
	tokenNot
	tokenOpen
	tokenClose
)

type token struct {
	kind tokenKind
	op   string      // the operator
	word syntax.Word // the word
	at   int
}

const quoteHint = "put the text in quotes if it is not meant to be computed"

// precedence of the operators between two operands, from loose to tight. The two of ? : are handled
// apart.
var precedence = map[string]int{
	"??": 1, "||": 2, "&&": 3, "==": 4, "!=": 4, "<": 5, "<=": 5, ">": 5, ">=": 5, "+": 6, "-": 6,
	"*": 7, "/": 7, "%": 7,
}

func isOperator(w syntax.Word) bool {
	return !w.Quoted && (precedence[w.Text] > 0 || w.Text == "?" || w.Text == ":")
}

// lex splits a let into tokens. Whether a word is an operator, and whether a parenthesis groups,
// depends on whether an operand may begin there.
func lex(text string) ([]token, error) {
	l := lexer{text: text, operand: true}
	for l.at = syntax.SkipSpace(text, 0); l.at < len(text); l.at = syntax.SkipSpace(text, l.at) {
		var err error
		if l.operand {
			err = l.beginOperand()
		} else {
			err = l.afterOperand()
		}
		if err != nil {
			return nil, err
		}
	}
	l.add(token{kind: tokenEnd, at: len(text)})
	return l.tokens, nil
}

type lexer struct {
	text    string
	at      int
	tokens  []token
	operand bool // an operand may begin here
	open    int  // groups that are not closed
}

func (l *lexer) add(t token) { l.tokens = append(l.tokens, t) }

// beginOperand reads what may stand at the start of an operand: ( ! or a word.
func (l *lexer) beginOperand() error {
	switch c := l.text[l.at]; {
	case c == '(':
		l.add(token{kind: tokenOpen, at: l.at})
		l.open++
		l.at++
		return nil
	case c == ')' && l.open > 0:
		l.close() // the parser says that something is missing before it
		return nil
	case c == '!' && l.negates():
		l.add(token{kind: tokenNot, at: l.at})
		l.at++
		return nil
	}
	w, err := l.scan()
	if err != nil {
		return err
	}
	if isOperator(w) {
		l.add(token{kind: tokenOperator, op: w.Text, at: w.Start})
		return nil
	}
	l.add(token{kind: tokenWord, word: w, at: w.Start})
	l.operand = false
	return nil
}

// afterOperand reads an operator, the end of a group, or a word that continues a text.
func (l *lexer) afterOperand() error {
	if l.text[l.at] == ')' && l.open > 0 {
		l.close()
		return nil
	}
	w, err := l.scan()
	if err != nil {
		return err
	}
	if isOperator(w) {
		l.add(token{kind: tokenOperator, op: w.Text, at: w.Start})
		l.operand = true
		return nil
	}
	if l.tokens[len(l.tokens)-1].kind == tokenClose {
		return syntax.New(whatLet, l.text, w.Start, "there is no operator after the parenthesis",
			"write one with white space around it, or "+quoteHint)
	}
	l.add(token{kind: tokenWord, word: w, at: w.Start})
	return nil
}

func (l *lexer) close() {
	l.add(token{kind: tokenClose, at: l.at})
	l.open--
	l.at++
	l.operand = false
}

func (l *lexer) scan() (syntax.Word, error) {
	w, err := syntax.Scan(whatLet, l.text, l.at, l.open)
	l.at = w.End
	return w, err
}

// negates reports whether the ! here is an operator: one before white space, a group, a ${…},
// another ! or true and false. Other words may begin with it, as in !important.
func (l *lexer) negates() bool {
	rest := l.text[l.at+1:]
	for n := 0; n < maxNesting && strings.HasPrefix(rest, "!"); n++ {
		// more would be refused, and looking for them takes long
		rest = rest[1:]
	}
	if rest == "" || syntax.Space(rest[0]) || rest[0] == '(' || strings.HasPrefix(rest, "${") {
		return true
	}
	end := 0
	for end < len(rest) && !syntax.Space(rest[end]) && rest[end] != ')' {
		end++
	}
	return rest[:end] == "true" || rest[:end] == "false"
}
