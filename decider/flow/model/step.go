package model

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/droverhq/drover/decider/flow/shorthand"
	"github.com/droverhq/drover/decider/flow/syntax"
)

// reading is a step on its way from YAML to the model.
type reading struct {
	step   *Step
	spec   Type        // of a built-in type
	own    *Definition // of a registered type
	n      *node
	at     spot
	common map[string]pair // keys that every step knows
	args   map[string]arg  // all others, and what the shorthand held
	order  []string        // of args
}

// arg is an input from a key or from shorthand.
type arg struct {
	w     words
	key   bool // then w.n is the value
	flag  bool
	place Position
}

func (a arg) value() any {
	switch {
	case a.key:
		return a.w.n.plain()
	case a.flag:
		return true
	}
	return a.w.s
}

func (r *reading) put(name string, a arg) {
	if _, ok := r.args[name]; !ok {
		r.order = append(r.order, name)
	}
	r.args[name] = a
}

func (r *reading) take(name string) (arg, bool) {
	a, ok := r.args[name]
	delete(r.args, name)
	return a, ok
}

var (
	stepKeys = []string{
		"type", "step", "shorthand", "s", "id", "name", "metadata", "input", "output", "condition",
		"next", "timeout", "on-error",
		"replayable", "idempotent",
	}
	textKeys = []string{"step", "shorthand", "s"}
	// structural keys are no inputs, even of types that do not know them.
	structural = map[string]string{
		"steps":       "put them into a step of type workflow, foreach, if or subworkflow",
		"cases":       "it is for switch",
		"parameters":  "declare them in a flow or a registered step type; give values under input",
		"reducing":    "it is for workflow and foreach",
		"concurrency": "it is for workflow and foreach with a target",
		"lock":        "put a step of type workflow with the lock around it",
		"retention":   "write a step workflow retention ... before it",
	}
)

// block reads the steps of a list into at.scope.
func (p *parser) block(n *node, at spot) []*Step {
	switch {
	case !p.given(n, "steps"):
		return nil
	case n.kind != list:
		p.add(n.pos, "steps is "+n.is(), "write a list, each step after a dash")
		return nil
	case len(n.items) == 0:
		p.add(n.pos, "steps is an empty list", "write at least one step, for example no-op")
	}
	var steps []*Step
	base := at.base
	at.depth++
	at.item = false
	for i, item := range n.items {
		at.base = base + itoa(i)
		if s := p.one(item, at); s != nil {
			steps = append(steps, s)
		}
	}
	return steps
}

// one reads a step; at.base is its Ref. It is nil if it makes no sense.
func (p *parser) one(n *node, at spot) *Step {
	p.steps++
	switch {
	case p.steps > MaxSteps:
		if p.steps == MaxSteps+1 {
			p.add(n.pos, fmt.Sprintf("has more than %d steps", MaxSteps),
				"move parts into flows or step types of their own")
		}
		return nil
	case at.depth > MaxNest:
		p.add(n.pos, fmt.Sprintf("steps are nested deeper than %d", MaxNest),
			"move parts into flows or step types of their own")
		return nil
	}
	r := &reading{
		step: &Step{Ref: at.base, Pos: n.pos}, n: n, at: at, common: map[string]pair{},
		args: map[string]arg{},
	}
	switch n.kind {
	case text:
		return p.shorthandStep(r, n.words())
	case list:
		r.step.Type, r.spec = "subworkflow", names["subworkflow"]
		r.put("steps", arg{w: n.words(), key: true, place: n.pos})
		return p.finished(r)
	case mapping:
		return p.mapStep(r)
	}
	p.add(n.pos, "a step is "+n.is(), "write a text such as log hello, or a map with step or type")
	return nil
}

