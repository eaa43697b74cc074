package query

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

type tokenKind uint8

const (
	endToken tokenKind = iota
	wordToken
	textToken // in quotes
	nameToken // in backticks
	signToken // an operator, a bracket or a comma
	badToken
)

// token is a piece of a query, from one rune to before another.
type token struct {
	kind       tokenKind
	text       string // without its quotes
	start, end int
	err        *Error // of badToken
}

// is tells whether a token is a keyword or a sign.
func (t token) is(word string) bool {
	return t.kind == wordToken && strings.EqualFold(t.text, word) ||
		t.kind == signToken && t.text == word
}

// tokens reads a query up to its end, or up to the first thing that cannot be read.
func tokens(text []rune) []token {
	var all []token
	for at := 0; ; {
		for at < len(text) && unicode.IsSpace(text[at]) {
			at++
		}
		t := next(text, at)
		all = append(all, t)
		if t.kind == endToken || t.kind == badToken {
			return all
		}
		at = t.end
	}
}

func next(text []rune, at int) token {
	end := at
	for end < len(text) && inWord(text[end]) {
		end++
	}
	if end > at {
		return token{kind: wordToken, text: string(text[at:end]), start: at, end: end}
	}
	if at == len(text) {
		return token{start: at, end: at}
	}
	switch c := text[at]; c {
	case '\'', '"', '`':
		return quoted(text, at)
	case '(', ')', ',':
		return token{kind: signToken, text: string(c), start: at, end: at + 1}
	}
	for end < len(text) && strings.ContainsRune("=!<>", text[end]) {
		end++
	}
	if end > at {
		return token{kind: signToken, text: string(text[at:end]), start: at, end: end}
	}
	return bad(text, at, at+1,
		"a field, an operator or a value; a text with such signs stands in quotes")
}

// inWord tells whether a rune may stand in a name, a keyword or a value without quotes.
func inWord(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_-.:/+@#$", r)
}

// quoted reads a text in quotes. The quote itself stands in it twice or after a backslash.
func quoted(text []rune, at int) token {
	quote, b := text[at], strings.Builder{}
	for i := at + 1; i < len(text); i++ {
		switch {
		case text[i] == quote && i+1 < len(text) && text[i+1] == quote:
			b.WriteRune(quote)
			i++
		case text[i] == quote:
			kind := textToken
			if quote == '`' {
				kind = nameToken
			}
			return token{kind: kind, text: b.String(), start: at, end: i + 1}
		case text[i] == '\\':
			r, size := escaped(text[i+1:])
			if size == 0 {
				return bad(text, i, min(i+2, len(text)),
					`an escape: \\, \', \", \n, \t, \r or \u and four hexadecimal digits`)
			}
			b.WriteRune(r)
			i += size
		default:
			b.WriteRune(text[i])
		}
	}
	return bad(text, at, at+1, "another "+string(quote)+" at the end of the text")
}

// escaped reads what comes after a backslash. The size is 0 if it is no escape.
func escaped(text []rune) (r rune, size int) {
	if len(text) == 0 {
		return 0, 0
	}
	switch text[0] {
	case '\\', '\'', '"', '`':
		return text[0], 1
	case 'n':
		return '\n', 1
	case 't':
		return '\t', 1
	case 'r':
		return '\r', 1
	case 'u':
		if len(text) < 5 {
			return 0, 0
		}
		n, err := strconv.ParseUint(string(text[1:5]), 16, 16)
		if r := rune(n); err == nil && !(0xD800 <= r && r < 0xE000) {
			return r, 5
		}
	}
	return 0, 0
}

func bad(text []rune, start, end int, want string) token {
	t := token{kind: badToken, text: string(text[start:end]), start: start, end: end}
	t.err = refuse(text, t, "", want, "")
	return t
}

// keywords stand where a value, a field or an operator is missing.
var keywords = []string{
	"AND", "OR", "NOT", "IN", "BETWEEN", "STARTS_WITH", "CONTAINS", "IS", "NULL",
}

func isKeyword(t token) bool { return t.kind == wordToken && slices.ContainsFunc(keywords, t.is) }

// isName tells whether a word is the name of a field wherever it stands.
func isName(t token) bool {
	return beginsName(t.text) && !isKeyword(t) && !t.is("GROUP") && !t.is("ORDER") && !t.is("LIMIT")
}

// beginsName tells whether a word begins as names do.
func beginsName(word string) bool {
	r, _ := utf8.DecodeRuneInString(word)
	return unicode.IsLetter(r) || r == '_'
}
