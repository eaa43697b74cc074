package model

import (
	"encoding/json"
	"strings"
)

// Schema is a JSON Schema of definitions for editors: it completes keys and types and shows what
// they mean. It knows less than Parse does: not what stands in lines, nor what is allowed together.
func Schema() []byte {
	data, err := json.MarshalIndent(schema(), "", "  ")
	if err != nil {
		panic(err) // it is made of maps and texts
	}
	return append(data, '\n')
}

type object = map[string]any

func ref(name string) object { return object{"$ref": "#/$defs/" + name} }

func described(o object, doc string) object {
	if doc != "" {
		o["description"] = doc
	}
	return o
}

func schema() object {
	return object{
		"$schema":     "https://json-schema.org/draft/2020-12/schema",
		"title":       "Drover flow",
		"description": "A workflow, or a list of its steps.",
		"anyOf":       []any{ref("definition"), ref("steps")},
		"$defs": object{
			"definition": definitionSchema(),
			"steps":      object{"type": "array", "minItems": 1, "items": ref("step")},
			"step": object{
				"description": "A line that begins with the type, a map, or a list of steps.",
				"anyOf": []any{
					object{"type": "string", "pattern": `\S`}, ref("steps"), ref("stepMap"),
				},
			},
			"handler": described(object{"anyOf": []any{ref("step"), ref("steps")}},
				"Steps that run when it fails; the first that goes on elsewhere ends them."),
			"stepMap": stepSchema(),
			"scalar":  object{"type": []any{"string", "number", "boolean"}},
			"duration": described(object{"type": "string"},
				"Such as 10ms, 1m 30s, 1h30m, 7d or 2 weeks."),
			"retention": described(object{"type": []any{"string", "integer"}},
				"Such as max(24h, 5) soft 10 hash start-stop."),
			"lock":      lockSchema(),
			"parameter": parameterSchema(),
		},
	}
}

func definitionSchema() object {
	return object{
		"type":                 "object",
		"additionalProperties": false,
		"anyOf": []any{
			object{"required": []any{"steps"}},
			object{"required": []any{"output"}},
		},
		"properties": object{
			"id":   described(object{"type": "string"}, "The word that names a step type."),
			"type": object{"enum": []any{"workflow", "workflow-effector"}},
			"name": described(
				ref("scalar"),
				"Also the group of retention if that has no hash.",
			),
			"description": ref("scalar"),
			"shorthand": described(
				object{"type": "string"},
				`Of a step type: how its line is taken apart, such as ${package} [ " from " ${source} ].`,
			),
			"parameters": object{"type": "object", "additionalProperties": ref("parameter")},
			"input":      object{"type": "object"},
			"output": described(
				object{},
				"What the workflow returns; else what its last step does.",
			),
			"condition": described(object{}, "The run does not start unless this holds."),
			"on-error":  ref("handler"),
			"timeout":   ref("duration"),
			"lock":      ref("lock"),
			"retention": ref("retention"),
			"replayable": described(
				ref("scalar"),
				"enabled, disabled, from start, automatically, or automatically from start.",
			),
			"idempotent": described(
				object{"enum": []any{"all", "", nil}},
				"all: each step may run again unless it says otherwise.",
			),
			"steps": ref("steps"),
		},
	}
}

func lockSchema() object {
	return described(object{"anyOf": []any{
		ref("scalar"),
		object{
			"type": "object", "additionalProperties": false, "required": []any{"name"},
			"properties": object{
				"name": ref("scalar"), "scope": ref("scalar"), "entity": ref("scalar"),
				"limit": object{"type": "integer", "minimum": 1, "maximum": maxPlaces},
			},
		},
	}}, "Runs with the same lock wait for one another.")
}

func parameterSchema() object {
	types := object{"enum": anys(valueTypes)}
	return object{"anyOf": []any{types, object{"type": "null"}, object{
		"type": "object", "additionalProperties": false,
		"properties": object{
			"type": types, "defaultValue": object{}, "required": ref("scalar"),
			"description": ref("scalar"), "constraints": object{"type": "array"},
		},
	}}}
}

