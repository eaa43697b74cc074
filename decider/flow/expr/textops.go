package expr

import (
	"errors"
	"fmt"
	"strings"

	"github.com/droverhq/drover/decider/flow/value"
)

// needs is the error for a value of the wrong type.
func needs(v any, what string) error { return fmt.Errorf("%s is not %s", describe(v), what) }

// trim removes white space around a text, nulls from a list and entries with null from a map.
func trim(_ *run, v any) (any, error) {
	switch v := v.(type) {
	case string:
		return strings.TrimSpace(v), nil
	case []any:
		out := make([]any, 0, len(v))
		for _, e := range v {
			if e != nil {
				out = append(out, e)
			}
		}
		return out, nil
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			if e != nil {
				out[k] = e
			}
		}
		return out, nil
	}
	return nil, needs(v, "a string, list or map")
}

// toString gives lists and maps as JSON.
func toString(_ *run, v any) (any, error) {
	switch v.(type) {
	case []any, map[string]any:
		data, err := value.Encode(v)
		return string(data), err
	}
	return value.Text(v)
}

func upper(_ *run, v any) (any, error) { return mapText(v, strings.ToUpper) }
func lower(_ *run, v any) (any, error) { return mapText(v, strings.ToLower) }

func mapText(v any, f func(string) string) (any, error) {
	s, ok := v.(string)
	if !ok {
		return nil, needs(v, "a string")
	}
	return f(s), nil
}

// builder makes a text that may not be larger than a result may be.
type builder struct {
	strings.Builder
	env *Env
}

func (b *builder) add(s string) error {
	if err := b.env.fits(b.Len() + len(s)); err != nil {
		return err
	}
	b.WriteString(s)
	return nil
}

func (p *args) replace() (transform, error) {
	all := p.flag("all") != ""
	mode := p.flag("literal", "regex", "glob")
	pattern, err := p.arg("a pattern")
	if err != nil {
		return nil, err
	}
	compile, err := p.compiler(mode, pattern, all)
	if err != nil {
		return nil, err
	}
	with, err := p.arg("the text to put in")
	if err != nil {
		return nil, err
	}
	return func(r *run, v any) (any, error) {
		s, ok := v.(string)
		if !ok {
			return nil, needs(v, "a string")
		}
		text, err := textOf(r, with)
		if err != nil {
			return nil, err
		}
		if mode == "regex" || mode == "glob" {
			re, err := compile(r)
			if err != nil {
				return nil, err
			}
			return replacePattern(r.env, s, re, text, all, mode == "regex")
		}
		old, err := textOf(r, pattern)
		if err != nil {
			return nil, err
		}
		return replaceLiteral(r.env, s, old, text, all)
	}, nil
}

// compiler returns a function that gives the pattern. One that does not depend on variables is
// compiled, and its errors found, at once. A nil pattern, with no error, is for the mode literal.
func (p *args) compiler(
	mode string, pattern node, short bool,
) (func(r *run) (*Pattern, error), error) {
	read := func(text string) (*Pattern, error) {
		switch mode {
		case "regex":
			return CompileRegex(text, false)
		case "glob":
			return compileGlob(text, false, short)
		}
		return nil, nil
	}
	if l, ok := pattern.(literal); ok {
		text, err := value.Text(l.value)
		if err != nil {
			return nil, p.fault(err.Error(), usage[p.name])
		}
		re, err := read(text)
		if err != nil {
			return nil, p.fault(err.Error(), "write the pattern in quotes; "+usage[p.name])
		}
		return func(*run) (*Pattern, error) { return re, nil }, nil
	}
	return func(r *run) (*Pattern, error) {
		text, err := textOf(r, pattern)
		if err != nil {
			return nil, err
		}
		re, err := read(text)
		if err != nil || re == nil {
			return re, err
		}
		return re, re.Pay(r.env)
	}, nil
}

func replaceLiteral(env *Env, s, old, text string, all bool) (any, error) {
	if old == "" {
		return nil, errors.New("the pattern is empty")
	}
	n := 1
	if all {
		n = strings.Count(s, old)
	} else if !strings.Contains(s, old) {
		n = 0
	}
	if err := env.fits(len(s) + n*(len(text)-len(old))); err != nil {
		return nil, err
	}
	return strings.Replace(s, old, text, n), nil
}

func replacePattern(env *Env, s string, re *Pattern, text string, all, groups bool) (any, error) {
	found, err := re.find(env, s, all)
	if err != nil {
		return nil, err
	}
	b := builder{env: env}
	end := 0
	for _, m := range found {
		if err := b.add(s[end:m[0]]); err != nil {
			return nil, err
		}
		end = m[1]
		if groups {
			err = expand(&b, s, text, m)
		} else {
			err = b.add(text)
		}
		if err != nil {
			return nil, err
		}
	}
	err = b.add(s[end:])
	return b.String(), err
}

