package model

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/droverhq/drover/decider/flow/syntax"
	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	yamlparser "github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/scanner"
	"github.com/goccy/go-yaml/token"
)

// Bounds of a definition.
const (
	MaxSize  = 1 << 20 // bytes of a text
	MaxSteps = 1000    // with nested ones and handlers
	MaxNest  = 20      // blocks, nested workflows and handlers in each other

	maxTokens = 25_000  // the YAML parser takes quadratic time in the keys of a map
	maxDepth  = 64      // maps and lists in each other
	maxNodes  = 50_000  // values when aliases are written out
	maxBytes  = 4 << 20 // bytes when aliases are written out
)

// readYAML returns the one document of a text. Errors are of type *fault.
func readYAML(src string) (*node, error) {
	if err := checkBytes(src); err != nil {
		return nil, err
	}
	file, err := parseYAML(src)
	for text, again := src, 0; err != nil; file, err = parseYAML(text) {
		var ok bool
		if text, ok = requoted(text, err); !ok || again == maxAgain {
			return nil, err
		}
		again++
	}
	if len(file.Docs) == 0 || file.Docs[0].Body == nil {
		return nil, &fault{
			at: Position{1, 1}, problem: "the definition is empty", hint: "write at least steps",
		}
	}
	t := tree{anchors: map[string]*node{}, lines: strings.Split(src, "\n")}
	return t.read(file.Docs[0].Body)
}

var stepLine = regexp.MustCompile(
	`^((?:\s|- )*(?:step|shorthand|s):\s+)([^\s"'|>&*!%@{\[#\x60].*)$`)

const (
	maxRequote = 16 << 10 // bytes of a text that is read again for each such line
	maxAgain   = 50       // times
)

// requoted puts quotes around the value of step if a colon in it is why the text is no YAML, as in
//
//	step: fail message denied: ${reason}
//
// It is what authors write, and it can be meant in one way only. Lines are touched only where the
// parser stumbled over them, because the same line within a block text means itself.
func requoted(src string, err error) (string, bool) {
	f, ok := errors.AsType[*fault](err)
	if !ok || !f.colon || len(src) > maxRequote {
		return "", false
	}
	lines := strings.SplitAfter(src, "\n")
	if f.at.Line > len(lines) {
		return "", false
	}
	line := strings.TrimRight(lines[f.at.Line-1], "\r\n")
	m := stepLine.FindStringSubmatch(line)
	if m == nil || !strings.Contains(m[2], ": ") {
		return "", false
	}
	value, comment := m[2], ""
	if at := strings.Index(value, " #"); at >= 0 {
		value, comment = value[:at], value[at:]
	}
	quoted := "'" + strings.ReplaceAll(strings.TrimRight(value, " \t"), "'", "''") + "'"
	lines[f.at.Line-1] = m[1] + quoted + comment + lines[f.at.Line-1][len(line):]
	return strings.Join(lines, ""), true
}

func checkBytes(src string) error {
	if len(src) > MaxSize {
		return &fault{
			at: Position{1, 1}, problem: fmt.Sprintf("is longer than %d bytes", MaxSize),
			hint: "move parts into flows or step types of their own, and data into inputs",
		}
	}
	line, column := 1, 1
	for i := 0; i < len(src); {
		c, size := utf8.DecodeRuneInString(src[i:])
		at := Position{line, column}
		switch {
		case c == utf8.RuneError && size == 1:
			return &fault{
				at: at, problem: fmt.Sprintf("the byte %#02x is not UTF-8", src[i]),
				hint: "save the file as UTF-8",
			}
		case c < ' ' && c != '\t' && c != '\n' && c != '\r', c == 0x7f, c == 0xfeff:
			return &fault{
				at: at, problem: fmt.Sprintf("the character %U cannot stand in a definition", c),
				hint: "remove it, or write it as an escape within double quotes",
			}
		}
		column++
		if c == '\n' {
			line, column = line+1, 1
		}
		i += size
	}
	return nil
}

// parseYAML bounds the tokens before the parser sees them: it recurses, and a stack that is used up
// cannot be recovered from. Panics of the library are bugs of it; they end here as errors because
// texts come from anywhere.
func parseYAML(src string) (file *ast.File, err error) {
	defer func() {
		if r := recover(); r != nil {
			file, err = nil, &fault{
				at: Position{1, 1}, problem: "the YAML cannot be read",
				hint: "write it in a plainer way",
			}
		}
	}()
	tokens, err := tokenize(src)
	if err != nil {
		return nil, err
	}
	file, err = yamlparser.Parse(tokens, 0)
	if err != nil {
		return nil, syntaxFault(src, err)
	}
	return file, nil
}

// tokenize stops at the first token that is wrong or one too many. The lexer of the library goes on
// to the end.
func tokenize(src string) (token.Tokens, error) {
	var s scanner.Scanner
	s.Init(src)
	var tokens token.Tokens
	for {
		more, err := s.Scan()
		if errors.Is(err, io.EOF) {
			return tokens, checkTokens(tokens)
		}
		tokens.Add(more...)
		if len(tokens) > maxTokens {
			if err := checkTokens(tokens); err != nil {
				return nil, err
			}
			return nil, faulty(tokens[maxTokens],
				"move parts into flows or step types of their own, and data into inputs",
				"has more than %d words and signs of YAML", maxTokens)
		}
		if err != nil {
			return tokens, checkTokens(tokens)
		}
	}
}

