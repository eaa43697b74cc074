// Package shorthand takes apart the line of a step, such as
//
//	let integer x = ${y}
//
// by the template of its type: which words stand for which inputs.
//
// Invariants: a [Template] is never changed; [Parse] and [Template.Match] take bounded time whatever
// the texts are. The package is pure. Package model is its only caller.
package shorthand

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/droverhq/drover/decider/flow/syntax"
)

// Template is a parsed shorthand, such as
//
//	[ ${type} ] ${variable} [ " = " ${value...} ]
//
// It is a sequence of variables, literals in double quotes, and optional groups in brackets. A
// group that begins with ?${flag} sets the flag by its presence. [Template.Match] says how a text
// is taken apart by it. A Template is never changed.
type Template struct {
	text    string
	program []op // what Match runs
	vars    []string
	flags   []string
}

type opKind int

const (
	opWord    opKind = iota + 1 // one word into a variable
	opWords                     // one word or more, as few as do
	opRest                      // all the rest
	opLiteral                   //
	opTry                       // go on, or else at to
	opFlag
)

type op struct {
	kind   opKind
	name   string
	words  []string // of a literal
	before bool     // the literal needs white space, or the start, before it
	after  bool     // and white space, or the end, after it
	to     int
}

const (
	maxTemplate = 1000 // bytes
	maxGroups   = 10   // in each other
)

var (
	variableName = regexp.MustCompile(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$`)
	variableInT  = regexp.MustCompile(`^\$\{([^}]*)\}`)
)

// Parse reads a shorthand. Errors say the offset.
func Parse(text string) (*Template, error) {
	if len(text) > maxTemplate {
		return nil, fmt.Errorf("shorthand: longer than %d bytes", maxTemplate)
	}
	p := &parser{Cursor: syntax.Cursor{Text: text}, t: &Template{text: text}}
	if err := p.sequence(0); err != nil {
		return nil, err
	}
	for i, name := range p.t.vars {
		for _, other := range p.t.vars[:i] {
			if name == other || strings.HasPrefix(name, other+".") ||
				strings.HasPrefix(other, name+".") {
				return nil, fmt.Errorf(
					"shorthand: the variables %s and %s are in each other's way: use each name once",
					other, name)
			}
		}
	}
	p.t.markRest()
	return p.t, nil
}

// markRest lets the last variable take all that is left, if nothing but optional groups follows it.
func (t *Template) markRest() {
	for i, o := range slices.Backward(t.program) {
		switch o.kind {
		case opLiteral:
			return // the text must end as the template does
		case opWord, opWords:
			t.program[i].kind = opRest
			return
		}
	}
}

// String is the text that was parsed.
func (t *Template) String() string { return t.text }

// Grammar writes the template for messages and manuals: NAME for one word, NAME... for more, quoted
// words as they are.
func (t *Template) Grammar() string {
	return grammar.Replace(variables.ReplaceAllStringFunc(flags.ReplaceAllString(t.text, ""),
		strings.ToUpper))
}

var (
	variables = regexp.MustCompile(`\$\{[^}]*\}`)
	flags     = regexp.MustCompile(`\?\$\{[^}]*\}\s*`)
	grammar   = strings.NewReplacer("${", "", "}", "", "[ ", "[", " ]", "]", `" `, "", ` "`, "",
		`"`, "")
)

// Flags are the names of all flags, in order.
func (t *Template) Flags() []string { return slices.Clone(t.flags) }

// Variables are the names of all variables and flags, in order.
func (t *Template) Variables() []string { return slices.Clone(t.vars) }

type parser struct {
	syntax.Cursor
	t *Template
}

func (p *parser) sequence(depth int) error {
	for {
		p.SkipSpace()
		switch rest := p.Rest(); {
		case rest == "" && depth > 0:
			return p.fail("a bracket [ is never closed")
		case rest == "" || rest[0] == ']' && depth > 0:
			return nil
		case strings.HasPrefix(rest, "${"):
			if err := p.variable(); err != nil {
				return err
			}
		case rest[0] == '"':
			if err := p.literal(); err != nil {
				return err
			}
		case rest[0] == '[':
			if err := p.group(depth + 1); err != nil {
				return err
			}
		default:
			return p.fail(`expected ${name}, ${name...}, "literal" or [ optional ]`)
		}
	}
}

func (p *parser) name() (name string, many bool, err error) {
	m := variableInT.FindStringSubmatch(p.Rest())
	if m == nil {
		return "", false, p.fail("${ is never closed")
	}
	name, many = strings.CutSuffix(m[1], "...")
	if !variableName.MatchString(name) {
		return "", false, p.fail(
			"the name of a variable has letters, digits, _ and - only, and dots between them")
	}
	p.At += len(m[0])
	p.t.vars = append(p.t.vars, name)
	return name, many, nil
}

func (p *parser) variable() error {
	name, many, err := p.name()
	o := op{kind: opWord, name: name}
	if many {
		o.kind = opWords
	}
	p.t.program = append(p.t.program, o)
	return err
}

func (p *parser) literal() error {
	length := strings.IndexByte(p.Text[p.At+1:], '"')
	if length < 0 {
		return p.fail("a quote is never closed")
	}
	lit := p.Text[p.At+1 : p.At+1+length]
	words := strings.Fields(lit)
	if len(words) == 0 {
		return p.fail("a literal is empty")
	}
	p.At += length + 2
	p.t.program = append(p.t.program, op{
		kind: opLiteral, words: words, before: syntax.Space(lit[0]),
		after: syntax.Space(lit[len(lit)-1]),
	})
	return nil
}

func (p *parser) group(depth int) error {
	if depth > maxGroups {
		return p.fail(fmt.Sprintf("groups are nested deeper than %d", maxGroups))
	}
	p.At++
	flag := ""
	if p.Take('?') {
		var err error
		if flag, _, err = p.name(); err != nil {
			return err
		}
		p.t.flags = append(p.t.flags, flag)
	}
	start := len(p.t.program)
	p.t.program = append(p.t.program, op{kind: opTry})
	if flag != "" {
		p.t.program = append(p.t.program, op{kind: opFlag, name: flag})
	}
	if err := p.sequence(depth); err != nil {
		return err
	}
	if len(p.t.program) == start+1 || flag != "" && len(p.t.program) == start+2 {
		return p.fail("a group is empty")
	}
	p.At++ // the bracket that ended the sequence
	p.t.program[start].to = len(p.t.program)
	return nil
}

func (p *parser) fail(what string) error {
	return fmt.Errorf("shorthand %s at byte %d: %s", strconv.Quote(syntax.Line(p.Text)), p.At+1, what)
}
