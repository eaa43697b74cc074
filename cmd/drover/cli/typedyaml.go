package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/droverhq/drover/decider/flow/syntax"
	"github.com/droverhq/drover/schemas/ops"
)

// ReadYAML reads one document of YAML, JSON included, into the struct at v, whose fields have their
// names in JSON. A single value may stand where a list is wanted. An error names line and field.
func ReadYAML(text []byte, v any) error {
	d := yaml.NewDecoder(bytes.NewReader(text))
	var doc, more yaml.Node
	if err := d.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return errors.New("it is empty")
		}
		return errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if !errors.Is(d.Decode(&more), io.EOF) {
		return errors.New("there is more than one document in it")
	}
	return yamlInto(doc.Content[0], reflect.ValueOf(v).Elem(), "")
}

// yamlAt is an error about the value at n, which is the field at path.
func yamlAt(n *yaml.Node, path, format string, args ...any) error {
	if path != "" {
		path += ": "
	}
	return fmt.Errorf("line %d: %s%s", n.Line, path, fmt.Sprintf(format, args...))
}

func yamlInto(n *yaml.Node, v reflect.Value, path string) error {
	switch {
	case n.Kind == yaml.AliasNode:
		return yamlAt(n, path, "aliases are not for this file: write the value out")
	case n.ShortTag() == "!!null":
		return nil
	case v.Kind() == reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		return yamlInto(n, v.Elem(), path)
	case v.Type() == reflect.TypeFor[ops.ScheduleInterval]() && n.Kind == yaml.ScalarNode:
		interval, err := ParseInterval(n.Value)
		if err != nil {
			return yamlAt(n, path, "%v", err)
		}
		v.Set(reflect.ValueOf(interval))
		return nil
	case v.Kind() == reflect.Struct:
		return yamlStruct(n, v, path)
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() != reflect.Uint8:
		return yamlList(n, v, path)
	}
	return yamlValue(n, v, path)
}

func yamlStruct(n *yaml.Node, v reflect.Value, path string) error {
	if n.Kind != yaml.MappingNode {
		return yamlAt(n, path, "want fields with values, such as %s: …", fieldNames(v.Type())[0])
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		at := strings.TrimPrefix(path+"."+key.Value, ".")
		field := -1
		names := fieldNames(v.Type())
		for j, name := range names {
			if name == key.Value {
				field = j
			}
		}
		switch {
		case field < 0:
			way := "; there are " + strings.Join(names, ", ")
			if near := syntax.Nearest(key.Value, names); near != "" {
				way = fmt.Sprintf("; did you mean %s?", near)
			}
			return yamlAt(key, path, "there is no field %q%s", key.Value, way)
		case seen[key.Value]:
			return yamlAt(key, at, "it stands twice: leave one out")
		}
		seen[key.Value] = true
		if err := yamlInto(n.Content[i+1], v.Field(field), at); err != nil {
			return err
		}
	}
	return nil
}

// fieldNames are the names of the fields of a struct in JSON, in their order.
func fieldNames(t reflect.Type) []string {
	names := make([]string, t.NumField())
	for i := range names {
		names[i], _, _ = strings.Cut(t.Field(i).Tag.Get("json"), ",")
	}
	return names
}

func yamlList(n *yaml.Node, v reflect.Value, path string) error {
	all := n.Content
	if n.Kind != yaml.SequenceNode {
		all = []*yaml.Node{n}
	}
	list := reflect.MakeSlice(v.Type(), len(all), len(all))
	for i, e := range all {
		at := path
		if n.Kind == yaml.SequenceNode {
			at = fmt.Sprintf("%s[%d]", path, i)
		}
		if err := yamlInto(e, list.Index(i), at); err != nil {
			return err
		}
	}
	v.Set(list)
	return nil
}

// yamlValue reads what has no fields by way of its JSON. A text is taken as it stands, so that the
// hour 3 needs no quotes.
func yamlValue(n *yaml.Node, v reflect.Value, path string) error {
	if v.Kind() == reflect.String && n.Kind == yaml.ScalarNode && n.ShortTag() != "!!bool" {
		v.SetString(n.Value)
		return nil
	}
	var b bytes.Buffer
	if err := jsonOfYAML(&b, n); err != nil {
		return err
	}
	err := json.Unmarshal(b.Bytes(), v.Addr().Interface())
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return yamlAt(n, path, "a %s does not belong there", wrong.Value)
	}
	if err != nil {
		return yamlAt(n, path, "%v", err)
	}
	return nil
}

// jsonOfYAML writes a value as JSON; numbers stay as they are written.
func jsonOfYAML(b *bytes.Buffer, n *yaml.Node) error {
	switch n.Kind {
	case yaml.AliasNode:
		return yamlAt(n, "", "aliases are not for this file: write the value out")
	case yaml.SequenceNode:
		b.WriteByte('[')
		for i, e := range n.Content {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := jsonOfYAML(b, e); err != nil {
				return err
			}
		}
		b.WriteByte(']')
		return nil
	case yaml.MappingNode:
		b.WriteByte('{')
		for i := 0; i+1 < len(n.Content); i += 2 {
			if i > 0 {
				b.WriteByte(',')
			}
			key, err := json.Marshal(n.Content[i].Value)
			if err != nil {
				return yamlAt(n, "", "%v", err)
			}
			b.Write(append(key, ':'))
			if err := jsonOfYAML(b, n.Content[i+1]); err != nil {
				return err
			}
		}
		b.WriteByte('}')
		return nil
	}
	return jsonOfScalar(b, n)
}

func jsonOfScalar(b *bytes.Buffer, n *yaml.Node) error {
	switch tag := n.ShortTag(); tag {
	case "!!null":
		b.WriteString("null")
	case "!!bool":
		b.WriteString(strings.ToLower(n.Value))
	case "!!int", "!!float":
		if json.Valid([]byte(n.Value)) {
			b.WriteString(n.Value)
			return nil
		}
		i, ok := new(big.Int).SetString(n.Value, 0)
		if !ok {
			return yamlAt(n, "", "%s is no number of JSON", n.Value)
		}
		b.WriteString(i.String())
	default:
		text, err := json.Marshal(n.Value)
		if err != nil {
			return yamlAt(n, "", "%v", err)
		}
		b.Write(text)
	}
	return nil
}
