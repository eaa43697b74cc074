package model

// flowTypes say what runs next.
func flowTypes() []Type {
	return []Type{
		{
			Name: "return", Shorthand: "${value...}", Idempotent: Idempotent,
			Inputs:  []Input{{Name: "value", Kind: Any, Required: true}},
			Doc:     "Ends the workflow, with all blocks around, with this output.",
			Example: "return ${result}",
		},
		{
			Name: "goto", Shorthand: "${next}", Idempotent: Idempotent, Doc: "Goes to a step.",
			Example: "goto again",
			Inputs: []Input{{
				Name: "next", Kind: Text, Required: true,
				Doc: "an id, start or end; exit in a handler",
			}},
		},
		{
			Name: "label", Shorthand: "${id}", Idempotent: Idempotent, Doc: "Names a place.",
			Example: "label again", Inputs: []Input{{Name: "id", Kind: Text, Required: true}},
		},
		{
			Name: "if", Shorthand: `${target} [ " == " ${equals} ] [ " then " ${then...} ]`,
			Idempotent: Nested, raw: true,
			Inputs: []Input{
				{
					Name: "target", Kind: Any, Required: true,
					Doc: "an expression as of let; in the line in quotes if it has several words",
				},
				{Name: "equals", Kind: Any, Doc: "the same; if not given the target must be true"},
				{Name: "then", Kind: Steps, Doc: "one step"},
				{Name: "steps", Kind: Steps, Doc: "instead of then: a block"},
			},
			Doc:     "Runs a step or a block if something holds.",
			Example: "if ${count} == 3 then goto end",
		},
		{
			Name: "switch", Shorthand: "[ ${value} ]", Idempotent: Nested,
			Inputs: []Input{
				{Name: "value", Kind: Any, Doc: "what the conditions of cases test"},
				{
					Name: "cases", Kind: Steps, Required: true,
					Doc: "steps; all but the last need a condition",
				},
			},
			Doc:     "Runs the first case whose condition holds, and fails if there is none.",
			Example: "switch ${colour}",
		},
		{
			Name: "subworkflow", Idempotent: Nested,
			Doc:    "A block of steps that share the run's variables.",
			Inputs: []Input{{Name: "steps", Kind: Steps, Required: true}},
		},
		{
			Name:       "workflow",
			Shorthand:  `[ "replayable " ${replayable...} ] [ " retention " ${retention...} ]`,
			Idempotent: Nested,
			Inputs: append(
				[]Input{
					{
						Name: "target", Kind: Any,
						Doc: "a list, M..N or an expression: one run for each",
					},
					{Name: "target_var_name", Kind: Variable},
					{Name: "steps", Kind: Steps},
					{
						Name: "replayable", Kind: Text,
						Doc: "without steps: from here, from here only or reset",
					},
				}, loopInputs()...),
			Doc: "Runs steps with variables of their own; or, without steps, changes how " +
				"the run is replayed and kept.",
			Example: "workflow replayable from here",
		},
		{
			Name:       "foreach",
			Shorthand:  `${target_var_name} [ " in " ${target...} [ " do " ${do...} ] ]`,
			Idempotent: Nested, raw: true,
			Inputs: append([]Input{
				{
					Name: "target_var_name", Kind: Text, Required: true,
					Doc: "a variable, or {a,b} to spread maps",
				},
				{Name: "target", Kind: Any, Required: true, Doc: "a list, M..N or an expression"},
				{Name: "do", Kind: Steps, Doc: "one step"},
				{Name: "steps", Kind: Steps, Doc: "instead of do"},
			}, loopInputs()...),
			Doc: "Runs steps for each element.", Example: "foreach n in 1..10 do log ${n}",
		},
		{
			Name: "retry", Idempotent: Idempotent,
			Shorthand: `[ ?${replay} "replay" ] [ " from " ${next} ] [ " limit " ${limit...} ] ` +
				`[ " backoff " ${backoff...} ] [ " timeout " ${timeout} ]`,
			Inputs: []Input{
				{Name: "replay", Kind: Choice, Choices: []string{"true", "false", "force"}},
				{Name: "next", Kind: Text, Doc: "an id, start, last or end"},
				{
					Name: "limit", Kind: Any,
					Doc: "N, a duration, N in a duration, or a list of these",
				},
				{Name: "backoff", Kind: Any},
				{Name: "timeout", Kind: Length, Doc: "since the first retry"},
				{Name: "hash", Kind: Text, Doc: "retries of this name are counted together"},
			},
			Doc:     "Runs again what failed, or goes back, until a limit is reached.",
			Example: "retry from check limit 5 backoff 1s increasing 2x up to 1m",
		},
	}
}

