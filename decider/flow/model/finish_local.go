package model

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/droverhq/drover/decider/flow/shorthand"
	"github.com/droverhq/drover/decider/flow/syntax"
)

// node makes a value of a part of a line, as if it stood by itself.
func (w words) node() *node {
	n := &node{kind: text, value: w.s, text: w.s, pos: w.at(0), shift: -1}
	if w.off >= 0 && w.n.shift >= 0 {
		n.shift = 0
	}
	return n
}

// word is one word of a line.
type lineWord struct {
	s        string
	from, to int
}

func split(line string) []lineWord {
	var all []lineWord
	for at := syntax.SkipSpace(line, 0); at < len(line); at = syntax.SkipSpace(line, at) {
		end := shorthand.WordEnd(line, at)
		all = append(all, lineWord{line[at:end], at, end})
		at = end
	}
	return all
}

// transformText reads [TYPE] (variable NAME | value VALUE | NAME [= VALUE] | VALUE) [| TRANSFORM],
// which is too much of a choice for a template.
func (p *parser) transformText(r *reading, rest words) bool {
	all := split(rest.s)
	part := func(name string, from, to int) {
		w := words{s: rest.s[from:to], n: rest.n, off: -1}
		if rest.off >= 0 {
			w.off = rest.off + from
		}
		p.capture(r, name, arg{w: w, place: w.at(0)})
	}
	if bar := slices.IndexFunc(all, func(w lineWord) bool { return w.s == "|" }); bar >= 0 {
		if bar == len(all)-1 {
			p.add(rest.at(all[bar].from), "nothing stands after |",
				"write a transform, such as trim")
			return false
		}
		part("transform", all[bar+1].from, all[len(all)-1].to)
		all = all[:bar]
	}
	if len(all) > 1 && slices.Contains(valueTypes, all[0].s) && all[1].s != "=" {
		part("type", all[0].from, all[0].to)
		all = all[1:]
	}
	if len(all) == 0 {
		return true // the rest is in keys
	}
	last := all[len(all)-1].to
	switch first := all[0]; {
	case first.s == "variable" && len(all) == 2:
		part("variable", all[1].from, last)
	case first.s == "value" && len(all) > 1:
		part("value", all[1].from, last)
	case len(all) > 2 && all[1].s == "=":
		part("variable", first.from, first.to)
		part("value", all[2].from, last)
	case len(all) == 1 && variablePath.MatchString(first.s):
		part("variable", first.from, first.to)
	default:
		part("value", first.from, last)
	}
	return true
}

func (p *parser) finishTransform(r *reading) {
	under := r.value("input")
	if !r.arg("value") && !r.arg("variable") &&
		(under == nil || under.get("value") == nil && under.get("variable") == nil) {
		p.add(r.n.pos, "transform needs a variable or a value", r.usage())
	}
	a, ok := r.args["transform"]
	r.unquoteValue(a)
	switch {
	case !ok:
	case !a.key || a.w.n.kind == text:
		p.checkTransform(a.w)
	case a.w.n.kind != list:
		p.add(a.place, "transform is "+a.w.n.is(),
			"write a chain such as trim | to_upper_case, or a list")
	default:
		for _, item := range a.w.n.items {
			if item.kind != text {
				p.add(item.pos, "a transform is "+item.is(), "write a text such as trim")
				continue
			}
			p.checkTransform(item.words())
		}
	}
}

// unquoteValue takes the quotes off a value that is one text in quotes in the line, as off any
// other but that of let. To merge each word is a value of its own, and says by its quotes what
// belongs to it.
func (r *reading) unquoteValue(chain arg) {
	v, ok := r.args["value"]
	if !ok || v.key || merges(chain) {
		return
	}
	inner, quoted := shorthand.Unwrap(v.w.s)
	if !quoted {
		return
	}
	if v.w.off >= 0 {
		v.w.off++
	}
	if len(inner) != len(v.w.s)-2 {
		v.w.off = -1
	}
	v.w.s = inner
	r.args["value"] = v
}

// merges tells whether a chain begins by merging.
func merges(chain arg) bool {
	texts := []string{chain.w.s}
	if chain.key && chain.w.n.kind == list {
		for _, item := range chain.w.n.items {
			texts = append(texts, item.text)
		}
	}
	for word := range strings.FieldsSeq(strings.Join(texts, " ")) {
		if word != "wait" && word != "|" {
			return word == "merge"
		}
	}
	return false
}

func (p *parser) checkTransform(w words) {
	if p.o.Checks.Transform != nil {
		p.explain(w, p.o.Checks.Transform(w.s))
	}
	all := split(w.s)
	for i, one := range all {
		if one.s != "set" || i > 0 && all[i-1].s != "|" || i+1 == len(all) {
			continue
		}
		if root := rootOf(all[i+1].s); slices.Contains(everywhere, root) {
			p.add(w.at(all[i+1].from), root+" is the name of what every run knows",
				"choose another name for the variable"+everywhereHint[root])
		}
	}
}

