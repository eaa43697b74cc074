package model

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/droverhq/drover/decider/flow/shorthand"
	"github.com/droverhq/drover/decider/flow/value"
	"github.com/droverhq/drover/internal/duration"
	"github.com/droverhq/drover/internal/retention"
)

// words is a text with its place.
type words struct {
	s   string
	n   *node
	off int // where it begins in the text of the node; -1 if it is not there as it is
}

func (w words) at(offset int) Position {
	if w.off < 0 || offset < 0 || offset > len(w.s) {
		return w.n.pos
	}
	return w.n.at(w.off + offset)
}

func (n *node) words() words { return words{s: n.text, n: n} }

// dynamic texts are checked when they run.
func dynamic(s string) bool { return strings.Contains(s, "${") }

// given complains of a key without a value.
func (p *parser) given(n *node, key string) bool {
	if n == nil {
		return false
	}
	if n.kind == null {
		p.add(n.pos, key+" is empty", "give it a value or leave it out")
		return false
	}
	return true
}

// line reads a text with ${...} perhaps. Numbers and booleans are texts too.
func (p *parser) line(n *node, key string) string {
	switch {
	case !p.given(n, key):
		return ""
	case n.kind == list || n.kind == mapping:
		p.add(n.pos, key+" is "+n.is(), "write a text")
		return ""
	}
	p.checkText(n.words())
	return n.text
}

func (p *parser) checkText(w words) {
	if p.o.Checks.Text != nil && dynamic(w.s) {
		p.explain(w, p.o.Checks.Text(w.s))
	}
}