// checkTokens follows the nesting that takes no new line: brackets, and runs of signs such as "- -
// -".
func checkTokens(tokens token.Tokens) error {
	depth, run, headers, line := 0, 0, 0, 0
	for i, tk := range tokens {
		if tk.Position.Line != line {
			run, line = 0, tk.Position.Line
		}
		switch tk.Type {
		case token.MappingStartType, token.SequenceStartType:
			depth++
		case token.MappingEndType, token.SequenceEndType:
			depth--
		case token.DocumentHeaderType:
			if headers++; headers > 1 || i > 0 {
				return faulty(tk, "put each definition into a file of its own",
					"a second document begins here")
			}
		case token.DirectiveType:
			return faulty(tk, "leave it out; quote a text that begins with %",
				"YAML directives are not understood")
		}
		switch tk.Type {
		case token.SequenceEntryType,
			token.MappingKeyType,
			token.AnchorType,
			token.TagType,
			token.AliasType:
			run++
		case token.MappingValueType:
		case token.StringType:
			if tk.PreviousType() != token.AnchorType && tk.PreviousType() != token.AliasType {
				run = 0
			}
		default:
			run = 0
		}
		if depth > maxDepth || run > maxDepth {
			return faulty(tk, "move parts into flows or step types of their own",
				"is nested deeper than %d", maxDepth)
		}
	}
	return nil
}

func syntaxFault(src string, err error) error {
	e, ok := errors.AsType[yaml.Error](err)
	if !ok {
		return &fault{at: Position{1, 1}, problem: "is not YAML: " + syntax.Line(err.Error())}
	}
	at := place(e.GetToken())
	message := e.GetMessage()
	hint, colon := "", false
	switch lines := strings.Split(src, "\n"); {
	case strings.Contains(message, "found character '\t'"):
		message, hint = "a tab stands where a word is to begin", "indent by spaces, YAML allows no tabs"
	case strings.Contains(message, "already defined"):
		message, hint = "the key "+quoted(e.GetToken().Value)+" is given twice", "keep one of them"
	case at.Line <= len(lines) && strings.Contains(lines[at.Line-1][:indent(lines[at.Line-1])], "\t"):
		hint = "indent by spaces, YAML allows no tabs"
	case at.Line <= len(lines) && strings.Contains(message, "must be specified") &&
		strings.Contains(lines[at.Line-1], "${"):
		hint = "within { } and [ ], quote texts with ${...}"
	case strings.Contains(message, "mapping value is not allowed") ||
		strings.Contains(message, "value is not allowed in this context"):
		hint, colon = "check the indentation, and quote a text that holds a colon followed by a "+
			"space, or begins with a quote or bracket", true
	default:
		hint = syntaxHint(message)
	}
	return &fault{at: at, problem: "is not YAML: " + syntax.Line(message), hint: hint, colon: colon}
}

// syntaxHint is the way out of what the library says in these words.
func syntaxHint(message string) string {
	for _, known := range [...]struct{ part, hint string }{
		{"reserved character", "quote a text that begins with it"},
		{
			"must be specified",
			"within [ ] and { }, quote texts that hold any of [ ] { } , and close each bracket",
		},
		{"end token", "close each bracket, and quote a text that begins with one"},
		{"character corresponding to", "quote a text that begins with a bracket"},
		{"could not find end character", "close the quote; within '…' a quote is written twice, " +
			"within \"…\" with a backslash before it"},
		{
			"escape character",
			"write a backslash twice within \"…\", or use '…', where it stands for itself",
		},
		{
			"invalid header option",
			"quote a text that begins with | or >, or let it begin in the next line",
		},
		{"invalid key for this map", "a key is one text; quote it if it begins with a bracket"},
		{
			"non-map value",
			"write KEY: VALUE as the lines around it, and quote a text of several lines",
		},
		{
			"unexpected key name",
			"write KEY: VALUE as the lines around it, and quote a text of several lines",
		},
		{"block sequence", "begin the list in a line of its own"},
		{
			"sequence element",
			"write an element before each comma, and quote a text that begins with one",
		},
		{
			"unexpected scalar value",
			"write a value in each place, and quote a text that begins with one of , & * !",
		},
		{"surrogate", "write the character itself"},
		{"end content", "take the line of ... out"},
		{"separator", "put each definition into a file of its own, without lines of --- or ..."},
		{"anchor", "quote a text that begins with &"},
		{"alias", "quote a text that begins with *"},
		{"tag", "quote a text that begins with !"},
	} {
		if strings.Contains(message, known.part) {
			return known.hint
		}
	}
	return ""
}

func indent(line string) int { return len(line) - len(strings.TrimLeft(line, " \t")) }
