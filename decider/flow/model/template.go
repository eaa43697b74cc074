package model

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
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

// ParseTemplate reads a shorthand. Errors say the offset.
func ParseTemplate(text string) (*Template, error) {
	if len(text) > maxTemplate {
		return nil, fmt.Errorf("shorthand: longer than %d bytes", maxTemplate)
	}
	p := &templateParser{text: text, t: &Template{text: text}}
	if err := p.sequence(0); err != nil {
		return nil, err
	}
	for i, name := range p.t.vars {
		for _, other := range p.t.vars[:i] {
			if name == other || strings.HasPrefix(name, other+".") ||
				strings.HasPrefix(other, name+".") {
				return nil, fmt.Errorf(
					"shorthand: the variables %s and %s are in each other's way: use each name once",
					other,
					name,
				)
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
	return grammar.Replace(
		variables.ReplaceAllStringFunc(flags.ReplaceAllString(t.text, ""), strings.ToUpper),
	)
}

var (
	variables = regexp.MustCompile(`\$\{[^}]*\}`)
	flags     = regexp.MustCompile(`\?\$\{[^}]*\}\s*`)
	grammar   = strings.NewReplacer(
		"${",
		"",
		"}",
		"",
		"[ ",
		"[",
		" ]",
		"]",
		`" `,
		"",
		` "`,
		"",
		`"`,
		"",
	)
)

// Variables are the names of all variables and flags, in order.
func (t *Template) Variables() []string { return slices.Clone(t.vars) }

type templateParser struct {
	text string
	at   int
	t    *Template
}

func (p *templateParser) sequence(depth int) error {
	for {
		p.space()
		switch rest := p.text[p.at:]; {
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

func (p *templateParser) name() (name string, many bool, err error) {
	m := variableInT.FindStringSubmatch(p.text[p.at:])
	if m == nil {
		return "", false, p.fail("${ is never closed")
	}
	name, many = strings.CutSuffix(m[1], "...")
	if !variableName.MatchString(name) {
		return "", false, p.fail(
			"the name of a variable has letters, digits, _ and - only, and dots between them",
		)
	}
	p.at += len(m[0])
	p.t.vars = append(p.t.vars, name)
	return name, many, nil
}

func (p *templateParser) variable() error {
	name, many, err := p.name()
	o := op{kind: opWord, name: name}
	if many {
		o.kind = opWords
	}
	p.t.program = append(p.t.program, o)
	return err
}

func (p *templateParser) literal() error {
	length := strings.IndexByte(p.text[p.at+1:], '"')
	if length < 0 {
		return p.fail("a quote is never closed")
	}
	lit := p.text[p.at+1 : p.at+1+length]
	words := strings.Fields(lit)
	if len(words) == 0 {
		return p.fail("a literal is empty")
	}
	p.at += length + 2
	p.t.program = append(
		p.t.program,
		op{kind: opLiteral, words: words, before: isSpace(lit[0]), after: isSpace(lit[len(lit)-1])},
	)
	return nil
}

func (p *templateParser) group(depth int) error {
	if depth > maxGroups {
		return p.fail(fmt.Sprintf("groups are nested deeper than %d", maxGroups))
	}
	p.at++
	p.space()
	flag := ""
	if strings.HasPrefix(p.text[p.at:], "?") {
		p.at++
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
	p.at++ // the bracket that ended the sequence
	p.t.program[start].to = len(p.t.program)
	return nil
}

func (p *templateParser) space() {
	for p.at < len(p.text) && isSpace(p.text[p.at]) {
		p.at++
	}
}

func (p *templateParser) fail(what string) error {
	return fmt.Errorf("shorthand %s at byte %d: %s", quoted(p.text), p.at+1, what)
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }
