package model_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/droverhq/drover/decider/flow/model"
)

// Each rule of definitions, broken: the place, and words of the message with its hint.
func TestRefuses(t *testing.T) {
	types := registry(t)
	for _, tc := range []struct{ name, yaml, want string }{
		{"nothing", "", "1:1: the definition is empty"},
		{"a comment only", "# x\n", "1:1: the definition is empty"},
		{"a null", "null", "1:1: the definition is empty (write a map with steps"},
		{"a text", "log a", "1:1: the definition is a text (write a map with steps"},
		{"a number", "5", "1:1: the definition is the value 5"},
		{"an empty map", "{}", "1:1: the workflow has neither steps nor output"},
		{"an empty list", "[]", "1:1: steps is an empty list"},
		{"an unknown key", "steps: [no-op]\nretension: 5", `2:1: "retension" is no key of a definition (did you mean retention?)`},
		{"an unknown key like nothing", "steps: [no-op]\nfoo: 5", `2:1: "foo" is no key of a definition (the keys are name, `},
		{"no steps", "name: x", "1:1: the workflow has neither steps nor output"},
		{"null steps", "steps:", "steps is empty"},
		{"steps that are a text", "steps: log a", "1:8: steps is a text (write a list"},
		{"a nested key at the root", "{steps: [no-op], target: [1]}", "1:18: target is no key of a definition (it is a key of steps of type workflow or foreach"},
		{"concurrency at the root", "{steps: [no-op], concurrency: 2}", "concurrency is no key of a definition"},
		{"reducing at the root", "{steps: [no-op], reducing: {}}", "reducing is no key of a definition"},
		{"triggers", "{steps: [no-op], triggers: [x]}", "start the flow by a signal or a schedule"},
		{"a period", "{steps: [no-op], period: 5s}", "start the flow by a signal or a schedule"},
		{"step at the root", "{step: log a}", "list the steps under steps"},
		{"shorthand of a flow", "{steps: [no-op], shorthand: x}", "shorthand is for step types"},
		{"initializers", "brooklyn.initializers: []", "give each workflow a file of its own"},
		{"another type", "{type: workflow-sensor, steps: [no-op]}", `1:8: the type of a definition is "workflow-sensor" (write workflow, or leave type out; sensors`},
		{"a name that is a list", "{name: [a], steps: [no-op]}", "1:8: name is a list (write a text)"},
		{"an empty name", "name:\nsteps: [no-op]", "name is empty (give it a value or leave it out)"},
		{"input that is a list", "{input: [1], steps: [no-op]}", "1:9: input is a list (write a map)"},
		{"an empty output", "{output: , steps: [no-op]}", "output is empty"},
		{"a condition that is a word", "{condition: yes, steps: [no-op]}", `1:13: the condition "yes" never holds, as there is nothing here that it is compared with (write true)`},
		{"a condition that is a number", "{condition: 5, steps: [no-op]}", `the condition "5" never holds, as there is nothing here that it is compared with (write true or false, ${...} with`},
		{"an empty condition", "{condition: , steps: [no-op]}", "condition is empty"},
		{"replayable", "{replayable: sometimes, steps: [no-op]}", `1:14: replayable of a workflow is "sometimes" (write enabled, disabled`},
		{"replayable no", "{replayable: no, steps: [no-op]}", `replayable of a workflow is "no"`},
		{"replayable of a step", "{replayable: from here, steps: [no-op]}", "it is a value of steps"},
		{"idempotent", "{idempotent: yes, steps: [no-op]}", `1:14: idempotent of a workflow is "yes" (write all`},
		{"timeout", "{timeout: 5, steps: [no-op]}", `1:12: the duration "5": the number has no unit`},
		{"timeout without end", "{timeout: forever, steps: [no-op]}", "forever is not allowed here"},
		{"retention", "{retention: 'any(2, 24h)', steps: [no-op]}", `1:14: the retention "any(2, 24h)": "any" is no retention value (max(...) keeps`},
		{"retention, further on", "retention: max(5, -1)\nsteps: [no-op]", `1:19: the retention "max(5, -1)": a number has a sign`},
		{"an empty lock", "lock:\nsteps: [no-op]", "lock is empty"},
		{"a lock without a name", "{lock: {scope: x}, steps: [no-op]}", "1:9: the lock has no name"},
		{"a lock with more", "{lock: {name: x, limits: 1}, steps: [no-op]}", `1:18: a lock has no "limits" (its keys are name, scope and limit)`},
		{"a lock with scope and entity", "{lock: {name: x, scope: a, entity: b}, steps: [no-op]}", "the lock has scope and entity"},
		{"a lock of none", "{lock: {name: x, limit: 0}, steps: [no-op]}", "1:25: the lock's limit is the value 0"},
		{"a lock of a text", "{lock: {name: x, limit: many}, steps: [no-op]}", "the lock's limit is a text"},
		{"a lock that is a list", "{lock: [x], steps: [no-op]}", "lock is a list"},
		{"a lock without retention", "{retention: disabled, lock: l, steps: [no-op]}", "1:29: a workflow with a lock has retention disabled"},
		{"a lock within a workflow without retention", "{retention: disabled, steps: [{type: workflow, lock: l, steps: [no-op]}]}", "a workflow with a lock has retention disabled, or one around it has"},
		{"a nested lock without retention", "- {type: workflow, retention: disabled, lock: l, steps: [no-op]}", "1:47: a workflow with a lock has retention disabled"},
		{"a lock that loses its retention", "{lock: l, steps: [workflow retention disabled]}", "1:38: a run that has a lock disables its retention"},
		{"a lock of a registered type", "{retention: disabled, steps: [apt-get x]}", "apt-get takes a lock where retention is disabled"},
		{"parameters that are a list", "{parameters: [a], steps: [no-op]}", "parameters is a list"},
		{"a parameter's name", "{parameters: {'a b': string}, steps: [no-op]}", `"a b" is no name of a parameter`},
		{"a parameter's type", "{parameters: {a: strng}, steps: [no-op]}", `1:18: "strng" is no type (did you mean string?)`},
		{"a parameter's key", "{parameters: {a: {default: 1}}, steps: [no-op]}", `a parameter has no "default" (did you mean defaultValue?)`},
		{"a parameter that is required perhaps", "{parameters: {a: {required: perhaps}}, steps: [no-op]}", "required is a text (write true or false)"},
		{"a parameter that is a list", "{parameters: {a: [1]}, steps: [no-op]}", "the parameter a is a list"},
		{"a parameter's constraints", "{parameters: {a: {constraints: {size: 1}}}, steps: [no-op]}", "constraints is a map"},
		{"idempotent of a definition that is a list", "{idempotent: [all], steps: [no-op]}", "1:14: idempotent of a workflow is a list (write all, or leave it out"},
		{"replayable of a definition that is a map", "{replayable: {from: start}, steps: [no-op]}", "replayable of a workflow is a map (write enabled"},
		{"a type that is a list", "{type: [workflow], steps: [no-op]}", "1:8: the type of a definition is a list (write workflow, or leave type out"},
		{"an empty lock", "{lock: '', steps: [no-op]}", "1:8: the lock has no name (write lock: NAME"},
		{"a default of another type", "{parameters: {a: {type: integer, defaultValue: x}}, steps: [no-op]}", `1:48: the defaultValue of a does not fit its type: the string "x" is no integer`},
		{"handlers that are none", "{on-error: [], steps: [no-op]}", "on-error is an empty list"},

		{"a step that is nothing", "- ", "a step is empty"},
		{"a step that is a number", "- 5", "1:3: a step is the value 5"},
		{"an empty text", "- ''", "the step is empty"},
		{"an empty block", "- []", "steps is an empty list"},
		{"an unknown type", "- no-op\n- slep 5s", `2:3: there is no step type "slep" (did you mean sleep?)`},
		{"an unknown type like nothing", "- frobnicate", "register it as a step type"},
		{"an unknown type as a key", "- {type: frobnicate}", `1:10: there is no step type "frobnicate"`},
		{"an assignment", "- x=1", "did you mean let?"},
		{"a type of elsewhere", "- set-config a = 1", "use set-state"},
		{"an entity", "- add-entity x", "there are no entities here"},
		{"a map without a type", "- {log: hello}", "1:4: the step has no type (write - log ..., without the colon"},
		{"a map without anything", "- {foo: 1, bar: 2}", "the step has no type (write step with a line"},
		{"a map with a slip", "- {stp: log a}", "the step has no type (did you mean step?)"},
		{"type and step", "- {type: log, step: log a}", "1:15: the step has both type and step"},
		{"step and s", "- {step: log a, s: log b}", "1:17: the step has more than one of step, shorthand and s"},
		{"a whole line as the type", "- {type: log hello}", "type has the name only; write the whole line under step"},
		{"a type that is a list", "- {type: [log]}", "1:10: type is a list"},
		{"step that is a map", "- {step: {step: log a}, name: x}", "1:11: step is a map"},
		{"step that is empty", "- {step: }", "step is empty"},
		{"a colon and a map", "- log a:\n    b: c", "a step has a colon and a map after it"},
		{"two steps with one id", "- {step: no-op, id: a}\n- {step: no-op, id: a}", `2:21: the id "a" is used twice in this block, first in line 1`},
		{"an id and a label", "- {step: no-op, id: a}\n- label a", `the id "a" is used twice`},
		{"two ids", "- {step: label a, id: b}", "id is given in the line and as a key"},
		{"a reserved id", "- {step: no-op, id: Start}", "1:21: the id Start is reserved (choose another; reserved are start, end"},
		{"all reserved ids", "[label end, label last, label here, label exit, label default]", "the id default is reserved"},
		{"an id with a space", "- {step: no-op, id: a b}", `the id "a b" cannot be used`},
		{"a jump to nowhere", "[{step: no-op, id: again}, goto agian]", `1:33: there is no step with the id "agian" here or in a block around (did you mean again?)`},
		{"a jump to nowhere, by next", "- {step: no-op, next: x}", `1:23: there is no step with the id "x"`},
		{"a jump to nowhere, by retry", "- retry from x", `1:14: there is no step with the id "x"`},
		{"a jump into a block", "[[{step: no-op, id: a}], goto a]", `there is no step with the id "a"`},
		{"a jump out of a workflow", "[{step: no-op, id: a}, {type: workflow, steps: [goto a]}]", `there is no step with the id "a"`},
		{"a jump out of a loop", "[{step: no-op, id: a}, 'foreach x in 1..2 do goto a']", `there is no step with the id "a"`},
		{"a jump to last", "- goto last", `"last" is no place to go to`},
		{"a jump to here", "- goto here", `"here" is no place to go to`},
		{"a jump to default", "- {step: no-op, next: default}", `"default" is no place to go to`},
		{"exit outside", "- goto exit", "exit outside of a handler"},
		{"exit at the top", "{steps: [no-op], on-error: goto exit}", "exit in the handler of a workflow"},
		{"two nexts", "- {step: goto end, next: start}", "next is given in the line and as a key"},
		{"an id in a handler", "- {step: no-op, on-error: [{step: no-op, id: a}]}", "1:46: an item of a handler has an id"},
		{"a workflow in a handler", "- {step: no-op, on-error: [{type: workflow, steps: [no-op]}]}", "a step of type workflow stands in a handler"},
		{"a loop in a block in a handler", "- {step: no-op, on-error: [[foreach x in 1..2 do no-op]]}", "a step of type foreach stands in a handler"},
		{"a registered type in a handler", "- {step: no-op, on-error: apt-get x}", "a step of a registered type stands in a handler"},
		{"replayable of steps", "- {step: no-op, replayable: from start}", `1:29: replayable of a step is "from start" (it is a value of workflows`},
		{"replayable of nothing", "- {step: no-op, replayable: maybe}", `replayable is "maybe"`},
		{"replayable by a line", "- workflow replayable from start", `1:23: replayable of a step is "from start"`},
		{"idempotent of steps", "- {step: no-op, idempotent: all}", `1:29: idempotent is "all" (write yes, no or default)`},
		{"idempotent that is a map", "- {step: no-op, idempotent: {}}", `idempotent is a map (write yes, no or default)`},
		{"replayable that is a list", "- {step: no-op, replayable: [from here]}", `replayable is a list`},
		{"an empty type", "- {type: ''}", `1:10: there is no step type "" (register it`},
		{"idempotent of workflows", "- {type: workflow, idempotent: some, steps: [no-op]}", "or all, for each step within"},
		{"a misspelt key", "- {step: no-op, on_error: log a}", `1:17: "on_error" would become an input (did you mean on-error?`},
		{"a misspelt condition", "- {step: no-op, conditon: 1}", "did you mean condition?"},
		{"a misspelt input", "- {step: log a, levels: warn}", "did you mean level?"},
		{"an input twice", "- {step: no-op, a: 1, input: {a: 2}}", `1:31: "a" is given twice`},
		{"input in the line and as a key", "- {step: log a, message: b}", "1:14: message is given in the line and as a key"},
		{"a lock on a step", "- {step: no-op, lock: a}", "1:17: no-op has no lock (put a step of type workflow"},
		{"retention on a step", "- {step: no-op, retention: 5}", "no-op has no retention"},
		{"steps on a step", "- {step: no-op, steps: [no-op]}", "no-op has no steps"},
		{"parameters on a workflow", "- {type: workflow, parameters: {a: string}, steps: [no-op]}", "1:20: workflow has no parameters (declare them in a flow"},
		{"a target on a block", "- {type: subworkflow, target: [1], steps: [no-op]}", "a subworkflow has no target"},

		{"let without spaces", "- let x=1", `"x=1" is no name of a variable (put spaces around =)`},
		{"let without spaces, and more", "- let x=1 2 3", "1:13: the line does not fit let (write let [TYPE] VARIABLE [= VALUE...], with spaces around =)"},
		{"let without a value", "- let x", "1:3: let needs value (for example let integer x"},
		{"let of an unknown type", "- let my x = 1", `1:7: "my" is no type`},
		{"let of a root", "- let workflow.a = 1", "workflow is the name of what every run knows"},
		{"let in a strange mode", "- {step: let x = 1, interpolation_mode: half}", `1:21: interpolation_mode is "half" (write one of words, full, disabled)`},
		{"let of an odd map", "- {type: let, variable: {name: x, kind: list}, value: 1}", `variable has no "kind" (its keys are name and type)`},
		{"let of a map and a line", "- {step: let list x = 1, variable: {name: x}}", "variable is given in the line and as a key"},
		{"a key that is not there", "- {type: set-state, name: a, value: 1}", "set-state needs key"},
		{"let of nothing", "- {type: let}", "let needs variable"},
		{"transform of nothing", "- {type: transform, transform: trim}", "transform needs a variable or a value"},
		{"transform into nothing", "- transform x |", "1:15: nothing stands after |"},
		{"sleep", "- sleep 5", `1:10: the duration "5": the number has no unit`},
		{"sleep, further on", "- sleep 5m 1x", "1:13: the duration"},
		{"no-op with more", "- no-op and more", "1:9: no-op takes nothing after it"},
		{"fail with more", "- fail because", "1:8: the line does not fit fail (write fail [rethrow] [message MESSAGE...])"},
		{"if with an expression", "- if ${n} < 3 then no-op", "1:11: the line does not fit if (write if TARGET [== EQUALS] [then THEN...], and in quotes what has several words, as in if \"${n} < 3\" then ...)"},
		{"if without then", "- if ${x}", "nothing is to be done if it holds"},
		{"if with both", "- {step: 'if ${x} then no-op', steps: [no-op]}", "the step has then and steps"},
		{"if with a bad step", "- if ${x} then slep", `1:16: there is no step type "slep"`},
		{"if with an id", "- {type: if, target: true, then: {step: no-op, id: a}}", "has an id"},
		{"a condition of a step", "- {step: log a, condition: 'no'}", `the condition "no" never holds, as there is nothing here that it is compared with (write false)`},
		{"a condition in a case", "- {step: 'switch ${x}', cases: [{type: subworkflow, condition: a, steps: [{step: no-op, condition: b}]}]}", `the condition "b" never holds`},
		{"switch without cases", "- switch ${x}", "switch needs cases"},
		{"switch with no cases", "- {step: switch, cases: []}", "cases is a list (write a list of steps"},
		{"switch with bare cases", "- {step: switch, cases: [no-op, no-op]}", "1:26: a case that is not the last has no condition"},
		{"workflow of nothing", "- workflow", "the workflow has no steps"},
		{"workflow with a lock only", "- {type: workflow, lock: a}", "the workflow has neither steps nor output"},
		{"workflow in the wrong order", "- workflow retention 5 replayable reset", "1:24: the retention"},
		{"a loop key without a target", "- {type: workflow, concurrency: 2, steps: [no-op]}", "1:20: concurrency without a target"},
		{"reducing at once", "- {step: foreach x in 1..2, reducing: {a: 1}, concurrency: 2, do: no-op}", `a step with reducing has concurrency "2"`},
		{"reducing at an expression", "- {step: foreach x in 1..2, reducing: {a: 1}, concurrency: '${n}', do: no-op}", "a step with reducing has concurrency"},
		{"reducing a list", "- {step: foreach x in 1..2, reducing: [a], do: no-op}", "reducing is"},
		{"foreach without a target", "- {step: foreach x, do: no-op}", "foreach needs target"},
		{"foreach without steps", "- foreach x in 1..2", "the workflow has neither steps nor output"},
		{"foreach with both", "- {step: foreach x in 1..2 do no-op, steps: [no-op]}", "the step has do and steps"},
		{"foreach over children", "- foreach x in children do no-op", "there are no entities here"},
		{"foreach over a word", "- foreach x in things do no-op", "1:16: target is \"things\""},
		{"foreach with a bad name", "- foreach 1x in 1..2 do no-op", `"1x" is no name of a variable`},
		{"foreach with an unclosed spread", "- foreach {a,b in 1..2 do no-op", "is no name of a variable"},
		{"retry in the wrong order", "- retry backoff 1s limit 5", "1:20: limit stands within backoff (the order is fixed"},
		{"retry of an odd replay", "- {step: retry, replay: perhaps}", "write one of true, false, force"},
		{"set-state without a value", "- set-state a", "set-state needs value"},
		{"set-state by two names", "- {step: set-state a = 1, scope: x, entity: y}", "the step has scope and entity"},
		{"an argument", "- activity a with b", `1:19: "b" is no argument (write NAME = VALUE`},
		{"an argument twice", "- activity a with b = 1, b = 2", "1:26: the argument b is given twice"},
		{"an argument with an unclosed quote", "- activity a with b = \"x, c = 1", `1:23: what begins with " has no end, and a comma in it (close it, or put the whole value in quotes)`},
		{"an argument with an unclosed bracket", "- activity a with b = f(x, c = [1, 2]", "1:24: what begins with ( has no end"},
		{"arguments that are a list", "- {step: activity a, args: [1]}", "args is a list (write a map)"},
		{"http without an endpoint", "- http", "http needs endpoint"},
		{"http with odd headers", "- {step: http a, headers: x}", `headers is "x" (write a map)`},
		{"ssh with odd sizes", "- {step: ssh a, output_max_size: much}", "write a whole number"},
		{"container with too much", "- {step: container a b, raw_command: [c]}", "the container has more than one of command"},
		{"signal to nobody", "- signal a", "signal needs run"},
		{"transform in a map", "- {type: transform, variable: x, transform: {a: b}}", "transform is a map"},
		{"transform of a number", "- {type: transform, variable: x, transform: [5]}", "a transform is the value 5"},
		{"input that is a text", "- {step: no-op, input: a}", "1:24: input is a text (write a map)"},
		{"input that is empty", "- {step: no-op, input: }", "input is empty"},
		{"a message that is a list", "- {type: log, message: [a]}", "message is a list (write a text)"},
		{"a message that is empty", "- {type: log, message: }", "message is empty"},
		{"a task that is perhaps", "- {step: wait x, task: perhaps}", "write true or false"},
		{"commands that are a text", "- {step: container a, commands: b}", "write a list"},
		{"a duration that is a list", "- {type: sleep, duration: [1s]}", "write a duration such as 10s"},
		{"a variable that is a number", "- {type: let, variable: 5, value: 1}", `"5" is no name of a variable`},
		{"reducing of an odd name", "- {step: foreach x in 1..2, reducing: {'a b': 1}, do: no-op}", `"a b" is no name of a variable`},
		{"a target that is a map", "- {step: foreach x, target: {a: 1}, do: no-op}", "target is a map"},
		{"retention that is empty", "- {type: workflow, retention: }", "retention is empty"},
		{"steps of a block that are none", "- {type: subworkflow}", "subworkflow needs steps (give it as a key)"},
		{"an empty then", "- {type: if, target: true, then: }", "then is empty"},
		{"replayable that is a list", "{replayable: [a], steps: [no-op]}", "replayable of a workflow is"},
		{"replayable of a step that is empty", "- {step: no-op, replayable: }", "replayable is empty"},
		{"a handler that is empty", "- {step: no-op, on-error: }", "on-error is empty"},
		{"a type of a let that is a list", "- {type: let, variable: {name: x, type: [a]}, value: 1}", "type is a list"},
		{"parameters that are empty", "parameters:\nsteps: [no-op]", "parameters is empty"},
		{"a parameter's type that is empty", "{parameters: {a: {type: }}, steps: [no-op]}", "type is empty"},
		{"a parameter's key that is odd", "{parameters: {a: {foo: 1}}, steps: [no-op]}", `a parameter has no "foo"`},
		{"a lock deep in a registered type", "{retention: disabled, steps: [locks-within x]}", "locks-within takes a lock where retention is disabled"},
		{"a registered type without what it needs", "- greet", `1:3: greet needs person`},
		{"a registered type whose line does not fit", "- greet a b", "1:11: the line does not fit greet (write greet PERSON.NAME [loudly])"},
		{"a registered type with steps", "- {type: apt-get, package: x, steps: [no-op]}", "a step of the registered type apt-get cannot set steps"},
		{"a registered type with a target", "- {type: apt-get, package: x, target: [1]}", "cannot set target"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d, err := model.Parse("f", []byte(tc.yaml), &model.Options{Types: types})
			if err == nil {
				t.Fatalf("got %s, want %s", placelessJSON(t, d), tc.want)
			}
			var all []string
			for _, e := range asErrors(t, err) {
				all = append(all, strings.TrimPrefix(e.String(), "f:"))
			}
			got := strings.Join(all, "\n")
			if !strings.Contains(got, tc.want) {
				t.Errorf("got %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestRefusesStepTypes(t *testing.T) {
	types := registry(t)
	for _, tc := range []struct{ name, yaml, want string }{
		{"no id", "steps: [no-op]", "the step type has no id"},
		{"an id of others", "{id: log, steps: [no-op]}", "1:6: log is a step type already"},
		{"an id of others by another name", "{id: set-sensor, steps: [no-op]}", "set-sensor is a step type already"},
		{"an id with a space", "{id: a b, steps: [no-op]}", `id is "a b"`},
		{"itself", "{id: a, steps: [a]}", "a step type cannot use itself"},
		{"itself by way of another", "{id: apt-get, steps: [greet x]}", "the step type apt-get comes to use itself"},
		{"a shorthand", "{id: a, shorthand: '${x', steps: [no-op]}", `1:20: shorthand "${x" at byte 1: ${ is never closed`},
		{"a shorthand of what is no parameter", "{id: a, shorthand: '${pakage}', parameters: {package: string}, steps: [no-op]}", "the shorthand names pakage, which is no parameter (did you mean package?"},
		{"a parameter that nobody can give", "{id: a, parameters: {timeout: duration}, steps: [no-op]}", "the parameter timeout has the name of a key of steps"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			find := func(name string) (*model.Definition, bool) {
				d, ok := types(name)
				if name == "greet" { // a version that uses apt-get
					d, err := model.Parse("", []byte("{id: greet, shorthand: '${x}', steps: [apt-get x]}"), &model.Options{StepType: true, Types: types})
					return d, err == nil
				}
				return d, ok
			}
			_, err := model.Parse("f", []byte(tc.yaml), &model.Options{StepType: true, Types: find})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

// A type that was registered anew since is not mixed with itself.
func TestRefusesTwoVersionsOfAType(t *testing.T) {
	types := registry(t)
	find := func(name string) (*model.Definition, bool) {
		d, ok := types(name)
		if name == "apt-get" {
			anew := *d
			anew.Lock = nil
			return &anew, true
		}
		return d, ok
	}
	_, err := model.Parse("f", []byte("- apt-get x\n- locks-within x"), &model.Options{Types: find})
	if want := "f:2:3: the step type apt-get is used in two versions (register anew the types that use it)"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
	if _, err := model.Parse("f", []byte("- apt-get x\n- locks-within x"), &model.Options{Types: types}); err != nil {
		t.Errorf("one version: got %v", err)
	}
}

// An error shows the place, and all errors of a text come at once, in its order, but not without end.
func TestErrors(t *testing.T) {
	_, err := model.Parse("flows/a.yaml", []byte("name: ü\nsteps:\n- sleep 5\n- slep\n"), nil)
	want := `flows/a.yaml:3:10: the duration "5": the number has no unit (write a number with a unit, such as 10ms, 1m 30s, 7d or 2 weeks)
    2 | steps:
    3 | - sleep 5
      |          ^
flows/a.yaml:4:3: there is no step type "slep" (did you mean sleep?)
    3 | - sleep 5
    4 | - slep
      |   ^`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	_, err = model.Parse("", []byte(strings.Repeat("- slep\n", 500)), nil)
	if n := len(asErrors(t, err)); n != 20 {
		t.Errorf("got %d errors, want 20", n)
	}
	_, err = model.Parse("", []byte("- log "+strings.Repeat("é", 500)+" ${x\n- slep"), nil)
	if got := fmt.Sprint(err); len(got) > 600 {
		t.Errorf("got %d bytes: %s", len(got), got)
	}
	_, err = model.Parse("", []byte("steps:\n- sleep \""+strings.Repeat("é", 200)+"\" x\n"), nil)
	if e := asErrors(t, err)[0]; e.Line != 2 || !strings.Contains(e.Excerpt, "^") || len(e.Excerpt) > 400 {
		t.Errorf("got %+v", e)
	}
	if got := (&model.Error{Problem: "p"}).Error(); got != "p" {
		t.Errorf("got %q", got)
	}
}

func TestWarns(t *testing.T) {
	var warned []string
	o := &model.Options{Types: registry(t), Warn: func(e *model.Error) { warned = append(warned, e.String()) }}
	if _, err := model.Parse("f", []byte("- {type: apt-get, package: x, colour: red}"), o); err != nil {
		t.Fatal(err)
	}
	if len(warned) != 1 || !strings.Contains(warned[0], `f:1:31: apt-get has no parameter "colour" (its parameters are package)`) {
		t.Errorf("got %q", warned)
	}
}
