package jsonschema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/droverhq/drover/internal/gosource"
	"github.com/droverhq/drover/schemas"
)

const (
	draft = "https://json-schema.org/draft/2020-12/schema"
	home  = "https://github.com/droverhq/drover/schemas/jsonschema/"
)

// object is a JSON object.
type object = map[string]any

// generator makes one schema. Every type that the message is made of stands once below $defs.
type generator struct {
	source *gosource.Package
	defs   object
}

// Generate makes the schema of a message. source is packages schemas and ops.
func Generate(source *gosource.Package, message reflect.Type) ([]byte, error) {
	g := &generator{source: source, defs: object{}}
	schema, err := g.structure(message)
	if err != nil {
		return nil, fmt.Errorf("jsonschema: %s: %w", message.Name(), err)
	}
	schema["$schema"], schema["$id"], schema["title"] = draft, home+message.Name()+".json", message.Name()
	if len(g.defs) > 0 {
		schema["$defs"] = g.defs
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(schema); err != nil {
		return nil, fmt.Errorf("jsonschema: %s: %w", message.Name(), err)
	}
	return b.Bytes(), nil
}

// structure is an object with the fields of a struct. Unknown fields pass: the decoder ignores
// them.
func (g *generator) structure(t reflect.Type) (object, error) {
	properties, required := object{}, []string{}
	for _, f := range Fields(g.source, t) {
		s, err := g.value(f.Go)
		if err != nil {
			return nil, fmt.Errorf("field %s: %w", f.Name, err)
		}
		if f.Name == "v" {
			s = object{"const": schemas.Version}
		}
		if f.Doc != "" {
			s["description"] = f.Doc
		}
		properties[f.Name] = s
		if !f.Optional {
			required = append(required, f.Name)
		}
	}
	schema := object{"type": "object", "properties": properties}
	if len(required) > 0 {
		schema["required"] = required
	}
	if doc := Doc(g.source, t); doc != "" {
		schema["description"] = doc
	}
	return schema, nil
}

// value is a schema for the values of a type.
func (g *generator) value(t reflect.Type) (object, error) {
	if name := t.Name(); name != "" && t.PkgPath() != "" {
		return g.named(t)
	}
	switch t.Kind() {
	case reflect.String:
		return object{"type": "string"}, nil
	case reflect.Bool:
		return object{"type": "boolean"}, nil
	case reflect.Int, reflect.Int64:
		return object{"type": "integer"}, nil
	case reflect.Uint32, reflect.Uint64:
		return object{"type": "integer", "minimum": 0}, nil
	case reflect.Float64:
		return object{"type": "number"}, nil
	case reflect.Pointer:
		return g.value(t.Elem())
	case reflect.Map:
		values, err := g.value(t.Elem())
		return object{"type": []string{"object", "null"}, "additionalProperties": values}, err
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return object{"type": []string{"string", "null"}, "contentEncoding": "base64"}, nil
		}
		items, err := g.value(t.Elem())
		return object{"type": []string{"array", "null"}, "items": items}, err
	}
	return nil, fmt.Errorf("no schema is known for the Go type %s: add it to the generator", t)
}

// named puts a named type below $defs and refers to it.
func (g *generator) named(t reflect.Type) (object, error) {
	ref := object{"$ref": "#/$defs/" + t.Name()}
	if g.defs[t.Name()] != nil {
		return ref, nil
	}
	g.defs[t.Name()] = object{} // seen, should it refer to itself
	schema, err := g.definition(t)
	if err != nil {
		return nil, err
	}
	g.defs[t.Name()] = schema
	return ref, nil
}

func (g *generator) definition(t reflect.Type) (object, error) {
	switch {
	case t == reflect.TypeFor[schemas.Payload]():
		return g.payload()
	case t == reflect.TypeFor[schemas.Duration]():
		return g.duration(), nil
	case t == reflect.TypeFor[schemas.Timestamp]():
		return object{
			"type": []string{"string", "null"}, "format": "date-time",
			"description": Doc(g.source, t),
		}, nil
	case t == reflect.TypeFor[schemas.Event]():
		return g.event()
	case t == reflect.TypeFor[schemas.Decision]():
		return g.decision()
	case t.Kind() == reflect.Struct:
		return g.structure(t)
	case t.Kind() == reflect.String:
		return g.enumeration(t), nil
	}
	return nil, fmt.Errorf("no schema is known for the type %s: add it to the generator", t)
}

// closed are the enumerations of which a value that is not known is refused. The others grow: a
// reader lets new values pass.
var closed = []reflect.Type{
	reflect.TypeFor[schemas.ReportKind](), reflect.TypeFor[schemas.IDReusePolicy](),
	reflect.TypeFor[schemas.IDConflictPolicy](),
	reflect.TypeFor[schemas.TypeKind](),
}

func (g *generator) enumeration(t reflect.Type) object {
	key := "examples"
	if slices.Contains(closed, t) {
		key = "enum"
	}
	doc, names := Doc(g.source, t), []string{}
	for _, v := range Values(g.source, t.Name()) {
		names = append(names, v.Name)
		if v.Doc != "" {
			doc += "\n" + v.Name + ": " + v.Doc
		}
	}
	return object{"type": "string", "description": doc, key: names}
}
