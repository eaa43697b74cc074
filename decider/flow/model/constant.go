package model

import (
	"slices"
	"strings"
)

// constant refuses what a step judges, or waits for, if no expression stands in it: nothing that
// happens would change it. true and false are left, as in conditions.
func (p *parser) constant(r *reading, judged string, others ...string) {
	a, ok := r.args[judged]
	if !ok {
		return
	}
	for _, name := range append(others, judged) {
		if one, ok := r.args[name]; ok && !fixed(one) {
			return
		}
	}
	if _, always := booleanOf(a.node().text); always && len(r.order) > 0 && !r.arg("equals") &&
		r.step.Type != "wait" {
		return
	}
	p.add(a.place, judged+" is "+a.node().says()+", which is always the same",
		expressionHint(a.node().text))
}

// judgesConstant refuses a word as the target of a condition, or of one within.
func (p *parser) judgesConstant(n *node) {
	for _, item := range n.items {
		p.judgesConstant(item)
	}
	for _, pair := range n.pairs {
		switch v := pair.value; {
		case pair.key == "target" && v.kind == text && v.text != "" && !dynamic(v.text):
			p.add(v.pos, "the condition's target is "+v.says()+", which is always the same",
				expressionHint(v.text))
		case slices.Contains([]string{"any", "all", "not", "check", "assert", "filter", "has-element"}, pair.key):
			p.judgesConstant(v)
		}
	}
}

// fixed reports whether a value has no expression. Lists and maps are taken for ones that have
// some.
func fixed(a arg) bool {
	n := a.node()
	return n.kind != list && n.kind != mapping && n.kind != null && !dynamic(n.text)
}

func expressionHint(word string) string {
	if word = strings.Trim(word, `"'`); variablePath.MatchString(word) && word != "true" &&
		word != "false" {
		return "did you mean ${" + word + "}?"
	}
	return "write an expression such as ${x}"
}