func stepSchema() object {
	var every, when []any
	for _, t := range Types() {
		every = append(every, t.Name)
		for _, a := range t.Aliases {
			every = append(every, a)
		}
		when = append(when, typeSchema(t))
	}
	return object{
		"type": "object", "minProperties": 1, "allOf": when,
		"not": object{"required": []any{"type", "step"}},
		"properties": object{
			"type": described(object{
				"anyOf": []any{object{"enum": every}, object{"type": "string", "pattern": `^\S+$`}},
			}, "The type, or that of a registered step type."),
			"step":      described(object{}, "The line: the type and what goes with it."),
			"id":        described(ref("scalar"), "What goto and next call the step."),
			"name":      ref("scalar"),
			"metadata":  object{},
			"input":     described(object{"type": "object"}, "More inputs."),
			"output":    object{},
			"condition": described(object{}, "The step runs only if this holds."),
			"next":      described(ref("scalar"), "An id, start or end; exit in a handler."),
			"timeout":   ref("duration"),
			"on-error":  ref("handler"),
			"replayable": described(ref("scalar"),
				"from here, from here only or reset; of workflows as in a definition."),
			"idempotent": described(ref("scalar"), "yes, no or default; all for workflows."),
		},
	}
}

// typeSchema holds if the step has the type as a key.
func typeSchema(t Type) object {
	properties, required := object{}, []any{}
	for _, in := range t.Inputs {
		if in.Name == "type" {
			continue // as a key it is that of the step
		}
		for _, name := range append([]string{in.Name}, in.Aliases...) {
			properties[name] = described(in.schema(), in.Doc)
		}
	}
	then := object{"properties": properties, "description": t.Doc}
	for _, in := range t.Inputs {
		if in.Required && len(in.Aliases) == 0 && in.Kind != Steps {
			required = append(required, object{"anyOf": []any{
				object{"required": []any{in.Name}},
				object{
					"required":   []any{"input"},
					"properties": object{"input": object{"required": []any{in.Name}}},
				},
			}})
		}
	}
	if len(required) > 0 {
		then["allOf"] = required
	}
	names := anys(append([]string{t.Name}, t.Aliases...))
	return object{
		"if": object{
			"required": []any{"type"}, "properties": object{"type": object{"enum": names}},
		},
		"then": then,
	}
}

var expression = object{"type": "string", "pattern": `\$\{`}

func or(o ...any) object { return object{"anyOf": append(o, expression)} }

func (in Input) schema() object {
	switch in.Kind {
	case Text:
		return ref("scalar")
	case Boolean:
		return or(object{"type": "boolean"}, object{"enum": []any{"yes", "no"}})
	case Integer:
		return or(object{"type": "integer"}, object{"type": "string", "pattern": "^[0-9]+$"})
	case Map:
		return or(object{"type": "object"})
	case List:
		return or(object{"type": "array"})
	case Length:
		return ref("duration")
	case TypeName:
		return object{"enum": anys(valueTypes)}
	case Variable:
		name := object{"type": "string", "pattern": variablePath.String()}
		return object{"anyOf": []any{name, object{
			"type": "object", "additionalProperties": false, "required": []any{"name"},
			"properties": object{"name": name, "type": object{"enum": anys(valueTypes)}},
		}}}
	case Choice:
		all := anys(in.Choices)
		if strings.Join(in.Choices, " ") == "true false force" {
			all = append(all, true, false)
		}
		return or(object{"enum": all})
	case Steps:
		return object{"anyOf": []any{ref("step"), ref("steps")}}
	case Any, Predicate, Status:
	}
	return object{}
}

func anys(texts []string) []any {
	all := make([]any, len(texts))
	for i, s := range texts {
		all[i] = s
	}
	return all
}
