package model

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// finished checks the inputs, lets the type put its own in place, and reads the common keys.
func (p *parser) finished(r *reading) *Step {
	if r.own != nil {
		p.checkOwn(r)
	} else {
		p.checkInputs(r)
	}
	if pair, ok := r.common["input"]; ok {
		p.inputKey(r, pair)
	}
	body := p.finishType(r)
	r.step.Nested = body
	p.commonKeys(r, body)
	p.keepInputs(r, body)
	return r.step
}

// finishType returns the nested definition, if the step has one.
func (p *parser) finishType(r *reading) *Definition {
	switch r.step.Type {
	case "let":
		p.finishLet(r)
	case "transform":
		p.finishTransform(r)
	case "goto":
		p.finishGoto(r)
	case "label":
		p.finishLabel(r)
	case "if":
		p.finishIf(r)
	case "switch":
		p.finishSwitch(r)
	case "wait":
		p.constant(r, "value")
	case "subworkflow":
		p.finishBlock(r)
	case "workflow":
		return p.finishWorkflow(r)
	case "foreach":
		return p.finishForeach(r)
	case "retry":
		p.finishRetry(r)
	case "fail":
		if a, ok := r.take("retention"); ok {
			p.changeRetention(r, a)
		}
	case "activity", "child":
		p.finishArgs(r)
	case "container":
		p.finishContainer(r)
	}
	return nil
}

// inputKey takes what stands under input.
func (p *parser) inputKey(r *reading, pair pair) {
	if !p.given(pair.value, "input") {
		return
	}
	if pair.value.kind != mapping {
		p.add(pair.value.pos, "input is "+pair.value.is(), "write a map")
		return
	}
	for _, in := range pair.value.pairs {
		if r.arg(in.key) {
			p.add(in.pos, quoted(in.key)+" is given twice",
				"keep the key of the step or the one under input")
			continue
		}
		p.checkTexts(in.value)
		r.put(in.key, arg{w: in.value.words(), key: true, place: in.pos})
	}
}

// keepInputs stores what no function has taken. Dots of a shorthand's names nest maps.
func (p *parser) keepInputs(r *reading, body *Definition) {
	inputs := map[string]any{}
	for _, name := range r.order {
		a, ok := r.args[name]
		if !ok {
			continue
		}
		if a.key {
			inputs[name] = a.value()
			continue
		}
		nest(inputs, strings.Split(name, "."), a.value())
	}
	switch {
	case len(inputs) == 0:
	case body != nil:
		body.Input = inputs
	default:
		r.step.Inputs = inputs
	}
}

func nest(m map[string]any, path []string, v any) {
	for ; len(path) > 1; path = path[1:] {
		inner, ok := m[path[0]].(map[string]any)
		if !ok {
			inner = map[string]any{}
			m[path[0]] = inner
		}
		m = inner
	}
	m[path[0]] = v
}

// commonKeys reads what every step may have. Of a step with a nested definition, some of it belongs
// to each nested run.
func (p *parser) commonKeys(r *reading, body *Definition) {
	s := r.step
	s.Name = p.line(r.value("name"), "name")
	if v := r.value("metadata"); v != nil {
		s.Metadata = v.plain()
	}
	if v := r.value("id"); v != nil {
		s.ID = p.line(v, "id")
	}
	p.identify(r)
	if v := r.value("next"); v != nil {
		s.Next = p.line(v, "next")
		p.target(s.Next, v.words(), r)
	}
	if v := r.value("idempotent"); v != nil {
		p.idempotent(r, v, body)
	}
	if v := r.value("replayable"); v != nil {
		p.stepReplayable(r, v, body)
	}
	if body == nil {
		p.ownKeys(r)
		return
	}
	body.Name = s.Name
	body.Output = p.data(r.value("output"), "output")
	body.Timeout = p.length(r.value("timeout"), "timeout")
	if v := r.value("condition"); v != nil && s.Loop == nil {
		s.Condition = p.condition(v, r.at.judged || r.at.handler != 0)
	}
	p.nested(body, r.bodyNode(), r.within(s.Ref+"."))
}

func (p *parser) ownKeys(r *reading) {
	s := r.step
	s.Output = p.data(r.value("output"), "output")
	s.Timeout = cmp.Or(p.length(r.value("timeout"), "timeout"), s.Timeout)
	if v := r.value("condition"); v != nil {
		s.Condition = p.condition(v, r.at.judged || r.at.handler != 0)
	}
	if v := r.value("on-error"); v != nil {
		at := r.at
		at.handler, at.base = ofStep, s.Ref+".on-error."
		s.OnError = p.handlers(v, at)
	}
}

// value is that of a common key, nil if it is absent.
func (r *reading) value(key string) *node {
	if pair, ok := r.common[key]; ok {
		return pair.value
	}
	return nil
}

// bodyNode has the keys that a nested definition reads itself.
func (r *reading) bodyNode() *node {
	n := &node{kind: mapping, pos: r.n.pos}
	for _, key := range []string{"on-error", "lock", "output"} {
		if pair, ok := r.common[key]; ok {
			n.pairs = append(n.pairs, pair)
		}
	}
	if pair, ok := r.common["condition"]; ok && r.step.Loop != nil {
		n.pairs = append(n.pairs, pair)
	}
	for _, key := range []string{"steps", "lock"} {
		if a, ok := r.take(key); ok {
			n.pairs = append(n.pairs, pair{key: key, pos: a.place, value: a.w.n})
		}
	}
	return n
}

