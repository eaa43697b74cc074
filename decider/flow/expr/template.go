package expr

import (
	"errors"
	"strings"

	"github.com/droverhq/drover/decider/flow/syntax"
	"github.com/droverhq/drover/decider/flow/value"
)

// MaxText is how many bytes an expression may have. Longer texts without ${ are no expressions and
// have no such limit.
const MaxText = 1 << 16

const whatTemplate = "expression"

// template is a text with ${…} in it.
type template struct {
	text    string
	parts   []part
	onError OnError
}

// part is a literal text, or a path if there is one.
type part struct {
	text   string // as written
	path   value.Path
	offset int
}

// parseTemplate returns a literal if there is nothing to interpolate.
func parseTemplate(text string, onError OnError) (node, error) {
	if !strings.Contains(text, "${") {
		return literal{text}, nil
	}
	if len(text) > MaxText {
		return nil, syntax.New(whatTemplate, text, 0, "the text is too long",
			"a text with ${…} has at most 65536 bytes; take interpolation_mode: disabled if it is to stay as it is")
	}
	t := &template{text: text, onError: onError}
	for at := 0; at < len(text); {
		next := strings.Index(text[at:], "${")
		if next < 0 {
			t.parts = append(t.parts, part{text: text[at:], offset: at})
			break
		}
		if next > 0 {
			t.parts = append(t.parts, part{text: text[at : at+next], offset: at})
		}
		at += next
		p, err := parsePart(text, at)
		if err != nil && onError != Ignore {
			return nil, err
		}
		t.parts = append(t.parts, p)
		at += len(p.text)
	}
	return t, nil
}

// parsePart reads the ${…} at offset at. The part that comes with an error is the text that could
// not be read.
func parsePart(text string, at int) (part, error) {
	end := syntax.Braces(text, at)
	p := part{text: text[at:end], offset: at}
	refuse := func(at int, problem, hint string) (part, error) {
		return p, syntax.New(whatTemplate, text, at, problem, hint)
	}
	inner, closed := strings.CutSuffix(text[at+2:end], "}")
	if !closed {
		return refuse(at, "the ${ is not closed",
			"write } after the name; quote the word in a let if it is no expression")
	}
	path, err := value.ParsePath(inner)
	switch {
	case err == nil:
	case strings.Contains(inner, "${"):
		return refuse(at, "there is a ${ inside another",
			"put the inner one into a variable first, with let")
	case strings.ContainsAny(inner, " \t\n"):
		e, _ := errors.AsType[*syntax.Error](err)
		return refuse(at+2+e.Offset, e.Problem,
			"between ${ and } stands a name or path only; operators work in let, outside the braces")
	default:
		return p, syntax.Within(whatTemplate, text, at+2, err)
	}
	if last := path[len(path)-1]; last.Kind == value.Append {
		return refuse(at, "nothing can be read after the last element",
			"take the last one with the transform last")
	}
	p.path = path
	return p, nil
}

func (t *template) eval(env *Env) (any, error) {
	if len(t.parts) == 1 && t.parts[0].path != nil {
		return t.value(env, t.parts[0])
	}
	if err := env.Spend(1 + len(t.text)/1024); err != nil {
		return nil, located(t.text, 0, err)
	}
	var b strings.Builder
	for _, p := range t.parts {
		text := p.text
		if p.path != nil {
			var err error
			if text, err = t.embed(env, p); err != nil {
				return nil, err
			}
		}
		if err := env.fits(b.Len() + len(text)); err != nil {
			return nil, located(t.text, p.offset, err)
		}
		b.WriteString(text)
	}
	return b.String(), nil
}

func (t *template) value(env *Env, p part) (any, error) {
	v, err := env.Lookup(p.path)
	if err != nil {
		return t.instead(p, err)
	}
	return v, nil
}

// embed gives the text of a value in the middle of others.
func (t *template) embed(env *Env, p part) (string, error) {
	v, err := t.value(env, p)
	if err != nil {
		return "", err
	}
	text, err := value.Text(v)
	if err != nil {
		if v, err = t.instead(p, err); err != nil {
			return "", err
		}
		text, _ = v.(string)
	}
	return text, nil
}

// instead is what stands for an expression that failed.
func (t *template) instead(p part, err error) (any, error) {
	switch {
	case hard(err) || t.onError == Fail:
		return nil, located(t.text, p.offset, err)
	case t.onError == Blank:
		return "", nil
	}
	return p.text, nil
}