func loopInputs() []Input {
	return []Input{
		{Name: "target_index_var_name", Kind: Variable},
		{
			Name: "concurrency", Kind: Any,
			Doc: "how many run at once: a number, p%, all, max(...), min(...); 1 if not given",
		},
		{
			Name: "reducing", Kind: Map,
			Doc: "variables that one run hands to the next, with their first values",
		},
		{Name: "lock", Kind: Any, Doc: "a name, or name, scope and limit"},
		{Name: "retention", Kind: Text},
	}
}

// stateTypes wait for, or change, what outlives the run or comes from outside of it.
func stateTypes() []Type {
	stateInputs := []Input{
		typeInput,
		{
			Name:     "key",
			Aliases:  []string{"sensor"},
			Kind:     Text,
			Required: true,
			Doc: "the key, whose dots belong to its name; after it in brackets a part of " +
				"its value, as in a['b'], a[0], a[${n}] and a[] for the place after the last " +
				"element; or a map of name and type",
		},
		{Name: "scope", Aliases: []string{"entity"}, Kind: Text},
	}
	return []Type{
		{
			Name:       "wait",
			Shorthand:  `[ [ ${type} ] ${variable} " = " ] [ ?${task} "task " ] ${value...}`,
			Idempotent: Idempotent, raw: true,
			Inputs: []Input{
				typeInput,
				{Name: "variable", Kind: Variable},
				{
					Name: "task", Kind: Boolean,
					Doc: "refused: an activity step waits for its activity by itself",
				},
				{Name: "value", Kind: Any, Required: true, Doc: "waited for until it is there"},
			},
			Doc:     "Waits until an expression has a value.",
			Example: "wait address = ${entity.sensor.address}",
		},
		{
			Name: "wait-for-signal", Shorthand: `[ [ ${type} ] ${variable} " = " ] ${signal}`,
			Idempotent: Idempotent,
			Inputs: []Input{
				typeInput,
				{Name: "variable", Kind: Variable},
				{Name: "signal", Kind: Text, Required: true},
			},
			Doc: "Waits for a signal and returns what it brings; also written wait for signal " +
				"NAME, wait for signal x = NAME or wait x = for signal NAME.",
			Example: "wait-for-signal paid",
		},
		{
			Name: "approve", Shorthand: "${message...}", Idempotent: Idempotent,
			Inputs: []Input{
				{Name: "message", Kind: Text, Required: true, Doc: "what is to be approved"},
				{
					Name: "signal", Kind: Text,
					Doc: "the signal that brings the answer; approve if not given",
				},
			},
			Doc:     "Waits until somebody approves or refuses, with a reason.",
			Example: "approve a new machine for ${team}",
		},
		{
			Name: "signal", Shorthand: `${signal} [ " to " ${run} ] [ " with " ${value...} ]`,
			Idempotent: Idempotent,
			Inputs: []Input{
				{Name: "signal", Kind: Text, Required: true},
				{Name: "run", Kind: Text, Required: true, Doc: "the id of the run that gets it"},
				{Name: "value", Kind: Any},
			},
			Doc: "Sends a signal to a run.", Example: "signal paid to ${order} with ${receipt}",
		},
		{
			Name: "set-state", Aliases: []string{"set-sensor"}, Idempotent: Idempotent,
			Shorthand: `[ ${type} ] ${key} [ " on " ${scope} ] [ " = " ${value...} ]`,
			Inputs: append(stateInputs[:len(stateInputs):len(stateInputs)],
				Input{Name: "value", Kind: Any, Required: true}, Input{
					Name: "require", Kind: Predicate,
					Doc: "what the value before must fulfil, tested and set at once",
				}),
			Doc: "Sets a state key.", Example: "set-state count = ${x}",
		},
		{
			Name: "clear-state", Aliases: []string{"clear-sensor"},
			Shorthand: `[ ${type} ] ${key} [ " on " ${scope} ]`, Idempotent: Idempotent,
			Inputs: stateInputs, Doc: "Clears a state key.", Example: "clear-state count",
		},
		{
			Name:       "load",
			Shorthand:  `[ "charset " ${charset} ] [ ${type} ] ${variable} [ " = " ${url...} ]`,
			Idempotent: Idempotent,
			Inputs: []Input{
				{Name: "charset", Kind: Text},
				typeInput, named("what is set"),
				{Name: "url", Aliases: []string{"value"}, Kind: Text, Required: true},
				loadModes,
				loadFailures,
			},
			Doc:     "Loads a text into a variable.",
			Example: "load map prices = https://example.com/prices.json",
		},
	}
}
