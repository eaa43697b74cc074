// Package graph shows a definition to people: as a tree of text, and as a picture.
//
// Invariants: the same definition gives the same bytes; every step is shown once, in the order of
// the definition; what a text of the definition holds cannot break out of a line of the tree or an
// element of the picture. Long texts are cut: this is for looking, not for reading back. It is
// pure; the commands call it.
package graph

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/droverhq/drover/decider/flow/model"
	"github.com/droverhq/drover/decider/flow/syntax"
)

// Kind says what a node is.
type Kind string

// The kinds.
const (
	Step Kind = "step"
	// the steps below are a run of their own, or one for each element of a loop
	Workflow Kind = "workflow"
	Handler  Kind = "handler" // the steps below run if what is above fails
	Root     Kind = "flow"
)

// Node is a step, or a group of steps.
type Node struct {
	Kind  Kind     `json:"kind"`
	Ref   string   `json:"ref,omitempty"`  // of a step
	Type  string   `json:"type,omitempty"` // of a step
	ID    string   `json:"id,omitempty"`
	Label string   `json:"label"`
	Notes []string `json:"notes,omitempty"` // conditions, timeouts and such
	Loop  bool     `json:"loop,omitempty"`  // what is below runs for each element
	// Jump is where the step goes on, as it stands there: an id, start, end, last. Target is the
	// Ref of that step if it is known before it runs.
	Jump   string  `json:"jump,omitempty"`
	Target string  `json:"target,omitempty"`
	Below  []*Node `json:"below,omitempty"`

	optional bool // it has a condition
}

// Of makes the graph of a definition.
func Of(d *model.Definition) *Node {
	b := &builder{types: map[string]model.Type{}, own: d.Types}
	for _, t := range model.Types() {
		b.types[t.Name] = t
	}
	n := &Node{Kind: Root, Label: line(firstOf(d.ID, d.Name, "a flow")), Notes: definitionNotes(d)}
	n.Below = b.definition(d)
	return n
}

func firstOf(texts ...string) string {
	for _, s := range texts {
		if s != "" {
			return s
		}
	}
	return ""
}

type builder struct {
	types map[string]model.Type
	own   map[string]*model.Definition
}

// scope has the ids of a list of steps; a jump looks in those around it, too.
type scope struct {
	outer *scope
	ids   map[string]string
}

func (s *scope) find(id string) string {
	for ; s != nil; s = s.outer {
		if ref, ok := s.ids[id]; ok {
			return ref
		}
	}
	return ""
}

func (b *builder) definition(d *model.Definition) []*Node {
	return append(b.list(d.Steps, nil), b.handler(d.OnError, nil)...)
}

func (b *builder) list(steps []*model.Step, outer *scope) []*Node {
	s := &scope{outer: outer, ids: map[string]string{}}
	for _, step := range steps {
		if step.ID != "" {
			s.ids[step.ID] = step.Ref
		}
	}
	var all []*Node
	for _, step := range steps {
		all = append(all, b.step(step, s))
	}
	return all
}

func (b *builder) handler(steps []*model.Step, outer *scope) []*Node {
	if len(steps) == 0 {
		return nil
	}
	return []*Node{{Kind: Handler, Label: "on error", Below: b.list(steps, outer)}}
}

func (b *builder) step(s *model.Step, in *scope) *Node {
	n := &Node{
		Kind: Step, Ref: s.Ref, Type: s.Type, ID: s.ID, optional: s.Condition != nil,
		Label: line(b.label(s)), Notes: stepNotes(s),
	}
	if n.Jump = line(s.Next); n.Jump != "" {
		n.Target = in.find(s.Next)
	}
	switch {
	case s.Nested != nil:
		n.Kind, n.Loop = Workflow, s.Loop != nil
		n.Notes = append(n.Notes, definitionNotes(s.Nested)...)
		n.Below = b.definition(s.Nested)
	case s.Then != nil:
		n.Below = b.list([]*model.Step{s.Then}, in)
	case len(s.Cases) > 0:
		n.Below = b.list(s.Cases, in)
	default:
		n.Below = b.list(s.Block, in)
	}
	n.Below = append(n.Below, b.handler(s.OnError, in)...)
	return n
}