func (p *parser) mapStep(r *reading) *Step {
	if only := r.n.pairs; len(only) == 1 && only[0].key == "step" && only[0].value.kind == mapping {
		p.steps-- // it is the same step
		r.at.depth++
		return p.one(only[0].value, r.at)
	}
	if w, ok := p.rejoined(r.n); ok {
		return p.shorthandStep(r, w)
	}
	for _, pair := range r.n.pairs {
		if slices.Contains(stepKeys, pair.key) {
			r.common[pair.key] = pair
			continue
		}
		r.put(pair.key, arg{w: pair.value.words(), key: true, place: pair.pos})
	}
	switch short := p.textOf(r); {
	case short != nil:
		return p.shorthandStep(r, short.words())
	case r.has("type"):
		t := r.common["type"].value
		if t.kind != text || strings.ContainsAny(t.text, " \t\n") {
			p.add(t.pos,
				"type is "+cmp.Or(map[bool]string{true: quoted(t.text)}[t.kind == text], t.is()),
				"type has the name only; write the whole line under step")
			return nil
		}
		return p.typed(r, words{s: t.text, n: t}, nil)
	case r.arg("steps"):
		return p.typed(r, words{s: "subworkflow", n: r.n, off: -1}, nil)
	}
	p.add(r.n.pos, "the step has no type", p.untyped(r))
	return nil
}

func (r *reading) has(key string) bool { _, ok := r.common[key]; return ok }

func (r *reading) arg(name string) bool { _, ok := r.args[name]; return ok }

// textOf returns the value of step, or of a word that means the same; nil if there is none.
func (p *parser) textOf(r *reading) *node {
	var found *node
	for _, key := range textKeys {
		pair, ok := r.common[key]
		switch {
		case !ok:
		case r.has("type"):
			p.add(pair.pos, "the step has both type and "+key,
				"keep one of them: step has the type as its first word")
			return nil
		case found != nil:
			p.add(pair.pos, "the step has more than one of step, shorthand and s",
				"keep one of them")
		case pair.value.kind != text && pair.value.kind != scalar:
			p.add(pair.value.pos, key+" is "+pair.value.is(), "write a line such as log hello")
			found = &node{kind: null, pos: pair.value.pos}
		default:
			found = pair.value
		}
	}
	return found
}

// rejoined makes one text of a line that YAML took for a map because a colon stands in it.
func (p *parser) rejoined(n *node) (words, bool) {
	if len(n.pairs) != 1 || !strings.Contains(strings.TrimSpace(n.pairs[0].key), " ") {
		return words{}, false
	}
	v := n.pairs[0].value
	if v.kind == list || v.kind == mapping {
		p.add(v.pos, "a step has a colon and "+v.is()+" after it",
			"quote the whole line, or use a key without spaces")
		return words{s: "no-op", n: n, off: -1}, true
	}
	s := n.pairs[0].key + ":"
	if n.pairs[0].apart { // a let knows the colon of a choice by it
		s = n.pairs[0].key + " :"
	}
	if v.kind != null {
		s += " " + v.text
	}
	return words{s: s, n: n, off: -1}, true
}

func (p *parser) untyped(r *reading) string {
	for _, pair := range r.n.pairs {
		if _, ok := names[pair.key]; ok {
			return "write - " + pair.key + " ..., without the colon, or type: " + pair.key
		}
	}
	for _, pair := range r.n.pairs {
		if near := syntax.Nearest(pair.key, []string{"type", "step", "steps"}); near != "" {
			return "did you mean " + near + "?"
		}
	}
	return "write step with a line such as log hello, or type"
}

// shorthandStep reads a line: the first word is the type.
func (p *parser) shorthandStep(r *reading, w words) *Step {
	from := syntax.SkipSpace(w.s, 0)
	if from == len(w.s) {
		if w.n.kind != null { // else it has been said
			p.add(w.n.pos, "the step is empty", "write a line such as log hello")
		}
		return nil
	}
	if len(w.s) > maxLine {
		p.add(w.n.pos, fmt.Sprintf("the line is longer than %d bytes", maxLine),
			"give long values under keys of their own")
		return nil
	}
	end := from
	for end < len(w.s) && !syntax.Space(w.s[end]) {
		end++
	}
	rest := words{s: w.s[end:], n: w.n, off: w.off + end}
	first := words{s: w.s[from:end], n: w.n, off: w.off + from}
	if w.off < 0 {
		rest.off, first.off = -1, -1
	}
	return p.typed(r, first, &rest)
}

