package jsonschema

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/droverhq/drover/schemas"
)

// payload takes any value. Only the reserved forms, objects of that one key, must be right.
func (g *generator) payload() (object, error) {
	ref, err := g.value(reflect.TypeFor[schemas.PayloadRef]())
	if err != nil {
		return nil, err
	}
	form := func(key string, content, then object) object {
		return object{
			"if": object{
				"type": "object", "required": []string{key}, "maxProperties": 1,
				"properties": object{key: content},
			},
			"then": object{"properties": object{key: then}},
		}
	}
	return object{
		"description": Doc(g.source, reflect.TypeFor[schemas.Payload]()),
		"allOf": []any{
			form("$text", object{}, object{"type": "string"}),
			form("$bytes", object{}, object{"type": "string", "contentEncoding": "base64"}),
			form("$ref", object{"type": "object"}, ref),
		},
	}, nil
}

// duration is seconds or a text. The longest is that of the decoder, 292 years. The decoder takes
// negative ones as well, which nobody should write.
func (g *generator) duration() object {
	return object{
		"description": Doc(g.source, reflect.TypeFor[schemas.Duration]()),
		"anyOf": []any{
			object{"type": "number", "minimum": 0, "maximum": json.Number("9223372036.854775807")},
			object{
				"type":    "string",
				"pattern": `^(NONE|\+?(0|([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$`,
			},
		},
	}
}

// event is open: the attributes of a type that is not known may be anything.
func (g *generator) event() (object, error) {
	types := schemas.EventTypes()
	slices.Sort(types)
	rules, err := tagged(g, types, func(t schemas.EventType) (any, error) {
		var e schemas.Event
		err := e.UnmarshalJSON(fmt.Appendf(nil, `{"type":%q}`, t))
		return e.Attributes, err
	})
	if err != nil {
		return nil, err
	}
	typ, err := g.value(reflect.TypeFor[schemas.EventType]())
	if err != nil {
		return nil, err
	}
	at, err := g.value(reflect.TypeFor[schemas.Timestamp]())
	if err != nil {
		return nil, err
	}
	return object{
		"type": "object", "description": Doc(g.source, reflect.TypeFor[schemas.Event]()),
		"properties": object{
			"id": object{"type": "integer", "minimum": 1}, "type": typ, "time": at,
			"attributes": object{},
		},
		"required": []string{"id", "type", "time", "attributes"}, "allOf": rules,
	}, nil
}

// decision is closed: one of a type that is not known is refused, and with it the whole reply.
func (g *generator) decision() (object, error) {
	types := schemas.DecisionTypes()
	slices.Sort(types)
	rules, err := tagged(g, types, func(t schemas.DecisionType) (any, error) {
		var d schemas.Decision
		err := d.UnmarshalJSON(fmt.Appendf(nil, `{"type":%q}`, t))
		return d.Attributes, err
	})
	if err != nil {
		return nil, err
	}
	return object{
		"type": "object", "description": Doc(g.source, reflect.TypeFor[schemas.Decision]()),
		"properties": object{"type": object{"enum": types}, "attributes": object{}},
		"required":   []string{"type"},
		"allOf":      rules,
	}, nil
}

// tagged makes the rules that tie the attributes to the type; create returns a pointer to the
// attributes of a type.
func tagged[T ~string](g *generator, types []T, create func(T) (any, error)) ([]any, error) {
	var rules []any
	for _, t := range types {
		attributes, err := create(t)
		if err != nil {
			return nil, err
		}
		schema, err := g.value(reflect.TypeOf(attributes).Elem())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t, err)
		}
		then := object{"properties": object{"attributes": schema}}
		if slices.ContainsFunc(Fields(g.source, reflect.TypeOf(attributes).Elem()),
			func(f Field) bool { return !f.Optional }) {
			then["required"] = []string{"attributes"}
		}
		rules = append(rules, object{
			"if": object{
				"properties": object{"type": object{"const": t}}, "required": []string{"type"},
			},
			"then": then,
		})
	}
	return rules, nil
}
