package value

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// FromYAML reads one YAML document, JSON included. Instants stay texts. Aliases count as often as
// they are used, so a text that would grow without bound is refused; merge keys and documents that
// hold themselves are refused too.
func FromYAML(text string, l Limits) (any, error) {
	if len(text) > l.bytes() { // before the parser takes many times as much
		return nil, fmt.Errorf("%w: %d bytes of YAML", ErrLimit, len(text))
	}
	var doc yaml.Node
	dec := yaml.NewDecoder(strings.NewReader(text))
	if err := dec.Decode(&doc); err != nil {
		if strings.TrimSpace(text) == "" {
			return nil, nil
		}
		return nil, fmt.Errorf("read YAML: %w", err)
	}
	var more yaml.Node
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, errors.New("read YAML: there is more than one document")
	}
	m := meter{left: l.bytes(), depth: l.depth()}
	return m.node(&doc, 0)
}

// ToYAML writes a value as a YAML document in block style with sorted keys.
func ToYAML(v any) (string, error) {
	n, err := toNode(v)
	if err != nil {
		return "", err
	}
	out, err := yaml.Marshal(n)
	if err != nil {
		return "", fmt.Errorf("write YAML: %w", err)
	}
	return string(out), nil
}

// toNode chooses the style of texts itself: what yaml makes of a key with a line break, or of a
// text that begins with white space, it cannot always read again.
func toNode(v any) (*yaml.Node, error) {
	switch v := v.(type) {
	case nil:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}, nil
	case []any:
		n := &yaml.Node{Kind: yaml.SequenceNode}
		for _, e := range v {
			inner, err := toNode(e)
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, inner)
		}
		return n, nil
	case map[string]any:
		n := &yaml.Node{Kind: yaml.MappingNode}
		for _, k := range Keys(v) {
			inner, err := toNode(v[k])
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, textNode(k, true), inner)
		}
		return n, nil
	}
	text, err := Text(v)
	if err != nil {
		return nil, err
	}
	switch v.(type) {
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: text}, nil
	case int64:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: text}, nil
	case float64:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!float", Value: text}, nil
	}
	return textNode(text, false), nil
}

func textNode(s string, key bool) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
	switch {
	case !strings.ContainsFunc(s, unplain):
	case !key && block(s):
		n.Style = yaml.LiteralStyle
	default:
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

// unplain are line breaks and what cannot be seen.
func unplain(r rune) bool {
	return r < ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 || r == 0xfeff
}

// block reports whether a text with line breaks can be written line by line.
func block(s string) bool {
	odd := func(r rune) bool { return r != '\n' && (r < ' ' || r >= 0x7f) }
	return !strings.HasPrefix(s, " ") && !strings.HasPrefix(s, "\n") &&
		!strings.Contains(s, "\n ") && !strings.ContainsFunc(s, odd)
}

func (m *meter) node(n *yaml.Node, depth int) (any, error) {
	if depth > m.depth {
		return nil, m.spend(0, depth)
	}
	switch n.Kind {
	case yaml.DocumentNode:
		if len(n.Content) != 1 {
			return nil, nil
		}
		return m.node(n.Content[0], depth)
	case yaml.AliasNode:
		if err := m.spend(8, depth); err != nil {
			return nil, err
		}
		return m.node(n.Alias, depth+1)
	case yaml.SequenceNode:
		return m.sequence(n, depth)
	case yaml.MappingNode:
		return m.mappingNode(n, depth)
	}
	v, err := yamlScalar(n)
	if err != nil {
		return nil, err
	}
	return m.of(v, depth)
}

func (m *meter) sequence(n *yaml.Node, depth int) (any, error) {
	if err := m.spend(8, depth+1); err != nil {
		return nil, err
	}
	out := make([]any, 0, len(n.Content))
	for _, e := range n.Content {
		v, err := m.node(e, depth+1)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

func (m *meter) mappingNode(n *yaml.Node, depth int) (any, error) {
	if err := m.spend(8, depth+1); err != nil {
		return nil, err
	}
	out := make(map[string]any, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, e := n.Content[i], n.Content[i+1]
		if k.Kind != yaml.ScalarNode || k.ShortTag() == "!!merge" {
			return nil, fmt.Errorf("read YAML: the key in line %d is no plain text", k.Line)
		}
		if _, ok := out[k.Value]; ok {
			return nil, fmt.Errorf("read YAML: the key %q occurs twice, again in line %d",
				k.Value, k.Line)
		}
		if err := m.spend(len(k.Value), depth+1); err != nil {
			return nil, err
		}
		v, err := m.node(e, depth+1)
		if err != nil {
			return nil, err
		}
		out[k.Value] = v
	}
	return out, nil
}

func yamlScalar(n *yaml.Node) (any, error) {
	switch n.ShortTag() {
	case "!!null":
		return nil, nil
	case "!!bool":
		return n.Value == "true" || n.Value == "True" || n.Value == "TRUE", nil
	case "!!int":
		i, err := strconv.ParseInt(strings.ReplaceAll(n.Value, "_", ""), 0, 64)
		if err != nil {
			return nil, fmt.Errorf(
				"read YAML: the integer %s in line %d does not fit 64 bits: put it in quotes",
				n.Value, n.Line)
		}
		return i, nil
	case "!!float":
		f, err := strconv.ParseFloat(strings.ReplaceAll(n.Value, "_", ""), 64)
		if err != nil || !strings.ContainsAny(n.Value, ".eE") { // an integer that YAML would round
			return nil, fmt.Errorf(
				"read YAML: the number %s in line %d is none of a flow: put it in quotes",
				n.Value, n.Line)
		}
		return f, nil
	case "!!str", "!!timestamp":
		return n.Value, nil
	}
	return nil, fmt.Errorf("read YAML: the tag %s in line %d has no meaning here",
		n.ShortTag(), n.Line)
}
