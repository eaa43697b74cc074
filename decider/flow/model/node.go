package model

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/droverhq/drover/decider/flow/syntax"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

type kind int

const (
	null kind = iota + 1
	scalar
	text
	list
	mapping
)

// node is a value of the document with its place. Aliases point to one and the same node, so a node
// is never changed, and the weight says how large the tree is with all aliases written out.
type node struct {
	kind  kind
	pos   Position
	value any    // of a scalar: bool, int64 or float64; of a text: the string
	text  string // of a scalar or text: what stands there, without quotes
	// characters from pos to the text if the text stands there as it is; -1 if it was folded or
	// escaped
	shift int
	items []*node
	pairs []pair
	weight
}

type pair struct {
	key   string
	pos   Position
	value *node
	apart bool // white space stands between the key and its colon
}

type weight struct{ nodes, bytes int }

func (w *weight) add(o weight) { w.nodes, w.bytes = w.nodes+o.nodes, w.bytes+o.bytes }

// at is the place of an offset within the node's text.
func (n *node) at(offset int) Position {
	if n.shift < 0 || offset < 0 || offset > len(n.text) {
		return n.pos
	}
	return Position{n.pos.Line, n.pos.Column + n.shift + utf8.RuneCountInString(n.text[:offset])}
}

func (n *node) get(key string) *node {
	for _, p := range n.pairs {
		if p.key == key {
			return p.value
		}
	}
	return nil
}

// plain is the value as plain data, new each time.
func (n *node) plain() any {
	switch n.kind {
	case list:
		l := make([]any, len(n.items))
		for i, item := range n.items {
			l[i] = item.plain()
		}
		return l
	case mapping:
		m := make(map[string]any, len(n.pairs))
		for _, p := range n.pairs {
			m[p.key] = p.value.plain()
		}
		return m
	}
	return n.value
}

func (n *node) is() string {
	switch n.kind {
	case null:
		return "empty"
	case list:
		return "a list"
	case mapping:
		return "a map"
	case text:
		return "a text"
	}
	return fmt.Sprint("the value ", syntax.Line(n.text))
}

// says is a text in quotes, and of others what they are.
func (n *node) says() string {
	switch n.kind {
	case null, list, mapping:
		return n.is()
	}
	return quoted(n.text)
}

// tree makes nodes of what the YAML parser found.
type tree struct {
	anchors map[string]*node
	depth   int
	lines   []string
}

// fault is a YAML error that stops the reading.
type fault struct {
	at            Position
	problem, hint string
	colon         bool // a colon stands where YAML wants none
}

func (f *fault) Error() string { return f.problem }

func faulty(t *token.Token, hint, format string, args ...any) error {
	return &fault{at: place(t), problem: fmt.Sprintf(format, args...), hint: hint}
}

func place(t *token.Token) Position {
	if t == nil || t.Position == nil {
		return Position{1, 1}
	}
	return Position{max(1, t.Position.Line), max(1, t.Position.Column)}
}

func (t *tree) read(n ast.Node) (*node, error) {
	if n == nil {
		return &node{kind: null, pos: Position{1, 1}}, nil
	}
	t.depth++
	defer func() { t.depth-- }()
	if t.depth > maxDepth {
		return nil, faulty(n.GetToken(), "move parts into flows or step types of their own",
			"is nested deeper than %d", maxDepth)
	}
	got, err := t.dispatch(n)
	if err != nil {
		return nil, err
	}
	if got.nodes > maxNodes || got.bytes > maxBytes {
		return nil, faulty(n.GetToken(), "write less by way of aliases",
			"grows beyond %d values or %d bytes when its aliases are written out",
			maxNodes, maxBytes)
	}
	return got, nil
}

