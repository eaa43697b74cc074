package model

import (
	"slices"
	"strings"
)

func (p *parser) finishGoto(r *reading) {
	if a, ok := r.take("next"); ok {
		r.step.Next = a.w.s
		p.target(a.w.s, a.w, r)
	}
}

func (p *parser) finishLabel(r *reading) {
	if a, ok := r.take("id"); ok {
		r.step.ID = a.w.s
	}
}

// finishRetry puts next and timeout where keys would. The order of the line is fixed, so a word out
// of order ends up in the text before it.
func (p *parser) finishRetry(r *reading) {
	p.finishGoto(r)
	if a, ok := r.take("timeout"); ok {
		r.step.Timeout = a.w.s
	}
	if a, ok := r.args["limit"]; ok {
		for _, w := range a.texts() {
			p.retryPart(w, "limit", p.o.Checks.Limit)
		}
	}
	if a, ok := r.args["backoff"]; ok {
		for _, w := range a.texts() {
			p.retryPart(w, "backoff", p.o.Checks.Backoff)
		}
	}
}

// texts are the text itself, or the items of a list.
func (a arg) texts() []words {
	if !a.key || a.w.n.kind != list {
		return []words{a.w}
	}
	var all []words
	for _, item := range a.w.n.items {
		all = append(all, item.words())
	}
	return all
}

func (p *parser) retryPart(w words, what string, check func(string) error) {
	for _, one := range split(w.s) {
		switch one.s {
		case "replay", "from", "limit", "backoff", "timeout":
			p.add(w.at(one.from), one.s+" stands within "+what,
				"the order is fixed: retry [replay] [from ID] [limit L] [backoff B] [timeout D]")
			return
		}
	}
	if check != nil && !dynamic(w.s) {
		p.explain(w, check(w.s))
	}
}

// finishIf has a one-line step, which ends the workflow with goto end, or a block, which goto end
// leaves.
func (p *parser) finishIf(r *reading) {
	p.constant(r, "target", "equals")
	then, one := r.take("then")
	steps, many := r.take("steps")
	switch {
	case one && many:
		p.add(steps.place, "the step has then and steps", "keep one of them")
	case one:
		r.step.Then = p.inline(r, then, ".then")
	case many:
		r.step.Block = p.inner(r, steps)
	default:
		p.add(r.n.pos, "nothing is to be done if it holds", "write if ... then STEP, or steps")
	}
}

func (a arg) node() *node {
	if a.key {
		return a.w.n
	}
	return a.w.node()
}

// inline reads a step that stands in the line of another. Nothing can jump to it.
func (p *parser) inline(r *reading, a arg, under string) *Step {
	n := a.node()
	if !p.given(n, strings.TrimPrefix(under, ".")) {
		return nil
	}
	at := r.at
	at.base, at.depth, at.item, at.judged = r.step.Ref+under, at.depth+1, true, false
	return p.one(n, at)
}

// inner reads a block that shares the variables of the run. Its ids hide those outside.
func (p *parser) inner(r *reading, a arg) []*Step {
	at := r.at
	at.scope = &scope{outer: at.scope, ids: map[string]Position{}}
	at.base, at.judged = r.step.Ref+".steps.", false
	return p.block(a.node(), at)
}

func (p *parser) finishBlock(r *reading) {
	for _, key := range []string{"target", "target_var_name", "target_index_var_name"} {
		if a, ok := r.take(key); ok {
			p.add(a.place, "a subworkflow has no "+key, "use workflow or foreach")
		}
	}
	if a, ok := r.take("steps"); ok {
		r.step.Block = p.inner(r, a)
	}
}

func (p *parser) finishSwitch(r *reading) {
	p.constant(r, "value")
	a, ok := r.take("cases")
	switch {
	case !ok || !p.given(a.w.n, "cases"):
		return
	case a.node().kind != list || len(a.node().items) == 0:
		p.add(a.place, "cases is "+a.node().is(),
			"write a list of steps, each but the last with a condition")
		return
	}
	at := r.at
	at.depth++
	at.item, at.judged = true, true
	for i, n := range a.w.n.items {
		at.base = r.step.Ref + ".cases." + itoa(i)
		s := p.one(n, at)
		if s == nil {
			continue
		}
		if s.Condition == nil && i < len(a.w.n.items)-1 {
			p.add(n.pos, "a case that is not the last has no condition",
				"give it one, or make it the last")
		}
		r.step.Cases = append(r.step.Cases, s)
	}
}

// finishWorkflow reads a workflow within, or a change of how the run is replayed and kept.
func (p *parser) finishWorkflow(r *reading) *Definition {
	p.shortReplayable(r)
	if r.arg("steps") || r.arg("target") || r.arg("lock") ||
		r.has("output") && !r.arg("retention") {
		body := p.body(r)
		if a, ok := r.take("target"); ok {
			r.step.Loop = p.loop(r, a)
		}
		p.onlyLoop(r)
		return body
	}
	a, ok := r.take("retention")
	switch {
	case ok:
		p.changeRetention(r, a)
	case !r.has("replayable"):
		p.add(r.n.pos, "the workflow has no steps",
			"list them under steps, or write workflow replayable ... or workflow retention ...")
	}
	p.onlyLoop(r)
	return nil
}

