package expr

import (
	"errors"
	"fmt"
	"strings"

	"github.com/droverhq/drover/decider/flow/syntax"
	"github.com/droverhq/drover/decider/flow/value"
)

// encoding is json, yaml and bash.
//
//	string   a text stays, anything else is written
//	parse    string, then read
//	encode   anything is written, a text too
//	nothing  a text is read, anything else stays; for bash: string
func (p *args) encoding() (transform, error) {
	name := p.name
	mode := ""
	if name == "bash" {
		mode = p.flag("string", "encode")
	} else {
		mode = p.flag("string", "parse", "encode")
	}
	return func(r *run, v any) (any, error) {
		text, isText := v.(string)
		if mode == "" && name != "bash" && !isText {
			return v, nil
		}
		switch {
		case !isText || mode == "encode":
			var err error
			if text, err = written(name, v); err != nil {
				return nil, err
			}
		case name == "yaml":
			text = lastDocument(text)
		}
		if err := r.env.fits(len(text)); err != nil {
			return nil, err
		}
		switch {
		case name == "bash":
			return bashQuote(text)
		case mode == "string" || mode == "encode":
			return text, nil
		case name == "yaml":
			return value.FromYAML(text, r.env.ValueLimits())
		}
		return value.Decode([]byte(text), r.env.ValueLimits())
	}, nil
}

func written(name string, v any) (string, error) {
	if name == "yaml" {
		return value.ToYAML(v)
	}
	data, err := value.Encode(v)
	return string(data), err
}

// lastDocument returns what follows the last line that is --- only, or the whole text.
func lastDocument(text string) string {
	rest := text
	for from := 0; from < len(text); {
		line, _, more := strings.Cut(text[from:], "\n")
		end := from + len(line) + 1
		if strings.TrimRight(line, " \t\r") == "---" {
			rest = text[min(end, len(text)):]
		}
		if !more {
			break
		}
		from = end
	}
	return rest
}

// bashQuote writes a text in double quotes, so that a shell reads that text.
func bashQuote(text string) (any, error) {
	if strings.ContainsRune(text, 0) {
		return nil, errors.New("a shell cannot take a text with a NUL byte")
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, `$`, `\$`, "`", "\\`").Replace(text) +
		`"`, nil
}

func (p *args) toType() (transform, error) {
	w, err := p.word("the name of a type")
	if err != nil {
		return nil, err
	}
	if err := value.CheckType(w.Text); err != nil {
		return nil, syntax.New(whatTransform, p.text, w.Start, err.Error(), "")
	}
	return func(r *run, v any) (any, error) { return value.Coerce(v, w.Text, r.env.ValueLimits()) }, nil
}

// parsedPath takes a path. One that does not depend on variables is read, and its errors found, at
// once.
func (p *args) parsedPath(
	parse func(string) (value.Path, error),
) (func(r *run) (value.Path, error), error) {
	var at int
	if len(p.words) > 0 {
		at = p.words[0].Start
	}
	n, err := p.arg("a path")
	if err != nil {
		return nil, err
	}
	l, ok := n.(literal)
	if !ok {
		return func(r *run) (value.Path, error) {
			text, err := textOf(r, n)
			if err != nil {
				return nil, err
			}
			return parse(text)
		}, nil
	}
	text, err := value.Text(l.value)
	if err != nil {
		return nil, syntax.New(whatTransform, p.text, at, err.Error(), usage[p.name])
	}
	path, err := parse(text)
	if err != nil {
		return nil, syntax.Within(whatTransform, p.text, at, err)
	}
	return func(*run) (value.Path, error) { return path, nil }, nil
}

// get takes a part of the value. A bare number is the index of an element.
func (p *args) get() (transform, error) {
	if len(p.words) == 0 {
		return func(_ *run, v any) (any, error) { return v, nil }, nil
	}
	path, err := p.parsedPath(func(text string) (value.Path, error) {
		if n, ok := value.Numeric(text); ok {
			if _, ok := n.(int64); ok {
				text = "[" + strings.TrimSpace(text) + "]"
			}
		}
		return value.ParseRelative(text)
	})
	if err != nil {
		return nil, err
	}
	return func(r *run, v any) (any, error) {
		where, err := path(r)
		if err != nil {
			return nil, err
		}
		part, found, err := value.Get(v, where)
		if err == nil && !found {
			err = Missing(where)
		}
		return part, err
	}, nil
}

func (p *args) set() (transform, error) {
	path, err := p.parsedPath(value.ParsePath)
	if err != nil {
		return nil, err
	}
	return func(r *run, v any) (any, error) {
		where, err := path(r)
		if err != nil {
			return nil, err
		}
		r.sets = append(r.sets, Assignment{Path: where, Value: v})
		return v, nil
	}, nil
}

// waited leaves the value as it is: an evaluation that comes this far has nothing to wait for,
// except for null.
func waited(_ *run, v any) (any, error) {
	if v == nil {
		return nil, fmt.Errorf("%w: it is still null", ErrUnavailable)
	}
	list, _ := v.([]any)
	for _, e := range list { // the operands of a merge after
		if f, ok := e.(failed); ok && errors.Is(f.err, ErrUnavailable) {
			return nil, f.err
		}
	}
	return v, nil
}

// resolveExpression interpolates the texts of a value.
func resolveExpression(r *run, v any) (any, error) {
	x, err := ParseValue(v, Options{Mode: Full})
	if err != nil {
		return nil, err
	}
	return x.Eval(r.env)
}
