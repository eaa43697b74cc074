package retention

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// word goes to the next white space that ${...} does not enclose.
func (p *parser) word() string {
	from := p.at
	for p.at < len(p.text) && !isSpace(p.text[p.at]) {
		p.at = p.step()
	}
	return p.text[from:p.at]
}

// rest goes to the end, or to the word soft or hard.
func (p *parser) rest() string {
	from, end := p.at, p.at
	for !p.ahead("soft") && !p.ahead("hard") && p.at < len(p.text) {
		p.word()
		end = p.at
		p.space()
	}
	return p.text[from:end]
}

// step returns where the next character, or the next ${...}, ends.
func (p *parser) step() int {
	if rest := p.text[p.at:]; strings.HasPrefix(rest, "${") {
		if n := strings.IndexByte(rest, '}'); n > 0 {
			return p.at + n + 1
		}
	}
	return p.at + 1
}

// name takes a run of letters, digits, dashes and underscores, in lower case.
func (p *parser) name() string {
	from := p.at
	for p.at < len(p.text) {
		if c := rune(p.text[p.at]); c >= utf8.RuneSelf ||
			c != '-' && c != '_' && !unicode.IsLetter(c) && !unicode.IsDigit(c) {
			break
		}
		p.at++
	}
	return strings.ToLower(p.text[from:p.at])
}

// ahead tells whether the word comes next; the empty word is the end of the text.
func (p *parser) ahead(word string) bool {
	at := p.space()
	end := at + len(word)
	switch {
	case word == "":
		return at == len(p.text)
	case end > len(p.text) || !strings.EqualFold(p.text[at:end], word):
		return false
	}
	return end == len(p.text) || isSpace(p.text[end])
}

// keyword takes the word if it comes next.
func (p *parser) keyword(word string) bool {
	if !p.ahead(word) {
		return false
	}
	p.at += len(word)
	return true
}

func (p *parser) space() int {
	for p.at < len(p.text) && isSpace(p.text[p.at]) {
		p.at++
	}
	return p.at
}

func (p *parser) peek() byte {
	if p.at == len(p.text) {
		return 0
	}
	return p.text[p.at]
}

func (p *parser) problem(at int, what, hint string) error {
	return &Error{Text: clip(p.text), Offset: at, Problem: what, Hint: hint}
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// clip keeps messages short whatever the input is.
func clip(s string) string {
	const most = 60
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "..."
}