// label is the line that the step could have been written as.
func (b *builder) label(s *model.Step) string {
	if s.Name != "" {
		return s.Type + ": " + s.Name
	}
	template := b.types[s.Type].Shorthand
	if own := b.own[s.Type]; own != nil {
		template = own.Shorthand
	}
	if l := s.Loop; l != nil {
		name := l.Var
		if len(l.Spread) > 0 {
			name = "{" + strings.Join(l.Spread, ",") + "}"
		}
		return fmt.Sprintf("%s %s in %s", s.Type, name, text(l.Target))
	}
	return strings.TrimSpace(s.Type + " " + fill(template, s.Inputs))
}

// fill puts inputs into a shorthand template, leaving out what is not given. It reads templates
// loosely: the model has checked them.
func fill(template string, inputs map[string]any) string {
	out, _, _ := fillPart(template, inputs, 0)
	return strings.Join(strings.Fields(strings.ReplaceAll(out, "\n", " ")), " ")
}

const maxFill = 20

// fillPart fills up to the end of a group. given says that the group holds a value.
func fillPart(t string, inputs map[string]any, depth int) (out, rest string, given bool) {
	for t != "" {
		switch {
		case t[0] == ']':
			return out, t[1:], given
		case t[0] == '[' && depth < maxFill:
			inner, after, has := fillPart(t[1:], inputs, depth+1)
			if t = after; has {
				out, given = out+inner, true
			}
		case t[0] == '"':
			word, after, _ := strings.Cut(t[1:], `"`)
			out, t = out+" "+word+" ", after
		case strings.HasPrefix(t, "?${") || strings.HasPrefix(t, "${"):
			flag := t[0] == '?'
			name, after, _ := strings.Cut(t[strings.IndexByte(t, '{')+1:], "}")
			name = strings.TrimSuffix(name, "...")
			v, ok := inputs[name]
			if args, pairs := v.(map[string]any); pairs && name == "args" {
				v = arguments(args)
			}
			if t = after; flag {
				given = given || ok && v == true
			} else if ok {
				out, given = out+" "+text(v)+" ", true
			}
		default:
			t = t[1:]
		}
	}
	return out, "", given
}

// arguments are as they stand in a line: a = 1, b = 2.
func arguments(m map[string]any) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		all = append(all, name+" = "+text(m[name]))
	}
	return strings.Join(all, ", ")
}

func stepNotes(s *model.Step) []string {
	var notes []string
	note := func(what, v string) {
		if v != "" {
			notes = append(notes, line(what+" "+v))
		}
	}
	note("if", condition(s.Condition))
	if l := s.Loop; l != nil {
		note("concurrency", l.Concurrency)
		note("reducing", strings.Join(slices.Sorted(maps.Keys(l.Reducing)), ", "))
	}
	note("timeout", s.Timeout)
	note("replayable", string(s.Replay))
	note("idempotent", string(s.Idempotent))
	if s.Output != nil {
		note("output", text(s.Output))
	}
	return notes
}

func definitionNotes(d *model.Definition) []string {
	var notes []string
	note := func(what, v string) {
		if v != "" {
			notes = append(notes, line(what+" "+v))
		}
	}
	note("parameters", strings.Join(slices.Sorted(maps.Keys(d.Parameters)), ", "))
	note("if", condition(d.Condition))
	note("timeout", d.Timeout)
	if l := d.Lock; l != nil {
		limit := ""
		if l.Limit > 1 {
			limit = fmt.Sprintf(", %d places", l.Limit)
		}
		note("lock", strings.TrimSpace(l.Name+" "+l.Scope)+limit)
	}
	switch r := d.Replayable; {
	case r.Disabled:
		note("replayable", "disabled")
	case r.FromStart && r.Automatically:
		note("replayable", "automatically from start")
	case r.FromStart:
		note("replayable", "from start")
	case r.Automatically:
		note("replayable", "automatically")
	}
	if d.IdempotentAll {
		note("idempotent", "all")
	}
	if d.Output != nil {
		note("output", text(d.Output))
	}
	return notes
}

func condition(v any) string {
	if v == nil {
		return ""
	}
	return text(v)
}

// text shows a value as one would write it in a line.
func text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "?"
	}
	return strings.TrimSpace(b.String())
}

// line makes any text one short line.
func line(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return '�'
		}
		return r
	}, strings.ToValidUTF8(s, "�"))
	return syntax.Clip(strings.Join(strings.Fields(s), " "))
}