func (t *tree) dispatch(n ast.Node) (*node, error) {
	switch n := n.(type) {
	case *ast.NullNode:
		return t.leaf(n.Token, null, nil)
	case *ast.BoolNode:
		return t.leaf(n.Token, scalar, n.Value)
	case *ast.IntegerNode:
		return t.integer(n)
	case *ast.FloatNode:
		return t.float(n)
	case *ast.StringNode:
		return t.plain(n)
	case *ast.LiteralNode:
		return t.leaf(n.Start, text, n.Value.Value)
	case *ast.InfinityNode, *ast.NanNode:
		return nil, faulty(n.GetToken(), "quote it if it is a text", "%s is not a number that a "+
			"flow can hold", syntax.Line(n.GetToken().Value))
	case *ast.SequenceNode:
		return t.sequence(n)
	case *ast.MappingNode:
		return t.mapping(n.GetToken(), n.Values)
	case *ast.MappingValueNode:
		return t.mapping(n.Key.GetToken(), []*ast.MappingValueNode{n})
	case *ast.AnchorNode:
		return t.anchor(n)
	case *ast.AliasNode:
		return t.alias(n)
	case *ast.TagNode:
		return t.tag(n)
	}
	return nil, faulty(n.GetToken(), "use plain maps, lists, texts, numbers and booleans",
		"this kind of YAML (%s) is not understood", n.Type())
}

func (t *tree) leaf(tk *token.Token, k kind, value any) (*node, error) {
	n := &node{kind: k, pos: place(tk), value: value, shift: -1, text: tk.Value}
	if s, ok := value.(string); ok {
		n.text = s
	}
	n.weight = weight{1, 16 + len(n.text)}
	if n.pos.Line <= len(t.lines) {
		n.shift = shift(t.lines[n.pos.Line-1], n.pos.Column, n.text)
	}
	return n, nil
}

// shift finds the text at the column, or after a quote that stands there.
func shift(line string, column int, text string) int {
	line = line[offset(line, column):]
	switch {
	case text == "" || line == "":
		return -1
	case strings.HasPrefix(line, text):
		return 0
	case (line[:1] == `"` || line[:1] == "'") && strings.HasPrefix(line[1:], text):
		return 1
	}
	return -1
}

// offset is where in the line, in bytes, the column begins.
func offset(line string, column int) int {
	at := 0
	for range column - 1 {
		_, size := utf8.DecodeRuneInString(line[at:])
		at += size
	}
	return at
}

var (
	wholeNumber = regexp.MustCompile(`^([-+]?(0|[1-9][0-9]*)|0x[0-9A-Fa-f]+|0o[0-7]+)$`)
	realNumber  = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)
	allDigits   = regexp.MustCompile(`^[-+]?[0-9]+$`)
)

// plain reads what the library takes for a text. Without quotes some numbers are among these:
// integers that no 64 bits hold, and those with an exponent and no point. A sign in the exponent is
// how programs write them in JSON, and nobody writes in a text; without one it may be either.
func (t *tree) plain(n *ast.StringNode) (*node, error) {
	switch s := n.Token.Value; {
	case n.Token.Type != token.StringType:
	case allDigits.MatchString(s):
		return nil, faulty(n.Token, "quote it to keep it as a text",
			"the number %s does not fit into 64 bits", syntax.Line(s))
	case !realNumber.MatchString(s):
	case !strings.ContainsAny(s[1:], "+-"):
		return nil, unsure(n.Token)
	default:
		return t.real(n.Token)
	}
	return t.leaf(n.Token, text, n.Value)
}

func unsure(tk *token.Token) error {
	return faulty(tk, "quote it if it is a text, or write it as a plain number",
		"%s is a number to some readers of YAML and a text to others", syntax.Line(tk.Value))
}

func (t *tree) integer(n *ast.IntegerNode) (*node, error) {
	if !wholeNumber.MatchString(n.Token.Value) {
		return nil, unsure(n.Token)
	}
	i, err := strconv.ParseInt(strings.TrimPrefix(n.Token.Value, "+"), 0, 64)
	if err != nil {
		return nil, faulty(n.Token, "quote it to keep it as a text",
			"the number %s does not fit into 64 bits", syntax.Line(n.Token.Value))
	}
	return t.leaf(n.Token, scalar, i)
}

func (t *tree) float(n *ast.FloatNode) (*node, error) {
	if !realNumber.MatchString(n.Token.Value) {
		return nil, unsure(n.Token)
	}
	return t.real(n.Token)
}

func (t *tree) real(tk *token.Token) (*node, error) {
	f, err := strconv.ParseFloat(tk.Value, 64)
	if err != nil || math.IsInf(f, 0) {
		return nil, faulty(tk, "quote it to keep it as a text", "the number %s is too large",
			syntax.Line(tk.Value))
	}
	return t.leaf(tk, scalar, f)
}

func (t *tree) sequence(n *ast.SequenceNode) (*node, error) {
	got := &node{kind: list, pos: place(n.GetToken()), shift: -1, weight: weight{1, 16}}
	for _, v := range n.Values {
		item, err := t.read(v)
		if err != nil {
			return nil, err
		}
		got.items = append(got.items, item)
		got.add(item.weight)
	}
	return got, nil
}

func (t *tree) mapping(tk *token.Token, values []*ast.MappingValueNode) (*node, error) {
	got := &node{kind: mapping, pos: place(tk), shift: -1, weight: weight{1, 16}}
	if len(values) > 0 {
		got.pos = place(values[0].Key.GetToken())
	}
	seen := make(map[string]Position, len(values))
	var merged []*node
	for _, v := range values {
		if _, ok := v.Key.(*ast.MergeKeyNode); ok {
			more, err := t.merge(v)
			if err != nil {
				return nil, err
			}
			merged = append(merged, more...)
			continue
		}
		key, err := t.key(v.Key)
		if err != nil {
			return nil, err
		}
		if first, ok := seen[key.text]; ok {
			return nil, faulty(v.Key.GetToken(), "keep one of them",
				"the key %s was given before, in line %d", quoted(key.text), first.Line)
		}
		seen[key.text] = key.pos
		value, err := t.read(v.Value)
		if err != nil {
			return nil, err
		}
		got.pairs = append(got.pairs, pair{key.text, key.pos, value, t.apart(key)})
		got.bytes += len(key.text)
		got.add(value.weight)
	}
	for _, m := range merged {
		got.inherit(m, seen)
	}
	return got, nil
}

// apart tells whether white space stands between a key without quotes and its colon.
func (t *tree) apart(key *node) bool {
	if key.shift != 0 {
		return false
	}
	line := t.lines[key.pos.Line-1]
	rest := line[offset(line, key.pos.Column)+len(key.text):]
	return strings.HasPrefix(strings.TrimLeft(rest, " \t"), ":") && rest[0] != ':'
}

// inherit takes the pairs of a merged map whose keys are not there yet.
func (n *node) inherit(m *node, seen map[string]Position) {
	for _, p := range m.pairs {
		if _, ok := seen[p.key]; !ok {
			seen[p.key] = p.pos
			n.pairs = append(n.pairs, p)
			n.bytes += len(p.key)
			n.add(p.value.weight)
		}
	}
}

func (t *tree) merge(v *ast.MappingValueNode) ([]*node, error) {
	value, err := t.read(v.Value)
	if err != nil {
		return nil, err
	}
	all := []*node{value}
	if value.kind == list {
		all = value.items
	}
	for _, m := range all {
		if m.kind != mapping {
			return nil, faulty(v.Key.GetToken(), "put an alias of a map after <<",
				"<< takes maps only")
		}
	}
	return all, nil
}

func (t *tree) key(n ast.MapKeyNode) (*node, error) {
	if s, ok := n.(*ast.StringNode); ok { // a key is a text, whatever it looks like
		return t.leaf(s.Token, text, s.Value)
	}
	key, err := t.read(n)
	if err != nil {
		return nil, err
	}
	if key.kind != text && key.kind != scalar {
		return nil, faulty(n.GetToken(), "use a text as the key", "a key is %s", key.is())
	}
	return key, nil
}

func (t *tree) anchor(n *ast.AnchorNode) (*node, error) {
	value, err := t.read(n.Value)
	if err == nil && n.Name != nil {
		t.anchors[n.Name.GetToken().Value] = value
	}
	return value, err
}

func (t *tree) alias(n *ast.AliasNode) (*node, error) {
	name := ""
	if n.Value != nil {
		name = n.Value.GetToken().Value
	}
	if value, ok := t.anchors[name]; ok {
		return value, nil
	}
	return nil, faulty(n.GetToken(),
		"set the anchor with & above it, not around it; quote the text if it is no alias",
		"there is no anchor %s before this alias", quoted(name))
}

// tag understands !!str before a scalar.
func (t *tree) tag(n *ast.TagNode) (*node, error) {
	if n.Start.Value == "!!str" {
		if _, ok := n.Value.(ast.ScalarNode); ok {
			tk := n.Value.GetToken()
			if s, ok := n.Value.(*ast.StringNode); ok {
				return t.leaf(tk, text, s.Value)
			}
			return t.leaf(tk, text, tk.Value)
		}
	}
	return nil, faulty(n.Start, "leave it out; quote what is to be a text",
		"the tag %s is not understood", syntax.Line(n.Start.Value))
}