const maxLine = 64 << 10

// typed finds the type; rest is what stands after it in shorthand, nil if the step is written in
// keys.
func (p *parser) typed(r *reading, name words, rest *words) *Step {
	spec, ok := names[name.s]
	if ok {
		r.step.Type, r.spec = spec.Name, spec
	} else if r.own = p.lookup(name.s, name.at(0)); r.own != nil {
		r.step.Type = name.s
	} else {
		p.add(name.at(0), "there is no step type "+quoted(name.s), p.noType(name.s))
		return nil
	}
	if rest != nil && !p.takeApart(r, *rest) {
		return nil
	}
	return p.finished(r)
}

func (p *parser) noType(name string) string {
	if hint, ok := absent[name]; ok {
		return hint
	}
	all := make([]string, 0, len(names)+len(p.types))
	for n := range names {
		all = append(all, n)
	}
	for n := range p.types {
		all = append(all, n)
	}
	slices.Sort(all)
	switch {
	case name == p.id && name != "":
		return "a step type cannot use itself: use child for a recursion"
	case name == "=" || strings.Contains(name, "="):
		return "did you mean let?"
	}
	return cmp.Or(didYouMean(name, all),
		"register it as a step type, or use activity for an activity and child for a workflow")
}

// takeApart puts the variables of a line into args.
func (p *parser) takeApart(r *reading, rest words) bool {
	switch r.step.Type {
	case "transform":
		return p.transformText(r, rest)
	case "wait":
		if p.waitForSignal(r, rest) {
			return true
		}
	}
	form, raw := r.spec.Shorthand, r.spec.raw
	if r.own != nil {
		form, raw = r.own.Shorthand, false
	}
	if form == "" {
		if at := syntax.SkipSpace(rest.s, 0); at < len(rest.s) {
			p.add(rest.at(at), r.step.Type+" takes nothing after it", "give inputs as keys")
			return false
		}
		return true
	}
	t, err := shorthand.Parse(form)
	if err != nil {
		p.add(rest.n.pos, err.Error(), "register the step type anew")
		return false
	}
	return p.match(r, t, rest, raw)
}

func (p *parser) match(r *reading, t *shorthand.Template, rest words, raw bool) bool {
	if strings.TrimSpace(rest.s) == "" {
		return true // what is required may be in keys
	}
	got, err := t.Match(rest.s, raw)
	if err != nil {
		at := 0
		if m, ok := errors.AsType[*shorthand.Mismatch](err); ok {
			at = m.Offset
		}
		hint := "write " + r.step.Type + " " + t.Grammar()
		if strings.Contains(t.String(), `" = "`) && !strings.Contains(rest.s, " = ") &&
			strings.Contains(rest.s, "=") {
			hint += ", with spaces around ="
		}
		if r.step.Type == "if" {
			hint += `, and in quotes what has several words, as in if "${n} < 3" then ...`
		}
		p.add(rest.at(at), "the line does not fit "+r.step.Type, hint)
		return false
	}
	for _, c := range got {
		w := words{s: c.Text, n: rest.n, off: -1}
		if rest.off >= 0 && c.Offset >= 0 {
			w.off = rest.off + c.Offset
		}
		p.capture(r, c.Name, arg{w: w, flag: c.Flag, place: w.at(0)})
	}
	if r.own != nil {
		for _, flag := range t.Flags() {
			if !r.arg(flag) {
				r.put(flag, arg{
					w: words{
						s:   "false",
						n:   &node{kind: scalar, value: false, text: "false", pos: rest.n.pos},
						off: -1,
					},
					key: true, place: rest.n.pos,
				})
			}
		}
	}
	return true
}

// capture takes a variable of shorthand, unless a key has it too.
func (p *parser) capture(r *reading, name string, a arg) {
	key, _, _ := strings.Cut(name, ".")
	_, common := r.common[key]
	if r.arg(key) && r.args[key].key || common && r.own == nil {
		p.add(a.place, key+" is given in the line and as a key", "keep one of them")
		return
	}
	r.put(name, a)
}