// forSignal is how else a line waits for a signal. The variable may stand in front or where
// [wait-for-signal] has it: it is no part of the name.
var forSignal = []*shorthand.Template{
	mustTemplate(`"for signal " [ [ ${type} ] ${variable} " = " ] ${signal}`),
	mustTemplate(`[ [ ${type} ] ${variable} " = " ] "for signal " ${signal}`),
}

func mustTemplate(text string) *shorthand.Template {
	t, err := shorthand.Parse(text)
	if err != nil {
		panic(err)
	}
	return t
}

// waitForSignal reads wait for signal NAME, which is a type of its own.
func (p *parser) waitForSignal(r *reading, rest words) bool {
	for _, form := range forSignal {
		if _, err := form.Match(rest.s, false); err == nil {
			r.spec = names["wait-for-signal"]
			r.step.Type = r.spec.Name
			return p.match(r, form, rest, false)
		}
	}
	return false
}

// finishArgs makes a map of k = v, k = v.
func (p *parser) finishArgs(r *reading) {
	a, ok := r.args["args"]
	if !ok || a.key {
		return
	}
	pairs := &node{kind: mapping, pos: a.place, shift: -1}
	all, open := commas(a.w.s)
	if open >= 0 {
		p.add(a.w.at(open), "what begins with "+a.w.s[open:open+1]+" has no end, and a comma in it",
			"close it, or put the whole value in quotes")
		return
	}
	for _, one := range all {
		parts := split(one.s)
		w := words{s: one.s, n: a.w.n, off: -1}
		if a.w.off >= 0 {
			w.off = a.w.off + one.from
		}
		if len(parts) < 3 || parts[1].s != "=" || !variableRoot.MatchString(parts[0].s) {
			p.add(w.at(syntax.SkipSpace(one.s, 0)),
				quoted(strings.TrimSpace(one.s))+" is no argument",
				"write NAME = VALUE, with spaces around = and commas between; quote a value with commas")
			return
		}
		if pairs.get(parts[0].s) != nil {
			p.add(w.at(parts[0].from), "the argument "+parts[0].s+" is given twice",
				"keep one of them")
		}
		pairs.pairs = append(pairs.pairs, pair{
			key: parts[0].s, pos: w.at(parts[0].from),
			value: bare(one.s[parts[2].from:parts[len(parts)-1].to]),
		})
	}
	r.put("args", arg{w: words{s: a.w.s, n: pairs, off: -1}, key: true, place: a.place})
}

// bare reads a value of a line as YAML would: numbers and booleans are what they look like, if they
// are written in the one way that loses nothing.
func bare(s string) *node {
	n := &node{kind: text, value: s, text: s}
	if inner, ok := shorthand.Unwrap(s); ok {
		n.value, n.text = inner, inner
		return n
	}
	if i, err := strconv.ParseInt(s, 10, 64); err == nil && strconv.FormatInt(i, 10) == s {
		n.kind, n.value = scalar, i
	} else if f, err := strconv.ParseFloat(s, 64); err == nil && fmt.Sprint(f) == s && strings.ContainsAny(s, ".") {
		n.kind, n.value = scalar, f
	} else if s == "true" || s == "false" {
		n.kind, n.value = scalar, s == "true"
	}
	return n
}

// commas splits at commas that neither quotes, brackets nor ${...} enclose. A quote or bracket
// without an end that holds a comma may have been meant in two ways: open is where it begins, else
// -1.
func commas(s string) (all []lineWord, open int) {
	from, depth, begin, holds := 0, 0, 0, false
	var quote byte
	for at := 0; at < len(s); at++ {
		switch c := s[at]; {
		case quote != 0 && c == '\\':
			at++
		case quote != 0:
			holds = holds || c == ','
			if c == quote {
				quote = 0
			}
		case (c == '"' || c == '\'') && at > 0 && syntax.Space(s[at-1]):
			quote = c
			if depth <= 0 {
				begin, holds = at, false
			}
		case c == '{' || c == '[' || c == '(':
			if depth++; depth == 1 {
				begin, holds = at, false
			}
		case c == ',' && depth > 0:
			holds = true
		case c == '}' || c == ']' || c == ')':
			depth--
		case c == ',' && depth <= 0:
			all = append(all, lineWord{s[from:at], from, at})
			from = at + 1
		}
	}
	open = -1
	if holds && (quote != 0 || depth > 0) {
		open = begin
	}
	return append(all, lineWord{s[from:], from, len(s)}), open
}

func (p *parser) finishContainer(r *reading) {
	n := 0
	for _, name := range []string{"command", "commands", "raw_command"} {
		a, ok := r.args[name]
		if !ok {
			continue
		}
		if n++; n > 1 {
			p.add(a.place, "the container has more than one of command, commands and raw_command",
				"keep one of them")
		}
	}
}