var plainWord = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]*$`)

// word reads a name of a step type.
func (p *parser) word(n *node, key string) string {
	s := p.line(n, key)
	if s != "" && !plainWord.MatchString(s) {
		p.add(n.pos, key+" is "+quoted(s),
			"begin with a letter, then letters, digits, - and _ only")
		return ""
	}
	return s
}

// data reads any value.
func (p *parser) data(n *node, key string) any {
	if !p.given(n, key) {
		return nil
	}
	p.checkTexts(n)
	return n.plain()
}

func (p *parser) checkTexts(n *node) {
	if p.o.Checks.Text == nil {
		return
	}
	if n.kind == text {
		p.checkText(n.words())
	}
	for _, item := range n.items {
		p.checkTexts(item)
	}
	for _, pair := range n.pairs {
		p.checkTexts(pair.value)
	}
}

func (p *parser) dict(n *node, key string) map[string]any {
	switch {
	case !p.given(n, key):
		return nil
	case n.kind != mapping:
		p.add(n.pos, key+" is "+n.is(), "write a map")
		return nil
	}
	p.checkTexts(n)
	m, _ := n.plain().(map[string]any)
	return m
}

// length reads a duration.
func (p *parser) length(n *node, key string) string {
	s := p.line(n, key)
	if s != "" && !dynamic(s) {
		_, err := duration.Parse(s)
		p.explain(n.words(), err)
	}
	return s
}

// condition reads one. A bare value is compared with what is judged: an element of a loop, the
// value of a switch, the error in a handler. Where nothing is judged it never holds, which nobody
// means.
func (p *parser) condition(n *node, judged bool) any {
	if !p.given(n, "condition") {
		return nil
	}
	v := n.plain()
	if p.o.Checks.Condition != nil {
		if err := p.o.Checks.Condition(v); err != nil {
			p.explainTree(n, err)
			return v
		}
	}
	p.judgesConstant(n)
	if _, always := v.(bool); judged || always || n.kind != scalar && n.kind != text ||
		dynamic(n.text) {
		return v
	}
	hint := "write true or false, ${...} with a value that is one of them, or a map such as {target: ${x}, equals: 5}"
	switch strings.ToLower(n.text) {
	case "yes", "y", "on", "true":
		hint = "write true"
	case "no", "n", "off", "false":
		hint = "write false"
	}
	p.add(n.pos,
		"the condition "+n.says()+" never holds, as there is nothing here that it is compared with",
		hint)
	return v
}

func (p *parser) retention(n *node) *retention.Expr {
	s := p.line(n, "retention")
	if s == "" {
		return nil
	}
	return p.parseRetention(n.words())
}

func (p *parser) parseRetention(w words) *retention.Expr {
	e, err := retention.Parse(w.s)
	p.explain(w, err)
	return &e
}

const maxPlaces = 1_000_000

// lockWord reads the name of a lock, or its scope. What it is in the end is judged when the run
// asks for it; what stands here at once.
func (p *parser) lockWord(n *node, what string) string {
	s := p.line(n, what)
	if check := p.o.Checks.Lock; check != nil && s != "" && !dynamic(s) {
		if err := check(s); err != nil {
			p.add(n.pos, what+": "+err.Error(), "")
		}
	}
	return s
}

func (p *parser) lock(n *node) *Lock {
	if !p.given(n, "lock") {
		return nil
	}
	l := &Lock{}
	if n.kind != mapping {
		l.Name = p.lockWord(n, "lock")
		if n.kind == list {
			return l
		}
	}
	for _, pair := range n.pairs {
		switch v := pair.value; pair.key {
		case "name":
			l.Name = p.lockWord(v, "the lock's name")
		case "scope", "entity":
			if l.Scope != "" {
				p.add(pair.pos, "the lock has scope and entity", "they are the same: keep one")
			}
			l.Scope = p.lockWord(v, "the lock's "+pair.key)
		case "limit":
			if i, ok := v.value.(int64); ok && i >= 1 && i <= maxPlaces {
				l.Limit = int(i)
			} else {
				p.add(v.pos, "the lock's limit is "+v.is(),
					fmt.Sprintf("write how many runs may hold it at once, 1 to %d", maxPlaces))
			}
		default:
			p.add(pair.pos, "a lock has no "+quoted(pair.key), "its keys are name, scope and limit")
		}
	}
	if l.Name == "" {
		p.add(n.pos, "the lock has no name", "write lock: NAME, or a map with name")
	}
	return l
}

// folded is a text without case, punctuation and white space at its ends: From-Start is from start.
func folded(s string) string {
	words := strings.FieldsFunc(strings.ToLower(s),
		func(c rune) bool { return (c < 'a' || c > 'z') && (c < '0' || c > '9') })
	return strings.Join(words, " ")
}

func (p *parser) replayable(n *node) Replayable {
	if !p.given(n, "replayable") {
		return Replayable{}
	}
	r, ok := replayableOf(n.text)
	if !ok || n.kind == list || n.kind == mapping {
		hint := "write enabled, disabled, from start, automatically, or automatically from start"
		if _, ok := replayPoint(n.text); ok {
			hint = "it is a value of steps: write it on a step, or as a step workflow replayable " +
				folded(n.text)
		}
		p.add(n.pos, "replayable of a workflow is "+n.says(), hint)
	}
	return r
}

func replayableOf(s string) (Replayable, bool) {
	switch folded(s) {
	case "enabled", "yes", "true":
		return Replayable{}, true
	case "disabled":
		return Replayable{Disabled: true}, true
	case "from start":
		return Replayable{FromStart: true}, true
	case "automatically":
		return Replayable{Automatically: true}, true
	case "automatically from start", "from start automatically":
		return Replayable{FromStart: true, Automatically: true}, true
	}
	return Replayable{}, false
}

func replayPoint(s string) (ReplayPoint, bool) {
	switch point := ReplayPoint(folded(s)); point {
	case FromHere, FromHereOnly, Reset:
		return point, true
	}
	return "", false
}

func (p *parser) parameters(d *Definition, n *node) {
	switch {
	case !p.given(n, "parameters"):
		return
	case n.kind != mapping:
		p.add(n.pos, "parameters is "+n.is(), "write a map of names")
		return
	}
	d.Parameters = make(map[string]Parameter, len(n.pairs))
	for _, pair := range n.pairs {
		if !variableRoot.MatchString(pair.key) {
			p.add(pair.pos, quoted(pair.key)+" is no name of a parameter",
				"begin with a letter or _, then letters, digits, - and _ only")
		}
		d.Parameters[pair.key] = p.parameter(pair)
	}
}

var parameterKeys = []string{"type", "defaultValue", "required", "description", "constraints"}

func (p *parser) parameter(of pair) Parameter {
	var one Parameter
	switch of.value.kind {
	case null:
		return one
	case text:
		one.Type = p.typeName(of.value.words())
		return one
	case mapping:
	default:
		p.add(of.value.pos, "the parameter "+of.key+" is "+of.value.is(),
			"write its type, or a map with type, defaultValue, required, description and constraints")
		return one
	}
	var standard *node
	for _, pair := range of.value.pairs {
		switch v := pair.value; pair.key {
		case "type":
			if p.given(v, "type") {
				one.Type = p.typeName(v.words())
			}
		case "defaultValue":
			one.Default, standard = v.plain(), v
		case "required":
			one.Required = p.boolean(v, "required")
		case "description":
			one.Description = p.line(v, "description")
		case "constraints":
			if one.Constraints, _ = v.plain().([]any); v.kind != list {
				p.add(v.pos, "constraints is "+v.is(), "write a list of conditions")
			}
			for _, item := range v.items {
				if p.o.Checks.Condition != nil {
					p.explainTree(item, p.o.Checks.Condition(item.plain()))
				}
			}
		default:
			hint := didYouMean(pair.key, parameterKeys)
			if pair.key == "default" {
				hint = "did you mean defaultValue?"
			}
			p.add(pair.pos, "a parameter has no "+quoted(pair.key), hint)
		}
	}
	if one.Default != nil && one.Type != "" {
		if _, err := value.Coerce(one.Default, one.Type, value.Limits{}); err != nil {
			p.add(standard.pos,
				"the defaultValue of "+of.key+" does not fit its type: "+err.Error(), "")
		}
	}
	return one
}

func (p *parser) boolean(n *node, key string) bool {
	b, ok := booleanOf(n.text)
	if !ok {
		p.add(n.pos, key+" is "+n.is(), "write true or false")
	}
	return b
}

func booleanOf(s string) (value, ok bool) {
	switch strings.ToLower(s) {
	case "yes", "true":
		return true, true
	case "no", "false":
		return false, true
	}
	return false, false
}

func (p *parser) typeName(w words) string {
	if slices.Contains(valueTypes, w.s) {
		return w.s
	}
	hint := didYouMean(w.s, valueTypes)
	if hint == "" {
		hint = "the types are " + strings.Join(valueTypes, ", ")
	}
	p.add(w.at(0), quoted(w.s)+" is no type", hint)
	return ""
}

// shorthand reads the template of a step type.
func (p *parser) shorthand(d *Definition, n *node) {
	if !p.given(n, "shorthand") {
		return
	}
	if !p.o.StepType {
		p.add(n.pos, "shorthand is for step types",
			"leave it out, or register the definition as a step type")
		return
	}
	t, err := shorthand.Parse(n.text)
	if err != nil {
		p.add(n.pos, err.Error(), "for example shorthand: ${package} [ \" from \" ${source} ]")
		return
	}
	d.Shorthand = n.text
	for _, v := range t.Variables() {
		v, _, _ = strings.Cut(v, ".")
		if _, ok := d.Parameters[v]; !ok && len(d.Parameters) > 0 {
			hint := didYouMean(v, slices.Sorted(maps.Keys(d.Parameters)))
			p.add(n.pos, "the shorthand names "+v+", which is no parameter",
				strings.TrimSpace(hint+" declare it under parameters"))
		}
	}
}

func itoa(i int) string { return strconv.Itoa(i) }
