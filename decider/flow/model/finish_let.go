package model

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/droverhq/drover/decider/flow/syntax"
	"github.com/droverhq/drover/decider/flow/value"
)

// finishLet chooses the mode of interpolation: shorthand is read in words, and what is a list or a
// map there as under a key.
func (p *parser) finishLet(r *reading) {
	p.container(r)
	a, ok := r.args["value"]
	if !ok {
		return
	}
	mode := "full"
	if !a.key {
		mode = "words"
	}
	if m, ok := r.args["interpolation_mode"]; ok {
		mode = strings.ToLower(m.w.s)
	} else {
		r.put("interpolation_mode", arg{w: words{s: mode, n: r.n, off: -1}})
	}
	if a.key && a.w.n.kind != text {
		p.checkTexts(a.w.n)
		return
	}
	switch check := p.o.Checks.Let; {
	case mode == "words" && check != nil:
		p.explain(a.w, check(a.w.s))
	case mode == "full":
		p.checkText(a.w)
	}
}

// container reads a value in the line that is a list or a map: one that begins with [ or {, and any
// YAML of one after the type list or map. It then means what the same value under a key does.
// Others are left as they are.
func (p *parser) container(r *reading) {
	a, ok := r.args["value"]
	if !ok || a.key || r.arg("interpolation_mode") {
		return
	}
	kind := r.args["type"].w.s
	typed, begins := kind == "list" || kind == "map", strings.HasPrefix(a.w.s, "[") ||
		strings.HasPrefix(a.w.s, "{")
	if !typed && !begins {
		return
	}
	n, err := a.yaml()
	switch {
	case err == nil && (n.kind == list || n.kind == mapping):
		r.put("value", arg{w: words{n: n}, key: true, place: a.place})
	case typed && (begins || strings.Contains(a.w.s, "\n")):
		problem := "the " + kind + " is no YAML"
		if err != nil {
			problem += ": " + syntax.Line(strings.TrimPrefix(err.Error(), "read YAML: "))
		}
		p.add(a.place, problem,
			fmt.Sprintf("write the value under its key: {step: let %s %s, value: %s}", kind,
				r.args["variable"].w.s, map[string]string{"list": "[...]", "map": "{...}"}[kind]))
	}
}

// Private use characters stand for an expression while YAML is read: it would take the braces of
// ${...} for a map.
const exprFrom, exprTo = "\ue000", "\ue001"

// yaml reads a text of the line. Expressions in it are no YAML, so a value with commas or quotes
// cannot change the structure.
func (a arg) yaml() (*node, error) {
	text := dedented(a.w)
	if strings.ContainsAny(text, exprFrom+exprTo) {
		return nil, fmt.Errorf("it has the character %s or %s",
			strconv.QuoteToASCII(exprFrom), strconv.QuoteToASCII(exprTo))
	}
	var b strings.Builder
	var inside []string
	for {
		at := strings.Index(text, "${")
		if at < 0 {
			break
		}
		end := syntax.Braces(text, at)
		b.WriteString(text[:at] + exprFrom + strconv.Itoa(len(inside)) + exprTo)
		inside = append(inside, text[at:end])
		text = text[end:]
	}
	b.WriteString(text)
	v, err := value.FromYAML(b.String(), value.Limits{Bytes: maxBytes, Depth: maxDepth})
	if err != nil {
		return nil, err
	}
	restored := make([]string, 0, 2*len(inside))
	for i, one := range inside {
		restored = append(restored, exprFrom+strconv.Itoa(i)+exprTo, one)
	}
	return nodeOf(v, a.place, strings.NewReplacer(restored...)), nil
}

// dedented is a text whose lines all lose the indentation of the first one, which the line before
// it has taken off.
func dedented(w words) string {
	if w.off < 0 || w.off+len(w.s) > len(w.n.text) || !strings.Contains(w.s, "\n") {
		return w.s
	}
	before := w.n.text[:w.off]
	margin := before[strings.LastIndexByte(before, '\n')+1:]
	if strings.TrimLeft(margin, " ") != "" {
		return w.s
	}
	return strings.ReplaceAll(w.s, "\n"+margin, "\n")
}

// nodeOf makes a node of plain data, all of it at one place.
func nodeOf(v any, at Position, restore *strings.Replacer) *node {
	n := &node{kind: scalar, pos: at, shift: -1, value: v}
	switch v := v.(type) {
	case nil:
		n.kind = null
	case string:
		s := restore.Replace(v)
		n.kind, n.value, n.text = text, s, s
	case []any:
		n.kind = list
		for _, item := range v {
			n.items = append(n.items, nodeOf(item, at, restore))
		}
	case map[string]any:
		n.kind = mapping
		for _, key := range value.Keys(v) {
			n.pairs = append(n.pairs, pair{key: restore.Replace(key), pos: at, value: nodeOf(v[key], at, restore)})
		}
	default:
		n.text = fmt.Sprint(v)
	}
	return n
}