// within is a place in a workflow of its own: jumps do not leave it.
func (r *reading) within(base string) spot {
	at := r.at
	at.scope = &scope{ids: map[string]Position{}}
	at.base, at.item, at.handler, at.judged = base, false, 0, false
	return at
}

// identify notes the step's id.
func (p *parser) identify(r *reading) {
	id := r.step.ID
	if id == "" {
		return
	}
	at := r.n.pos
	if v := r.value("id"); v != nil {
		at = v.pos
	}
	switch first, taken := r.at.scope.ids[id]; {
	case r.at.item:
		p.add(at, "an item of a handler has an id",
			"items are not jumped to: leave it out, or put it into a block under steps")
	case !stepID.MatchString(id):
		p.add(at, "the id "+quoted(id)+" cannot be used",
			"begin with a letter, a digit or _, then letters, digits, _, - and . only")
	case slices.Contains(reserved, strings.ToLower(id)):
		p.add(at, "the id "+id+" is reserved",
			"choose another; reserved are "+strings.Join(reserved, ", "))
	case taken:
		p.add(at,
			"the id "+quoted(id)+" is used twice in this block, first in line "+itoa(first.Line),
			"choose another")
	default:
		r.at.scope.ids[id] = at
	}
}

var stepID = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`)

func (p *parser) idempotent(r *reading, v *node, body *Definition) {
	yes, boolean := booleanOf(v.text)
	switch {
	case boolean && yes:
		r.step.Idempotent = Idempotent
	case boolean:
		r.step.Idempotent = NotIdempotent
	case v.text == "default", v.kind == null, v.text == "" && v.kind == text:
	case v.text == "all" && body != nil:
		body.IdempotentAll = true
	default:
		hint := "write yes, no or default"
		if body != nil {
			hint += "; or all, for each step within"
		}
		p.add(v.pos, "idempotent is "+v.says(), hint)
	}
}

func (p *parser) stepReplayable(r *reading, v *node, body *Definition) {
	if !p.given(v, "replayable") {
		return
	}
	if point, ok := replayPoint(v.text); ok {
		r.step.Replay = point
		return
	}
	of, ok := replayableOf(v.text)
	switch {
	case ok && body != nil:
		body.Replayable = of
	case ok:
		p.add(v.pos, "replayable of a step is "+v.says(),
			"it is a value of workflows; a step takes from here, from here only or reset")
	default:
		p.add(v.pos, "replayable is "+v.says(),
			"a step takes from here, from here only or reset; a workflow enabled, disabled, "+
				"from start or automatically")
	}
}

// handlers reads on-error: one step, or a list of them.
func (p *parser) handlers(n *node, at spot) []*Step {
	if !p.given(n, "on-error") {
		return nil
	}
	items := []*node{n}
	if n.kind == list {
		items = n.items
	}
	if len(items) == 0 {
		p.add(n.pos, "on-error is an empty list",
			"write at least one step, for example fail rethrow")
	}
	var steps []*Step
	base := at.base
	at.depth++
	at.item = true
	for i, item := range items {
		at.base = base + itoa(i)
		if s := p.one(item, at); s != nil {
			steps = append(steps, s)
		}
	}
	return steps
}

// checkOwn judges a step of a registered type by its parameters.
func (p *parser) checkOwn(r *reading) {
	params := slices.Sorted(maps.Keys(r.own.Parameters))
	for _, name := range r.order {
		a := r.args[name]
		if hint := cmp.Or(structural[name],
			map[string]string{"target": structural["concurrency"]}[name]); hint != "" && a.key {
			p.add(a.place, "a step of the registered type "+r.step.Type+" cannot set "+name,
				"set it in the type's definition")
			continue
		}
		if a.key {
			p.checkTexts(a.w.n)
			if !slices.Contains(params, name) {
				p.misspelt(r, name, a, params)
			}
			continue
		}
		p.checkText(a.w)
	}
	if r.at.handler != 0 {
		p.add(r.n.pos, "a step of a registered type stands in a handler", noNested)
	}
	if r.at.disabled && p.locks(r.own) {
		p.add(r.n.pos, r.step.Type+" takes a lock where retention is disabled",
			"after a crash nobody would free the lock: write retention: 0 instead")
	}
	for _, name := range params {
		param := r.own.Parameters[name]
		under := r.value("input")
		if param.Required && param.Default == nil && !r.partly(name) &&
			(under == nil || under.get(name) == nil) {
			p.add(r.n.pos, r.step.Type+" needs "+name, "give it as a key"+cmp.Or(map[bool]string{
				true: ", or write " + r.step.Type + " " + r.own.Shorthand,
			}[r.own.Shorthand != ""], ""))
		}
	}
}

// locks tells whether a registered type, or one that it uses, takes a lock.
func (p *parser) locks(d *Definition) bool {
	if d.Lock != nil {
		return true
	}
	for s := range d.All() {
		if s.Nested != nil && s.Nested.Lock != nil ||
			p.types[s.Type] != nil && p.locks(p.types[s.Type]) {
			return true
		}
	}
	return false
}

// partly tells whether an input, or a part of it, is given.
func (r *reading) partly(name string) bool {
	return slices.ContainsFunc(r.order,
		func(o string) bool { return o == name || strings.HasPrefix(o, name+".") })
}

const noNested = "handlers hold no workflows: do it in a step that the handler goes to"