// expand writes a replacement: $1 to $9 are the groups of the match m and $0 is all of it; \$ is a
// dollar sign.
func expand(b *builder, s, text string, m []int) error {
	for i := 0; i < len(text); i++ {
		c := text[i]
		last := i+1 == len(text)
		switch {
		case c == '\\' && !last && (text[i+1] == '$' || text[i+1] == '\\'):
			i++
			c = text[i]
		case c == '$' && !last && text[i+1] >= '0' && text[i+1] <= '9':
			i++
			group := int(text[i] - '0')
			if 2*group+1 >= len(m) {
				return fmt.Errorf("the pattern has no group %d: write \\$ for a dollar sign", group)
			}
			if m[2*group] >= 0 {
				if err := b.add(s[m[2*group]:m[2*group+1]]); err != nil {
					return err
				}
			}
			continue
		}
		if err := b.env.fits(b.Len() + 1); err != nil {
			return err
		}
		b.WriteByte(c)
	}
	return nil
}

func (p *args) split() (transform, error) {
	limit := -1
	if p.flag("limit") != "" {
		w, err := p.word("the limit")
		if err != nil {
			return nil, err
		}
		n, err := value.Coerce(w.Text, "integer", value.Limits{})
		if err != nil || n.(int64) < 1 || n.(int64) > 1<<31 {
			return nil, p.fault("the limit is not a number above 0", usage["split"])
		}
		limit = int(n.(int64))
	}
	keep := p.flag("keep_delimiters") != ""
	mode := p.flag("literal", "regex")
	separator, err := p.arg("a separator")
	if err != nil {
		return nil, err
	}
	compile, err := p.compiler(mode, separator, false)
	if err != nil {
		return nil, err
	}
	return func(r *run, v any) (any, error) {
		s, ok := v.(string)
		if !ok {
			return nil, needs(v, "a string")
		}
		found, err := separators(r, s, mode, separator, compile)
		if err != nil {
			return nil, err
		}
		return cut(r.env, s, found, limit, keep)
	}, nil
}

// separators returns the places at which a text is to be split, in their order.
func separators(
	r *run, s, mode string, separator node, compile func(*run) (*Pattern, error),
) ([][]int, error) {
	if mode == "regex" {
		re, err := compile(r)
		if err != nil {
			return nil, err
		}
		return re.find(r.env, s, true)
	}
	sep, err := textOf(r, separator)
	if err != nil {
		return nil, err
	}
	var found [][]int
	if parts := strings.Count(s, sep); parts > r.env.limits.Bytes/8 {
		return nil, r.env.fits(r.env.limits.Bytes + 1)
	}
	if sep == "" {
		for i := range s {
			found = append(found, []int{i, i})
		}
		return found, nil
	}
	for at := 0; ; {
		next := strings.Index(s[at:], sep)
		if next < 0 {
			return found, nil
		}
		found = append(found, []int{at + next, at + next + len(sep)})
		at += next + len(sep)
	}
}

// cut makes the list. An empty separator at the beginning or the end separates nothing.
func cut(env *Env, s string, found [][]int, limit int, keep bool) (any, error) {
	parts := []any{}
	add := func(part string) error {
		if 8*len(parts) > env.limits.Bytes {
			return env.fits(env.limits.Bytes + 1)
		}
		if limit < 0 || len(parts) < limit {
			parts = append(parts, part)
		}
		return nil
	}
	end := 0
	for _, m := range found {
		if m[0] == m[1] && (m[0] == 0 || m[0] == len(s)) {
			continue
		}
		if err := add(s[end:m[0]]); err != nil {
			return nil, err
		}
		if keep {
			if err := add(s[m[0]:m[1]]); err != nil {
				return nil, err
			}
		}
		end = m[1]
	}
	err := add(s[end:])
	return parts, err
}

func (p *args) join() (transform, error) {
	separator := node(literal{""})
	if len(p.words) > 0 {
		var err error
		if separator, err = p.arg("a separator"); err != nil {
			return nil, err
		}
	}
	return func(r *run, v any) (any, error) {
		list, ok := v.([]any)
		if !ok {
			return nil, needs(v, "a list")
		}
		sep, err := textOf(r, separator)
		if err != nil {
			return nil, err
		}
		b := builder{env: r.env}
		for i, e := range list {
			text, err := value.Text(e)
			if err != nil {
				return nil, fmt.Errorf("element %d: %w", i, err)
			}
			if i > 0 {
				text = sep + text
			}
			if err := b.add(text); err != nil {
				return nil, err
			}
		}
		return b.String(), nil
	}, nil
}

// extend puts one value before or lagging: to a list as an element, to a text or another scalar as
// text.
func (p *args) extend() (transform, error) {
	front := p.name == "prepend"
	x, err := p.arg("a value")
	if err != nil {
		return nil, err
	}
	return func(r *run, v any) (any, error) {
		more, err := x.eval(r.env)
		if err != nil {
			return nil, err
		}
		if list, ok := v.([]any); ok {
			out := make([]any, 0, len(list)+1)
			if front {
				return append(append(out, more), list...), nil
			}
			return append(append(out, list...), more), nil
		}
		text, err := value.Text(v)
		if err != nil {
			return nil, needs(v, "a list or a string")
		}
		add, err := value.Text(more)
		if err != nil {
			return nil, err
		}
		if err := r.env.fits(len(text) + len(add)); err != nil {
			return nil, err
		}
		if front {
			return add + text, nil
		}
		return text + add, nil
	}, nil
}
