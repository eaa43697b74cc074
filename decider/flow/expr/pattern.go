package expr

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"

	flow "github.com/droverhq/drover/decider/flow/syntax"
)

// maxPattern is how many bytes a regular expression or glob may have, and maxMatches how often it
// may match in one text.
const (
	maxPattern = 1 << 10
	maxProgram = 20_000 // instructions that it becomes
	maxMatches = 1 << 16
)

// Pattern is a regular expression or glob. Matching takes time linear in the text and in the size
// of the pattern, and pays for both from the budget of the Env.
type Pattern struct {
	re   *regexp.Regexp
	size int // instructions
}

// CompileRegex compiles a regular expression as package regexp knows it: without backward
// references and look around. whole makes it match whole texts only, with a dot that matches
// newlines too.
func CompileRegex(pattern string, whole bool) (*Pattern, error) {
	if len(pattern) > maxPattern {
		return nil, fmt.Errorf("the pattern has more than %d bytes", maxPattern)
	}
	if whole {
		if _, err := syntax.Parse(pattern, syntax.Perl); err != nil {
			// so that the error shows what the author wrote
			return nil, fmt.Errorf("%s is no regular expression: %w", flow.Quote(pattern), err)
		}
		pattern = `\A(?s:` + pattern + `)\z`
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("%s is no regular expression: %w", flow.Quote(pattern), err)
	}
	prog, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, fmt.Errorf("%s is no regular expression: %w", flow.Quote(pattern), err)
	}
	if len(prog.Inst) > maxProgram {
		return nil, fmt.Errorf("%s is too large: write fewer or smaller repetitions",
			flow.Quote(pattern))
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, fmt.Errorf("%s is no regular expression: %w", flow.Quote(pattern), err)
	}
	return &Pattern{re: re, size: len(prog.Inst)}, nil
}

// CompileGlob compiles a pattern of * (any text), ? (one character) and {a,b} (one of them); a
// backslash takes the meaning from what follows. Everything else, [ and ] too, stands for itself.
func CompileGlob(pattern string, whole bool) (*Pattern, error) {
	return compileGlob(pattern, whole, false)
}

func compileGlob(pattern string, whole, short bool) (*Pattern, error) {
	many := "(?s:.*)"
	if short {
		many = "(?s:.*?)"
	}
	var b strings.Builder
	open := 0
	for i := 0; i < len(pattern); {
		r, n := utf8.DecodeRuneInString(pattern[i:])
		i += n
		switch {
		case r == '*':
			b.WriteString(many)
		case r == '?':
			b.WriteString("(?s:.)")
		case r == '{':
			b.WriteString("(?:")
			open++
		case r == '}' && open > 0:
			b.WriteString(")")
			open--
		case r == ',' && open > 0:
			b.WriteString("|")
		case r == '\\' && i < len(pattern):
			r, n = utf8.DecodeRuneInString(pattern[i:])
			i += n
			fallthrough
		default:
			b.WriteString(regexp.QuoteMeta(string(r)))
		}
	}
	if open > 0 {
		return nil, fmt.Errorf("a { is not closed in the glob %s: write } or \\{",
			flow.Quote(pattern))
	}
	p, err := CompileRegex(b.String(), whole)
	if err != nil {
		return nil, fmt.Errorf("the glob %s cannot be used: %w", flow.Quote(pattern), err)
	}
	return p, nil
}

// Match reports whether the pattern occurs in a text, or is the whole text if it was compiled so.
func (p *Pattern) Match(env *Env, text string) (bool, error) {
	if err := p.pay(env, text); err != nil {
		return false, err
	}
	return p.re.MatchString(text), nil
}

// find returns the places of all matches and their groups, or of the first one.
func (p *Pattern) find(env *Env, text string, all bool) ([][]int, error) {
	if err := p.pay(env, text); err != nil {
		return nil, err
	}
	if !all {
		if m := p.re.FindStringSubmatchIndex(text); m != nil {
			return [][]int{m}, nil
		}
		return nil, nil
	}
	found := p.re.FindAllStringSubmatchIndex(text, maxMatches+1)
	if len(found) > maxMatches {
		return nil, fmt.Errorf("%w: the pattern matches more than %d times", ErrLimit, maxMatches)
	}
	return found, nil
}

// Pay takes the cost of compiling from the budget, for those who compile while they evaluate.
func (p *Pattern) Pay(env *Env) error { return env.Spend(1 + p.size/16) }

func (p *Pattern) pay(env *Env, text string) error {
	return env.Spend(1 + len(text)*p.size/1024)
}
