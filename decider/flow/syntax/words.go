package syntax

import "strings"

// Word is a run of text without white space, or a text in quotes.
type Word struct {
	Text   string // unwrapped if it was quoted, else as written
	Quoted bool
	Start  int // offset of the first byte, a quote if there is one
	End    int // offset after the last byte
}

// Words splits a text at white space. See Scan for what a word is.
func Words(what, text string) ([]Word, error) {
	var words []Word
	for at := SkipSpace(text, 0); at < len(text); at = SkipSpace(text, at) {
		w, err := Scan(what, text, at, 0)
		if err != nil {
			return nil, err
		}
		words = append(words, w)
		at = w.End
	}
	return words, nil
}

// Scan reads the word that begins at offset at, which is neither white space nor the end.
//
// A word that begins with ' or " is quoted if its first closing quote is its last character: white
// space or the end follows. If anything else follows, as in "a", the word goes on to the next white
// space and keeps its quotes: they belong to the text. An apostrophe between two letters closes
// nothing, so 'it's' is the text it's. In double quotes \n, \t, \r, \" and \\ have their usual
// meaning; in single quotes \' and \\ only; a backslash before anything else stands for itself, so
// that patterns may be written as they are. A ${…} belongs to its word whatever is in it. With open
// > 0 parentheses around, a word also ends before a ) that is not opened in the word itself.
func Scan(what, text string, at, open int) (Word, error) {
	end, inner := at, 0
	if c := text[at]; c == '"' || c == '\'' {
		w, whole, err := quoted(what, text, at, open)
		if err != nil || whole {
			return w, err
		}
		end = w.End
	}
	for end < len(text) && !Space(text[end]) {
		switch {
		case strings.HasPrefix(text[end:], "${"):
			end = Braces(text, end)
			continue
		case text[end] == '(':
			inner++
		case text[end] == ')' && inner > 0:
			inner--
		case text[end] == ')' && open > 0:
			return Word{Text: text[at:end], Start: at, End: end}, nil
		}
		end++
	}
	return Word{Text: text[at:end], Start: at, End: end}, nil
}

// Braces returns the offset after the ${…} that begins at offset at. Quotes inside protect a }. One
// that is not closed reaches to the end of the text: to look for a nearer end each time would take
// quadratic time.
func Braces(text string, at int) int {
	quote := byte(0)
	for i := at + 2; i < len(text); i++ {
		switch c := text[i]; {
		case quote != 0 && c == '\\':
			i++
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
		case c == '\'' || c == '"':
			quote = c
		case c == '}':
			return i + 1
		}
	}
	return len(text)
}

// quoted reads up to the first closing quote. It is not the whole word if more follows without
// white space.
func quoted(what, text string, at, open int) (w Word, whole bool, err error) {
	quote := text[at]
	var b strings.Builder
	for i := at + 1; i < len(text); i++ {
		c := text[i]
		if c == '\\' && i+1 < len(text) {
			if r, ok := escape(quote, text[i+1]); ok {
				b.WriteByte(r)
				i++
				continue
			}
		}
		if c == quote && !Apostrophe(text, i) {
			w = Word{Text: b.String(), Quoted: true, Start: at, End: i + 1}
			return w, closes(text, i+1, open), nil
		}
		b.WriteByte(c)
	}
	return Word{}, false, New(what, text, at, "the quote is not closed",
		"close it, or put a text that contains a quote in the other kind of quotes")
}

// Apostrophe reports whether the character at an offset is a ' between two letters or digits, which
// closes no quote.
func Apostrophe(text string, at int) bool {
	return text[at] == '\'' && at > 0 && at+1 < len(text) && letter(text[at-1]) &&
		letter(text[at+1])
}

// letter takes every byte of a rune beyond ASCII for one.
func letter(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c >= 0x80
}

func closes(text string, at, open int) bool {
	for open > 0 && at < len(text) && text[at] == ')' {
		open--
		at++
	}
	return at == len(text) || Space(text[at])
}

func escape(quote, c byte) (byte, bool) {
	if c == quote || c == '\\' {
		return c, true
	}
	if quote == '"' {
		switch c {
		case 'n':
			return '\n', true
		case 't':
			return '\t', true
		case 'r':
			return '\r', true
		}
	}
	return 0, false
}