// shortReplayable lets replayable of a line be the common key.
func (p *parser) shortReplayable(r *reading) {
	if a, ok := r.take("replayable"); ok {
		r.common["replayable"] = pair{key: "replayable", pos: a.place, value: a.w.node()}
	}
}

// changeRetention is for a step that says how the run is kept from now on.
func (p *parser) changeRetention(r *reading, a arg) {
	n := a.node()
	if !p.given(n, "retention") {
		return
	}
	if r.step.Retention = p.retention(n); r.step.Retention != nil && r.step.Retention.Disabled &&
		r.at.locked {
		p.add(a.place, "a run that has a lock disables its retention",
			"after a crash nobody would free the lock: write retention 0 instead")
	}
}

// body begins the nested definition.
func (p *parser) body(r *reading) *Definition {
	if r.at.handler != 0 {
		p.add(r.n.pos, "a step of type "+r.step.Type+" stands in a handler", noNested)
	}
	d := &Definition{Pos: r.n.pos}
	if a, ok := r.take("retention"); ok {
		d.Retention = p.retention(a.node())
	}
	if a, ok := r.args["lock"]; ok {
		d.Lock = p.lock(a.w.n)
	}
	return d
}

// onlyLoop complains of keys that mean nothing without a target.
func (p *parser) onlyLoop(r *reading) {
	for _, key := range []string{"target_var_name", "target_index_var_name", "concurrency", "reducing"} {
		if a, ok := r.take(key); ok && r.step.Loop == nil {
			p.add(a.place, key+" without a target", "give a target, or leave it out")
		}
	}
}

func (p *parser) finishForeach(r *reading) *Definition {
	body := p.body(r)
	target, _ := r.take("target")
	r.step.Loop = p.loop(r, target)
	do, one := r.take("do")
	steps, many := r.args["steps"]
	switch {
	case one && many:
		p.add(steps.place, "the step has do and steps", "keep one of them")
	case one:
		n := do.node()
		r.put("steps", arg{
			w:   words{n: &node{kind: list, pos: n.pos, items: []*node{n}, shift: -1}, off: -1},
			key: true, place: do.place,
		})
	}
	return body
}

// loop reads what goes with a target.
func (p *parser) loop(r *reading, target arg) *Loop {
	l := &Loop{Var: "target", IndexVar: "target_index"}
	if !target.key && strings.HasPrefix(target.w.s, "[") {
		if n, err := target.yaml(); err == nil && n.kind == list {
			target.w, target.key = words{n: n}, true
			p.checkTexts(n)
		}
	}
	if target.w.n != nil {
		l.Target = target.value()
		p.loopTarget(target)
	}
	if a, ok := r.take("target_var_name"); ok {
		p.loopVar(l, a)
	}
	if a, ok := r.take("target_index_var_name"); ok {
		l.IndexVar = a.w.s
	}
	if a, ok := r.take("concurrency"); ok {
		n := a.node()
		if l.Concurrency = p.line(n, "concurrency"); !dynamic(l.Concurrency) &&
			l.Concurrency != "" && p.o.Checks.Concurrency != nil {
			p.explain(n.words(), p.o.Checks.Concurrency(l.Concurrency))
		}
		if r.arg("reducing") && l.Concurrency != "1" {
			p.add(a.place, "a step with reducing has concurrency "+quoted(l.Concurrency),
				"one run hands its variables to the next: write 1, or leave it out")
		}
	}
	if a, ok := r.take("reducing"); ok {
		if l.Reducing = p.dict(a.node(), "reducing"); l.Reducing != nil {
			p.reducingNames(a.w.n)
		}
	}
	return l
}

func (p *parser) loopTarget(a arg) {
	switch n := a.node(); n.kind {
	case list:
	case text:
		if n.text == "children" || n.text == "members" {
			p.add(a.place, "target is "+quoted(n.text), noEntities)
		} else if !dynamic(n.text) && !strings.Contains(n.text, "..") {
			p.add(a.place, "target is "+quoted(n.text),
				"write a list, a range such as 1..10, or an expression such as ${items}")
		}
	default:
		p.add(a.place, "target is "+n.is(),
			"write a list, a range such as 1..10, or an expression such as ${items}")
	}
}

// loopVar reads a name, or {a,b}.
func (p *parser) loopVar(l *Loop, a arg) {
	inner, spread := strings.CutPrefix(strings.TrimSpace(a.w.s), "{")
	names := []string{a.w.s}
	if spread {
		names = strings.Split(strings.TrimSuffix(inner, "}"), ",")
	}
	for i, name := range names {
		name = strings.TrimSpace(name)
		names[i] = name
		if !variableRoot.MatchString(name) || slices.Contains(everywhere, name) ||
			spread && !strings.HasSuffix(inner, "}") {
			p.add(a.place, quoted(a.w.s)+" is no name of a variable",
				"write a name, or {a,b} to spread maps")
			return
		}
	}
	if spread {
		l.Spread = names
		return
	}
	l.Var = names[0]
}

func (p *parser) reducingNames(n *node) {
	for _, pair := range n.pairs {
		if !variableRoot.MatchString(pair.key) || slices.Contains(everywhere, pair.key) {
			p.add(pair.pos, quoted(pair.key)+" is no name of a variable",
				"reducing has the names of variables with their first values")
		}
	}
}
