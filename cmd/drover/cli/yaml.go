package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// writeYAML writes v as it would stand in JSON, keys in the same order. The tree is built from the
// JSON and not from v, so that there is one form of every document, whatever it is written in.
func writeYAML(w io.Writer, v any) error {
	var doc bytes.Buffer
	if err := WriteJSON(&doc, v); err != nil {
		return err
	}
	d := json.NewDecoder(&doc)
	d.UseNumber() // exact
	tree, err := yamlTree(d)
	if err != nil {
		return err
	}
	enc := yaml.NewEncoder(w)
	enc.SetIndent(2)
	if err := enc.Encode(tree); err != nil {
		return fmt.Errorf("write YAML: %w", err)
	}
	return enc.Close()
}

// ambiguous are words that readers of YAML 1.1 take for a truth value, a time or a merge, and our
// library does not.
var ambiguous = regexp.MustCompile(
	`^(?i:y|n|yes|no|on|off|=|<<|[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?)$`)

// yamlTree reads one JSON value.
func yamlTree(d *json.Decoder) (*yaml.Node, error) {
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case json.Delim:
		n := &yaml.Node{Kind: yaml.MappingNode}
		if t == '[' {
			n.Kind = yaml.SequenceNode
		}
		for d.More() {
			child, err := yamlTree(d)
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, child)
		}
		_, err := d.Token() // the closing one
		return n, err
	case string:
		n := new(yaml.Node)
		n.SetString(t)
		if ambiguous.MatchString(t) {
			n.Style = yaml.DoubleQuotedStyle
		}
		return n, nil
	case json.Number:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: t.String()}, nil
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: strconv.FormatBool(t)}, nil
	default:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}, nil
	}
}
