package model

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/droverhq/drover/decider/flow/syntax"
	"github.com/droverhq/drover/internal/duration"
)

var (
	variableRoot = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)
	variablePath = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+|\[[^\]\n]*\])*$`)
)

// everywhere are the names of what every run knows. A variable of that name would never be read, or
// hide what the name means.
var everywhere = []string{"workflow", "entity", "output", "state"}

var everywhereHint = map[string]string{
	"output": "; a step has an output by its key output",
	"state":  "; a state key is set by set-state",
}

// checkInputs judges a step of a built-in type by the table.
func (p *parser) checkInputs(r *reading) {
	known := make([]string, 0, len(r.spec.Inputs))
	for _, in := range r.spec.Inputs {
		known = append(known, in.Name)
		p.rename(r, in)
		p.spread(r, in.Name)
	}
	for _, name := range slices.Clone(r.order) {
		a, ok := r.args[name]
		if !ok || slices.Contains(known, name) {
			continue
		}
		if hint, no := structural[name]; no && !(name == "retention" && r.step.Type == "fail") {
			p.add(a.place, r.step.Type+" has no "+name, hint)
			delete(r.args, name)
			continue
		}
		p.misspelt(r, name, a, known)
		p.checkTexts(a.w.n)
	}
	for _, in := range r.spec.Inputs {
		a, ok := r.args[in.Name]
		switch {
		case ok:
			p.checkKind(r, in, a)
		case in.Required && !p.elsewhere(r, in.Name):
			p.add(r.n.pos, r.step.Type+" needs "+in.Name, r.usage())
		}
	}
}

func (r *reading) usage() string {
	if r.spec.Shorthand == "" {
		return "give it as a key"
	}
	return "for example " + r.spec.Example
}

// elsewhere tells whether an input is among the common keys or under input.
func (p *parser) elsewhere(r *reading, name string) bool {
	in := r.value("input")
	return r.has(name) || in != nil && in.get(name) != nil
}

func (p *parser) rename(r *reading, in Input) {
	for _, alias := range in.Aliases {
		a, ok := r.take(alias)
		switch {
		case !ok:
		case r.arg(in.Name):
			p.add(a.place, "the step has "+in.Name+" and "+alias, "they are the same: keep one")
		default:
			r.put(in.Name, a)
		}
	}
}

// spread reads a variable or key that is a map of its name and type.
func (p *parser) spread(r *reading, name string) {
	a, ok := r.args[name]
	if !ok || name != "variable" && name != "key" || !a.key || a.w.n.kind != mapping {
		return
	}
	delete(r.args, name)
	for _, part := range a.w.n.pairs {
		to := map[string]string{"name": name, "type": "type"}[part.key]
		switch {
		case to == "":
			p.add(part.pos, name+" has no "+quoted(part.key), "its keys are name and type")
		case r.arg(to):
			p.add(part.pos, to+" is given in the line and as a key", "keep one of them")
		default:
			r.put(to, arg{w: part.value.words(), key: true, place: part.pos})
		}
	}
}

// misspelt finds keys that would become inputs though a common key was meant. Short ones are left
// alone: text is not next.
func (p *parser) misspelt(r *reading, name string, a arg, known []string) {
	plain := strings.NewReplacer("_", "", "-", "", " ", "")
	for _, key := range slices.Concat(stepKeys, known) {
		same := strings.EqualFold(strings.TrimSuffix(plain.Replace(name), "s"),
			strings.TrimSuffix(plain.Replace(key), "s"))
		if same && len(key) > 1 || len(key) >= 6 && syntax.Distance(strings.ToLower(name), key) == 1 ||
			len(key) >= 9 && syntax.Distance(strings.ToLower(name), key) == 2 {
			p.add(a.place, quoted(name)+" would become an input",
				"did you mean "+key+"? If not, put it under input")
			return
		}
	}
	if r.own != nil && len(known) > 0 && p.o.Warn != nil {
		p.o.Warn(p.make(a.place, r.step.Type+" has no parameter "+quoted(name),
			cmp.Or(didYouMean(name, known), "its parameters are "+strings.Join(known, ", "))))
	}
}

func (p *parser) checkKind(r *reading, in Input, a arg) {
	if in.Kind == Steps {
		return // whoever takes it reads it
	}
	n := &node{kind: text, text: a.w.s, value: a.w.s, pos: a.place}
	if a.key {
		n = a.w.n
	}
	if a.flag {
		return
	}
	if n.kind == null && in.Kind != Any {
		p.add(a.place, in.Name+" is empty", "give it a value or leave it out")
		return
	}
	if in.Kind == TypeName || in.Kind == Variable {
		p.checkNames(in, a, n)
		return
	}
	if n.kind == text && dynamic(n.text) {
		if !special(r, in.Name) {
			p.checkText(a.w)
		}
		return
	}
	if hint := p.wrong(in, n, a); hint != "" {
		p.add(a.place,
			in.Name+" is "+cmp.Or(map[bool]string{true: quoted(n.text)}[n.kind == text], n.is()),
			hint)
	}
	if a.key && (n.kind == list || n.kind == mapping) && in.Kind != Predicate &&
		in.Kind != Status && !special(r, in.Name) {
		p.checkTexts(n)
	}
}

// special are inputs that are not checked as texts with ${...}.
func special(r *reading, name string) bool {
	switch r.step.Type {
	case "let":
		return name == "value" // finishLet knows the mode
	case "transform":
		return name == "transform"
	}
	// whoever takes them checks them
	return name == "lock" || name == "reducing" || name == "concurrency"
}

func (p *parser) checkNames(in Input, a arg, n *node) {
	switch {
	case in.Kind == TypeName:
		if n.kind != text {
			p.add(a.place, in.Name+" is "+n.is(), "the types are "+strings.Join(valueTypes, ", "))
			return
		}
		p.typeName(words{s: n.text, n: n, off: 0})
	case n.kind != text || !variablePath.MatchString(n.text):
		hint := "begin with a letter or _, then letters, digits, - and _, and a path such as .a or [0]"
		if strings.Contains(n.text, "=") {
			hint = "put spaces around ="
		}
		p.add(a.place, quoted(n.text)+" is no name of a variable", hint)
	default:
		root := rootOf(n.text)
		if slices.Contains(everywhere, root) {
			p.add(a.place, root+" is the name of what every run knows",
				"choose another name for the variable"+everywhereHint[root])
		}
	}
}

// rootOf is the name that a path begins with.
func rootOf(path string) string {
	return path[:len(path)-len(strings.TrimLeft(path,
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"))]
}

// wrong returns what to write instead, or "" if the value fits.
func (p *parser) wrong(in Input, n *node, a arg) string {
	simple := n.kind == text || n.kind == scalar
	_, whole := n.value.(int64)
	switch in.Kind {
	case Text:
		if !simple {
			return "write a text"
		}
	case Boolean:
		if _, ok := booleanOf(n.text); !ok || !simple {
			return "write true or false"
		}
	case Integer:
		if _, err := strconv.ParseInt(n.text, 10, 64); !whole && (err != nil || !simple) {
			return "write a whole number"
		}
	case Map:
		if n.kind != mapping && (in.Name != "args" || a.key) {
			return "write a map"
		}
	case List:
		if n.kind != list {
			return "write a list"
		}
	case Length:
		if !simple {
			return "write a duration such as 10s"
		}
		_, err := duration.Parse(n.text)
		p.explain(a.w, err)
	case Choice:
		if !simple || !slices.Contains(in.Choices, strings.ToLower(n.text)) {
			return "write one of " + strings.Join(in.Choices, ", ")
		}
	case Predicate, Status:
		if (in.Kind == Predicate || n.kind == mapping || n.kind == list) &&
			p.o.Checks.Condition != nil {
			p.explainTree(n, p.o.Checks.Condition(n.plain()))
		}
	}
	return ""
}
