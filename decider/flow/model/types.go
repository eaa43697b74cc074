package model

import (
	"maps"
	"slices"
)

// Type describes a step type of this engine.
type Type struct {
	Name      string
	Aliases   []string
	Shorthand string // template; empty if it has none
	Inputs    []Input
	// Idempotent is what holds if neither the step nor the workflow says anything. Never empty.
	Idempotent Idempotence
	Doc        string // one sentence
	Example    string // one line of shorthand; empty if it has none

	raw bool // the last variable keeps its quotes
}

// Input describes an input of a step type. Steps may have others; these go to the variables of the
// step.
type Input struct {
	Name     string
	Aliases  []string
	Kind     Kind
	Required bool
	Choices  []string // of Choice
	Doc      string
}

// Kind says what an input may be. Where not said otherwise, a text with ${...} may stand for any
// value.
type Kind int

// The kinds.
const (
	Any Kind = iota + 1
	Text
	Boolean
	Integer
	Map
	List
	Length    // a duration
	Predicate // a condition
	TypeName  // one of ValueTypes, without ${...}
	Variable  // a name, with a path after it perhaps, without ${...}
	Choice    // one of a few words
	Steps     // a step, or a list of steps
	Status    // any, a number or a predicate
)

// Types are the step types of this engine, by name.
func Types() []Type {
	return slices.SortedFunc(maps.Values(builtins), func(a, b Type) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
}

// builtins has each type under its name, names has the types under aliases too.
var builtins, names = table()

// table knows nothing of the functions that read steps: these look types up, and must not be looked
// up by them.
func table() (byName, all map[string]Type) {
	byName, all = map[string]Type{}, map[string]Type{}
	for _, t := range slices.Concat(localTypes(), flowTypes(), stateTypes(), outsideTypes()) {
		t.Inputs = slices.Clone(t.Inputs)
		byName[t.Name], all[t.Name] = t, t
		for _, a := range t.Aliases {
			all[a] = t
		}
	}
	return byName, all
}

// absent are types of the language that this engine does not have, with what to do instead.
var absent = map[string]string{
	"set-config":         "use set-state",
	"clear-config":       "use clear-state",
	"winrm":              "offer an activity and use activity",
	"ansible-ssh":        "offer an activity and use activity",
	"add-entity":         noEntities,
	"delete-entity":      noEntities,
	"reparent-entity":    noEntities,
	"set-entity-name":    noEntities,
	"deploy-application": noEntities,
	"apply-initializer":  noEntities,
	"add-policy":         noEntities,
	"delete-policy":      noEntities,
	"update-children":    "loop over a list with foreach",
}

const noEntities = "there are no entities here: use set-state, activity or child"

const (
	typed    = "[ ${type} ] ${variable}"
	assigned = typed + ` [ " = " ${value...} ]`
)

var (
	// As a key, type is that of the step: the type of the value stands in the line, or in a map
	// with the name of the variable.
	typeInput = Input{
		Name: "type", Kind: TypeName,
		Doc: "the type that the value is coerced to; in the line, or in a map beside the name",
	}
	modes = Input{
		Name: "interpolation_mode", Kind: Choice, Choices: []string{"words", "full", "disabled"},
		Doc: "words is the default in shorthand, full otherwise",
	}
	// What is loaded is somebody else's text.
	loadModes = Input{
		Name: "interpolation_mode", Kind: Choice, Choices: modes.Choices,
		Doc: "disabled if not given: the text is taken as it is",
	}
	loadFailures = Input{
		Name: "interpolation_errors", Kind: Choice, Choices: failures.Choices,
		Doc: "ignore if not given: an expression without a value stays as it is written",
	}
	failures = Input{
		Name: "interpolation_errors", Kind: Choice, Choices: []string{"fail", "ignore", "blank"},
		Doc: "what becomes of an expression without a value",
	}
)

func named(doc string) Input {
	return Input{Name: "variable", Kind: Variable, Required: true, Doc: doc}
}

// localTypes run within one decision and touch variables only.
func localTypes() []Type {
	return []Type{
		{
			Name: "let", Aliases: []string{"set-workflow-variable"}, Shorthand: assigned,
			Idempotent: Idempotent, raw: true,
			Inputs: []Input{
				typeInput,
				named("what is set"),
				{Name: "value", Kind: Any, Required: true, Doc: "an expression"},
				modes,
				failures,
			},
			Doc: "Sets a variable.", Example: "let integer x = ${x} + 1",
		},
		{
			Name: "transform", Idempotent: Idempotent, raw: true,
			Shorthand: `[ ${type} ] [ ${variable} ] [ " = " ${value...} ] [ " | " ${transform...} ]`,
			Inputs: []Input{
				typeInput,
				{
					Name: "variable",
					Kind: Variable,
					Doc:  "what is set, or transformed if there is no value",
				},
				{Name: "value", Kind: Any, Doc: "what is transformed"},
				{Name: "transform", Kind: Any, Doc: "a chain with |, or a list"},
			},
			Doc: "Transforms a value.", Example: "transform x = ${name} | trim | to_upper_case",
		},
		{
			Name: "clear-workflow-variable", Shorthand: typed, Idempotent: Idempotent,
			Inputs: []Input{typeInput, named("what is cleared")},
			Doc:    "Forgets a variable.", Example: "clear-workflow-variable x",
		},
		{
			Name: "log", Shorthand: "${message...}", Idempotent: Idempotent,
			Inputs: []Input{
				{Name: "message", Kind: Text, Required: true},
				{
					Name: "level",
					Kind: Text,
					Doc:  "trace, debug, info, warn or error; others are info",
				},
				{Name: "category", Kind: Text},
			},
			Doc: "Writes a line to the run's log.", Example: "log the count is ${count}",
		},
		{
			Name:       "no-op",
			Idempotent: Idempotent,
			Doc:        "Does nothing; what stands around it still counts.",
		},
		{
			Name: "sleep", Shorthand: "${duration}", Idempotent: Idempotent,
			Inputs: []Input{{Name: "duration", Kind: Length, Required: true}},
			Doc:    "Waits for a time.", Example: "sleep 1m 30s",
		},
		{
			Name: "fail", Shorthand: `[ ?${rethrow} "rethrow" ] [ " message " ${message...} ]`,
			Idempotent: NotIdempotent,
			Inputs: []Input{
				{
					Name: "rethrow",
					Kind: Boolean,
					Doc:  "keep the error that is handled as the cause",
				},
				{Name: "message", Kind: Text},
				{Name: "value", Kind: Any, Doc: "data of the error"},
			},
			Doc: "Fails the step.", Example: "fail message the request was denied: ${details}",
		},
	}
}
