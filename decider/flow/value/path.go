package value

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/droverhq/drover/decider/flow/syntax"
)

// Kind is what one step of a path does.
type Kind int

const (
	Key    Kind = iota + 1 // an entry of a map
	Index                  // an element of a list, from 0
	Append                 // the place after the last element; for Set only
)

// Step is one step of a path.
type Step struct {
	Kind  Kind
	Key   string
	Index int
}

// Path leads from a map of variables, or from a value, to a part of it: a.b['c'][0].
type Path []Step

// MaxPath is how many steps a path may have.
const MaxPath = 64

// wrong is an error about a place in a path.
func wrong(text string, at int, problem, hint string) error {
	return syntax.New("path", text, at, problem, hint)
}

// ParsePath reads a path that begins with a name: names of letters, digits, _ and - with dots
// between them, ['any text'] or ["any text"] for other keys, [0] for an element, [] or [-1] for the
// place after the last one. There is no white space outside quotes. Errors are of type
// *syntax.Error.
func ParsePath(text string) (Path, error) {
	return parsePath(text, false)
}

// ParseRelative reads a path that may also begin with a bracket, for a part of a value that has no
// name.
func ParseRelative(text string) (Path, error) {
	return parsePath(text, true)
}

func parsePath(text string, relative bool) (Path, error) {
	var p Path
	if !utf8.ValidString(text) {
		return nil, wrong(text, 0, "it is not valid UTF-8", "")
	}
	for at := 0; at < len(text) || len(p) == 0; {
		if len(p) == MaxPath {
			return nil, wrong(text, at, "it has too many steps",
				"take a part of the value in a step before")
		}
		step, end, err := parseStep(text, at, len(p) == 0, relative)
		if err != nil {
			return nil, err
		}
		p, at = append(p, step), end
	}
	return p, nil
}

func parseStep(text string, at int, first, relative bool) (Step, int, error) {
	if at < len(text) && text[at] == '[' && (!first || relative) {
		return parseBracket(text, at)
	}
	if !first {
		if text[at] != '.' {
			return Step{}, 0, wrong(text, at, syntax.Quote(text[at:])+" does not continue a path",
				pathHint(text[at]))
		}
		at++
	}
	end := at
	for end < len(text) && nameByte(text[end]) {
		end++
	}
	if end > at {
		return Step{Kind: Key, Key: text[at:end]}, end, nil
	}
	if at == len(text) {
		return Step{}, 0, wrong(text, at, "a name is missing",
			"names have letters, digits, _ and -")
	}
	return Step{}, 0, wrong(text, at, "a name cannot begin with "+syntax.Quote(text[at:at+1]),
		pathHint(text[at]))
}

func pathHint(c byte) string {
	if syntax.Space(c) {
		return "write it without white space"
	}
	return "names have letters, digits, _ and -; put other keys in brackets and quotes, as in a['other key']"
}

func nameByte(c byte) bool {
	return 'a' <= c|0x20 && c|0x20 <= 'z' || isDigit(c) || c == '_' || c == '-'
}

func parseBracket(text string, at int) (Step, int, error) {
	from := at + 1
	if from < len(text) && (text[from] == '\'' || text[from] == '"') {
		key, end, err := QuotedKey(text, from)
		return Step{Kind: Key, Key: key}, end, err
	}
	length := strings.IndexByte(text[from:], ']')
	if length < 0 {
		return Step{}, 0, wrong(text, at, "the bracket is not closed", "write ] after the index")
	}
	inside, end := text[from:from+length], from+length+1
	if inside == "" || inside == "-1" {
		return Step{Kind: Append}, end, nil
	}
	n, err := strconv.Atoi(inside)
	switch {
	case err != nil:
		return Step{}, 0, wrong(text, from, syntax.Quote(inside)+" is no index",
			"write a number, or a key in quotes, as in a['key']")
	case n < 0:
		return Step{}, 0, wrong(text, from, "the index is negative",
			"only -1 is allowed, for the place after the last element; take others with the transform slice")
	}
	return Step{Kind: Index, Index: n}, end, nil
}

// QuotedKey reads the key in quotes that begins at from, up to the bracket that closes it, and
// returns where the text goes on after that.
func QuotedKey(text string, from int) (key string, end int, err error) {
	quote := text[from]
	var b strings.Builder
	for i := from + 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text) && (text[i+1] == quote || text[i+1] == '\\'):
			i++
			b.WriteByte(text[i])
		case c != quote:
			b.WriteByte(c)
		case i+1 == len(text) || text[i+1] != ']':
			return "", 0, wrong(text, i+1, "the bracket is not closed", "write ] after the key")
		default:
			return b.String(), i + 2, nil
		}
	}
	return "", 0, wrong(text, from, "the quote is not closed", "write the same quote after the key")
}

// String writes the path so that ParseRelative, and ParsePath if it begins with a name, reads the
// same one.
func (p Path) String() string {
	var b strings.Builder
	for i, s := range p {
		switch {
		case s.Kind == Index:
			b.WriteString("[" + strconv.Itoa(s.Index) + "]")
		case s.Kind == Append:
			b.WriteString("[]")
		case s.Key == "" || strings.ContainsFunc(s.Key, func(r rune) bool { return r > 0x7f || !nameByte(byte(r)) }):
			b.WriteString("['" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s.Key) + "']")
		default:
			if i > 0 {
				b.WriteByte('.')
			}
			b.WriteString(s.Key)
		}
	}
	return b.String()
}
