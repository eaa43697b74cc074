package model_test

import (
	"testing"

	"github.com/droverhq/drover/decider/flow/model"
	"github.com/droverhq/drover/decider/flow/shorthand"
	"github.com/google/go-cmp/cmp"
)

// Every step type in each of its forms, and each way to write a step.
func TestSteps(t *testing.T) {
	for _, tc := range []struct{ name, yaml, want string }{
		{"let", "let x = ${y} + 1", `{"inputs":{"interpolation_mode":"words","value":"${y} + 1","variable":"x"},"type":"let"}`},
		{"let with a type", "let integer x = 1", `{"inputs":{"interpolation_mode":"words","type":"integer","value":"1","variable":"x"},"type":"let"}`},
		{"let keeps quotes", `let x = "a b"`, `{"inputs":{"interpolation_mode":"words","value":"\"a b\"","variable":"x"},"type":"let"}`},
		{"let with a choice", "let x = ${y} == 1 ? ${y} : 2", `{"inputs":{"interpolation_mode":"words","value":"${y} == 1 ? ${y} : 2","variable":"x"},"type":"let"}`},
		{"let with a choice in step", "step: let x = ${y} ? 1 : 2", `{"inputs":{"interpolation_mode":"words","value":"${y} ? 1 : 2","variable":"x"},"type":"let"}`},
		{"let with a choice of a choice", "step: let x = ${y} ? 1 : ${z} ? 2 : 3", `{"inputs":{"interpolation_mode":"words","value":"${y} ? 1 : ${z} ? 2 : 3","variable":"x"},"type":"let"}`},
		{"let with a path", "let a.b['c'][0] = 1", `{"inputs":{"interpolation_mode":"words","value":"1","variable":"a.b['c'][0]"},"type":"let"}`},
		{"let by keys", "{type: let, variable: x, value: {a: 1, b: [2.0, null, true]}}", `{"inputs":{"interpolation_mode":"full","value":{"a":1,"b":[2,null,true]},"variable":"x"},"type":"let"}`},
		{"let half by keys", "{step: let map x, value: {}, interpolation_mode: disabled, interpolation_errors: blank}", `{"inputs":{"interpolation_errors":"blank","interpolation_mode":"disabled","type":"map","value":{},"variable":"x"},"type":"let"}`},
		{"let of a typed variable by keys", "{type: let, variable: {name: x, type: list}, value: []}", `{"inputs":{"interpolation_mode":"full","type":"list","value":[],"variable":"x"},"type":"let"}`},
		{"set-sensor of a typed key by keys", "{type: set-sensor, sensor: {name: x, type: integer}, value: 1, name: n}", `{"inputs":{"key":"x","type":"integer","value":1},"name":"n","type":"set-state"}`},
		{"let by its other name", "set-workflow-variable x = 1", `{"inputs":{"interpolation_mode":"words","value":"1","variable":"x"},"type":"let"}`},
		{"let of a null", "{type: let, variable: x, value: null}", `{"inputs":{"interpolation_mode":"full","value":null,"variable":"x"},"type":"let"}`},
		{"let under input", "{step: let x, input: {value: 1}}", `{"inputs":{"interpolation_mode":"full","value":1,"variable":"x"},"type":"let"}`},
		{"let across lines", "|\n  let x = 1 +\n    2", `{"inputs":{"interpolation_mode":"words","value":"1 +\n  2","variable":"x"},"type":"let"}`},
		{"transform a variable", "transform x | trim", `{"inputs":{"transform":"trim","variable":"x"},"type":"transform"}`},
		{"transform variable", "transform variable x | trim | first", `{"inputs":{"transform":"trim | first","variable":"x"},"type":"transform"}`},
		{"transform value", `transform value "a | b" c | trim`, `{"inputs":{"transform":"trim","value":"\"a | b\" c"},"type":"transform"}`},
		{"transform a quoted value", `transform x = "a, b" | split ","`, `{"inputs":{"transform":"split \",\"","value":"a, b","variable":"x"},"type":"transform"}`},
		{"transform a quoted value alone", `transform value 'it is "${x}"'`, `{"inputs":{"value":"it is \"${x}\""},"type":"transform"}`},
		{"transform what is merged", `transform x = "[1, 2]" | wait | merge`, `{"inputs":{"transform":"wait | merge","value":"\"[1, 2]\"","variable":"x"},"type":"transform"}`},
		{"transform what is merged by a list", `{step: 'transform x = "[1, 2]"', transform: [merge list, size]}`, `{"inputs":{"transform":["merge list","size"],"value":"\"[1, 2]\"","variable":"x"},"type":"transform"}`},
		{"transform a bare value", "transform ${x} | trim", `{"inputs":{"transform":"trim","value":"${x}"},"type":"transform"}`},
		{"transform into a variable", "transform list x = ${a b} c | split ,", `{"inputs":{"transform":"split ,","type":"list","value":"${a b} c","variable":"x"},"type":"transform"}`},
		{"transform a typed variable", "transform integer x", `{"inputs":{"type":"integer","variable":"x"},"type":"transform"}`},
		{"transform by keys", "{type: transform, value: '${x}', transform: [trim, first]}", `{"inputs":{"transform":["trim","first"],"value":"${x}"},"type":"transform"}`},
		{"transform half by keys", "{step: transform value a b, transform: trim}", `{"inputs":{"transform":"trim","value":"a b"},"type":"transform"}`},
		{"clear-workflow-variable", "clear-workflow-variable map x", `{"inputs":{"type":"map","variable":"x"},"type":"clear-workflow-variable"}`},
		{"wait", "wait ${entity.sensor.a} ?? b", `{"inputs":{"value":"${entity.sensor.a} ?? b"},"type":"wait"}`},
		{"wait for a variable", "wait integer x = ${y}", `{"inputs":{"type":"integer","value":"${y}","variable":"x"},"type":"wait"}`},
		{"wait for a task", "wait task ${id}", `{"inputs":{"task":true,"value":"${id}"},"type":"wait"}`},
		{"wait for a task's result", "wait x = task ${id}", `{"inputs":{"task":true,"value":"${id}","variable":"x"},"type":"wait"}`},
		{"wait for a signal", "wait for signal paid", `{"inputs":{"signal":"paid"},"type":"wait-for-signal"}`},
		{"wait for a signal's data", "wait map x = for signal paid ${id}", `{"inputs":{"signal":"paid ${id}","type":"map","variable":"x"},"type":"wait-for-signal"}`},
		{"wait for a signal's data, the other way", "wait for signal map x = paid ${id}", `{"inputs":{"signal":"paid ${id}","type":"map","variable":"x"},"type":"wait-for-signal"}`},
		{"wait for a signal of a longer name", "wait for signal paid x=${id}", `{"inputs":{"signal":"paid x=${id}"},"type":"wait-for-signal"}`},
		{"wait-for-signal", "wait-for-signal x = paid", `{"inputs":{"signal":"paid","variable":"x"},"type":"wait-for-signal"}`},
		{"load", "load charset utf-8 map x = http://a b", `{"inputs":{"charset":"utf-8","type":"map","url":"http://a b","variable":"x"},"type":"load"}`},
		{"load by keys", "{step: load x, value: u}", `{"inputs":{"url":"u","variable":"x"},"type":"load"}`},
		{"return", "return a  b", `{"inputs":{"value":"a  b"},"type":"return"}`},
		{"return one quoted text", `'return "a b"'`, `{"inputs":{"value":"a b"},"type":"return"}`},
		{"return two quoted texts", `'return "a" "b"'`, `{"inputs":{"value":"\"a\" \"b\""},"type":"return"}`},
		{"return by keys", "{type: return, value: [1]}", `{"inputs":{"value":[1]},"type":"return"}`},
		{"goto", "goto start", `{"next":"start","type":"goto"}`},
		{"goto by key", "{type: goto, next: end}", `{"next":"end","type":"goto"}`},
		{"goto an expression", "goto ${x}", `{"next":"${x}","type":"goto"}`},
		{"label", "label here-we-are", `{"id":"here-we-are","type":"label"}`},
		{"if then", "if ${x} == 5 then if ${y} then log a then b", `{"inputs":{"equals":"5","target":"${x}"},"then":{"inputs":{"target":"${y}"},"then":{"inputs":{"message":"a then b"},"type":"log"},"type":"if"},"type":"if"}`},
		{"if keeps quotes of the step", `if ${x} then return "a" "b"`, `{"inputs":{"target":"${x}"},"then":{"inputs":{"value":"\"a\" \"b\""},"type":"return"},"type":"if"}`},
		{"if with steps", "{step: 'if ${x} == \"a b\"', steps: [log a]}", `{"block":[{"inputs":{"message":"a"},"type":"log"}],"inputs":{"equals":"a b","target":"${x}"},"type":"if"}`},
		{"if by keys", "{type: if, target: 1, equals: '${n}', then: {step: log a, name: n}}", `{"inputs":{"equals":"${n}","target":1},"then":{"inputs":{"message":"a"},"name":"n","type":"log"},"type":"if"}`},
		{"switch", "{step: switch, cases: [{step: log a, condition: {target: 1}, next: end}, log b]}", `{"cases":[{"condition":{"target":1},"inputs":{"message":"a"},"next":"end","type":"log"},{"inputs":{"message":"b"},"type":"log"}],"type":"switch"}`},
		{"subworkflow", "{steps: [log a], output: 1}", `{"block":[{"inputs":{"message":"a"},"type":"log"}],"output":1,"type":"subworkflow"}`},
		{"a list", "[log a, [log b]]", `{"block":[{"inputs":{"message":"a"},"type":"log"},{"block":[{"inputs":{"message":"b"},"type":"log"}],"type":"subworkflow"}],"type":"subworkflow"}`},
		{
			"workflow",
			"{type: workflow, name: n, id: i, input: {a: 1}, b: 2, lock: {name: l, entity: e, limit: 3}, retention: 5 hard, replayable: from-start, idempotent: all, timeout: 5s, output: o, condition: '${c}', next: end, on-error: fail rethrow, steps: [no-op]}",
			`{"condition":"${c}","id":"i","name":"n","nested":{"idempotent_all":true,"input":{"a":1,"b":2},"lock":{"limit":3,"name":"l","scope":"e"},"name":"n","on_error":[{"inputs":{"rethrow":true},"type":"fail"}],"output":"o","replayable":{"from_start":true},"retention":"5 hard","steps":[{"type":"no-op"}],"timeout":"5s"},"next":"end","type":"workflow"}`,
		},
		{"workflow that is a replay point", "{type: workflow, replayable: from here, idempotent: no, steps: [no-op]}", `{"idempotent":"no","nested":{"steps":[{"type":"no-op"}]},"replay":"from here","type":"workflow"}`},
		{"workflow over a target", "{type: workflow, target: [1, 2], condition: {not: 1}, steps: [no-op]}", `{"loop":{"index_var":"target_index","target":[1,2],"var":"target"},"nested":{"condition":{"not":1},"steps":[{"type":"no-op"}]},"type":"workflow"}`},
		{"workflow with an output only", "{type: workflow, output: 1}", `{"nested":{"output":1},"type":"workflow"}`},
		{"workflow replayable", "workflow replayable from here only", `{"replay":"from here only","type":"workflow"}`},
		{"workflow replayable, as a key", "{type: workflow, replayable: Reset}", `{"replay":"reset","type":"workflow"}`},
		{"workflow retention", "workflow retention max(1, 2h) hash a b", `{"retention":"hash \"a b\" max(1, 2h)","type":"workflow"}`},
		{"workflow with both", "workflow replayable from here retention forever", `{"replay":"from here","retention":"forever","type":"workflow"}`},
		{"foreach", "foreach x in 1..10 do log ${x}", `{"loop":{"index_var":"target_index","target":"1..10","var":"x"},"nested":{"steps":[{"inputs":{"message":"${x}"},"type":"log"}]},"type":"foreach"}`},
		{"foreach that spreads", "foreach {a, b} in ${x y} do log ${a}", `{"loop":{"index_var":"target_index","spread":["a","b"],"target":"${x y}","var":"target"},"nested":{"steps":[{"inputs":{"message":"${a}"},"type":"log"}]},"type":"foreach"}`},
		{
			"foreach by keys",
			"{step: foreach x, target: [a], target_index_var_name: i, concurrency: 50%, steps: [no-op], condition: 1, idempotent: yes}",
			`{"idempotent":"yes","loop":{"concurrency":"50%","index_var":"i","target":["a"],"var":"x"},"nested":{"condition":1,"steps":[{"type":"no-op"}]},"type":"foreach"}`,
		},
		{"foreach that reduces", "{step: foreach x in 1..3, reducing: {sum: 0}, concurrency: 1, do: 'let sum = ${sum} + ${x}'}", `{"loop":{"concurrency":"1","index_var":"target_index","reducing":{"sum":0},"target":"1..3","var":"x"},"nested":{"steps":[{"inputs":{"interpolation_mode":"words","value":"${sum} + ${x}","variable":"sum"},"type":"let"}]},"type":"foreach"}`},
		{"retry", "retry", `{"type":"retry"}`},
		{"retry of everything", "retry replay from start limit 2 in 5s backoff 1s 2s increasing 2x up to 1m timeout 1h 30m", `{"inputs":{"backoff":"1s 2s increasing 2x up to 1m","limit":"2 in 5s","replay":true},"next":"start","timeout":"1h 30m","type":"retry"}`},
		{"retry by keys", "{type: retry, next: last, replay: force, limit: [3, 1h], backoff: 1s, timeout: 5m, hash: h}", `{"inputs":{"backoff":"1s","hash":"h","limit":[3,"1h"],"replay":"force"},"next":"last","timeout":"5m","type":"retry"}`},
		{"fail", "fail", `{"type":"fail"}`},
		{"fail with a message", "fail message it is broken", `{"inputs":{"message":"it is broken"},"type":"fail"}`},
		{"fail rethrow", "fail rethrow message x", `{"inputs":{"message":"x","rethrow":true},"type":"fail"}`},
		{"fail that is kept for longer", "{step: fail, retention: forever hash x, value: {a: 1}}", `{"inputs":{"value":{"a":1}},"retention":"hash x forever","type":"fail"}`},
		{"log", "{step: log a b, level: warn, category: c}", `{"inputs":{"category":"c","level":"warn","message":"a b"},"type":"log"}`},
		{"log with a colon", "log hello: world", `{"inputs":{"message":"hello: world"},"type":"log"}`},
		{"log with a colon between spaces", "log hello : world", `{"inputs":{"message":"hello : world"},"type":"log"}`},
		{"log with an accent, and a colon between spaces", "log é : ${x} # comment", `{"inputs":{"message":"é : ${x}"},"type":"log"}`},
		{"log that ends in a colon", "log hello:", `{"inputs":{"message":"hello:"},"type":"log"}`},
		{"log with an apostrophe", "log don't panic", `{"inputs":{"message":"don't panic"},"type":"log"}`},
		{"no-op", "no-op", `{"type":"no-op"}`},
		{"sleep", "sleep 1m 30s", `{"inputs":{"duration":"1m 30s"},"type":"sleep"}`},
		{"sleep for an expression", "sleep ${x}", `{"inputs":{"duration":"${x}"},"type":"sleep"}`},
		{"set-state", "set-state integer a['b'] on ${e} = ${x} y", `{"inputs":{"key":"a['b']","scope":"${e}","type":"integer","value":"${x} y"},"type":"set-state"}`},
		{"set-sensor", "{step: set-sensor a = 1, require: {when: absent}, entity: e}", `{"inputs":{"key":"a","require":{"when":"absent"},"scope":"e","value":"1"},"type":"set-state"}`},
		{"clear-state", "clear-sensor a on b", `{"inputs":{"key":"a","scope":"b"},"type":"clear-state"}`},
		{"activity", "activity charge", `{"inputs":{"activity":"charge"},"type":"activity"}`},
		{"activity with arguments", `activity charge on PCI with a = 1, b = "x, y", c = ${z}, d = true, e = 1.10, f = 1.5, g = x y`, `{"inputs":{"activity":"charge","args":{"a":1,"b":"x, y","c":"${z}","d":true,"e":"1.10","f":1.5,"g":"x y"},"list":"PCI"},"type":"activity"}`},
		{"invoke-effector", "{type: invoke-effector, effector: e, entity: x, args: {a: [1]}}", `{"inputs":{"activity":"e","args":{"a":[1]},"list":"x"},"type":"activity"}`},
		{"child", "child ship with order = ${o}", `{"inputs":{"args":{"order":"${o}"},"workflow":"ship"},"type":"child"}`},
		{"http", "{step: 'http a.com/x?y=${z}', method: POST, headers: {a: b}, body: {c: 1}, status_code: 404}", `{"inputs":{"body":{"c":1},"endpoint":"a.com/x?y=${z}","headers":{"a":"b"},"method":"POST","status_code":404},"type":"http"}`},
		{"ssh", "ssh to ${h} ls -l 'a b'", `{"inputs":{"command":"ls -l 'a b'","endpoint":"${h}"},"type":"ssh"}`},
		{"ssh to where it always is", "{step: ssh ls, exit_code: any, output_max_size: 10, env: {a: 1}}", `{"inputs":{"command":"ls","env":{"a":1},"exit_code":"any","output_max_size":10},"type":"ssh"}`},
		{"shell", "shell ls | wc", `{"inputs":{"command":"ls | wc"},"type":"shell"}`},
		{"container", "container alpine:3 echo a b", `{"inputs":{"command":"echo a b","image":"alpine:3"},"type":"container"}`},
		{"container by keys", "{step: container alpine, commands: [a], exit_code: {less-than: 2}}", `{"inputs":{"commands":["a"],"exit_code":{"less-than":2},"image":"alpine"},"type":"container"}`},
		{"publish", "publish a.b with ${x}", `{"inputs":{"subject":"a.b","value":"${x}"},"type":"publish"}`},
		{"request", "{step: request a.b, value: {c: 1}, timeout: 2s}", `{"inputs":{"subject":"a.b","value":{"c":1}},"timeout":"2s","type":"request"}`},
		{"once", "once report", `{"inputs":{"what":"report"},"type":"once"}`},
		{"once in a zone", "once ${x} per week in Europe/Berlin", `{"inputs":{"period":"week","time_zone":"Europe/Berlin","what":"${x}"},"type":"once"}`},
		{"once by cron", "{step: once report, period: 0 6 * * *}", `{"inputs":{"period":"0 6 * * *","what":"report"},"type":"once"}`},
		{"signal", "signal paid to ${run} with ${x}", `{"inputs":{"run":"${run}","signal":"paid","value":"${x}"},"type":"signal"}`},
		{"approve", "{step: approve a machine, signal: s, timeout: 7d}", `{"inputs":{"message":"a machine","signal":"s"},"timeout":"7d","type":"approve"}`},
		{"a registered type", "apt-get  a b", `{"inputs":{"package":"a b"},"type":"apt-get"}`},
		{"a registered type by keys", "{type: apt-get, package: x, output: o, on-error: no-op, replayable: from here}", `{"inputs":{"package":"x"},"on_error":[{"type":"no-op"}],"output":"o","replay":"from here","type":"apt-get"}`},
		{"a registered type with nests and flags", `greet "Ada L" loudly`, `{"inputs":{"loud":true,"person":{"name":"Ada L"}},"type":"greet"}`},
		{"a registered type without its flag", "greet Ada", `{"inputs":{"loud":false,"person":{"name":"Ada"}},"type":"greet"}`},
		{"shorthand as a key", "{shorthand: log a}", `{"inputs":{"message":"a"},"type":"log"}`},
		{"s as a key", "{s: log a}", `{"inputs":{"message":"a"},"type":"log"}`},
		{"step in step", "{step: {step: log a, name: n}}", `{"inputs":{"message":"a"},"name":"n","type":"log"}`},
		{"a colon in step", "step: log hello: world # comment", `{"inputs":{"message":"hello: world"},"type":"log"}`},
		{"a colon and a quote in step", "step: log it's: so\n  id: x", `{"id":"x","inputs":{"message":"it's: so"},"type":"log"}`},
		{"keys of every step", "{step: no-op, id: a, name: 'n ${x}', metadata: {m: [1]}, input: {i: 1}, j: 2, output: {o: 1}, condition: true, next: end, timeout: 1s, on-error: [log a, retry], replayable: From-Here, idempotent: default}", `{"condition":true,"id":"a","inputs":{"i":1,"j":2},"metadata":{"m":[1]},"name":"n ${x}","next":"end","on_error":[{"inputs":{"message":"a"},"type":"log"},{"type":"retry"}],"output":{"o":1},"replay":"from here","timeout":"1s","type":"no-op"}`},
		{"idempotent", "{step: no-op, idempotent: yes}", `{"idempotent":"yes","type":"no-op"}`},
		{"idempotent, as a boolean", "{step: no-op, idempotent: false}", `{"idempotent":"no","type":"no-op"}`},
		{"keys that are like others are inputs", "{step: no-op, text: a, nest: b, nam: c}", `{"inputs":{"nam":"c","nest":"b","text":"a"},"type":"no-op"}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := parse(t, "- "+tc.yaml)
			if diff := cmp.Diff(tc.want, placelessJSON(t, d.Steps[0])); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// Every key of a definition.
func TestDefinition(t *testing.T) {
	for _, tc := range []struct{ name, yaml, want string }{
		{
			"all", `
id: flow
type: workflow
name: n ${x}
description: d
parameters:
  a: integer
  b: {type: list, defaultValue: [1.5, 2], required: yes, description: D, constraints: [{size: 2}]}
  c:
input: {a: 1, z: null}
output: ${x}
condition: {target: 1}
on-error: retry limit 3
timeout: 1h 30m
lock: {name: 'l ${x}', scope: s, limit: 2}
retention: 5 soft 6 hash H
replayable: Automatically, from start
idempotent: all
steps: [no-op]
`, `{"condition":{"target":1},"description":"d","id":"flow","idempotent_all":true,"input":{"a":1,"z":null},"lock":{"limit":2,"name":"l ${x}","scope":"s"},"name":"n ${x}","on_error":[{"inputs":{"limit":"3"},"type":"retry"}],"output":"${x}","parameters":{"a":{"type":"integer"},"b":{"constraints":[{"size":2}],"default":[1.5,2],"description":"D","required":true,"type":"list"},"c":{}},"replayable":{"automatically":true,"from_start":true},"retention":"hash H 5 soft 6","steps":[{"type":"no-op"}],"timeout":"1h 30m"}`,
		},
		{"output only", "output: [1, 2.0]", `{"output":[1,2]}`},
		{"a list", "- no-op", `{"steps":[{"type":"no-op"}]}`},
		{"enabled", "{replayable: enabled, steps: [no-op]}", `{"steps":[{"type":"no-op"}]}`},
		{"yes is enabled", "{replayable: yes, steps: [no-op]}", `{"steps":[{"type":"no-op"}]}`},
		{"disabled", "{replayable: DISABLED, steps: [no-op]}", `{"replayable":{"disabled":true},"steps":[{"type":"no-op"}]}`},
		{"from start", "{replayable: From-Start, steps: [no-op]}", `{"replayable":{"from_start":true},"steps":[{"type":"no-op"}]}`},
		{"automatically", "{replayable: automatically, steps: [no-op]}", `{"replayable":{"automatically":true},"steps":[{"type":"no-op"}]}`},
		{"from start automatically", "{replayable: from start automatically, steps: [no-op]}", `{"replayable":{"automatically":true,"from_start":true},"steps":[{"type":"no-op"}]}`},
		{"idempotent null", "{idempotent: null, steps: [no-op]}", `{"steps":[{"type":"no-op"}]}`},
		{"idempotent empty", "{idempotent: '', steps: [no-op]}", `{"steps":[{"type":"no-op"}]}`},
		{"a lock that is a number", "{lock: 5, steps: [no-op]}", `{"lock":{"name":"5"},"steps":[{"type":"no-op"}]}`},
		{"retention that is a number", "{retention: 5, steps: [no-op]}", `{"retention":"5","steps":[{"type":"no-op"}]}`},
		{"a lock with soft retention", "{lock: l, retention: 0 soft 5, steps: [no-op]}", `{"lock":{"name":"l"},"retention":"0 soft 5","steps":[{"type":"no-op"}]}`},
		{"jumps out of blocks", "[{step: no-op, id: a}, [[goto a], 'if ${x} then goto a', {step: switch, cases: [goto a]}], {step: fail, on-error: {steps: [goto a, goto exit]}}]", ``},
		{"inner ids win", "[{step: no-op, id: a}, [{step: no-op, id: a}, goto a]]", ``},
		{"handlers of nested workflows", "[{type: workflow, steps: [{step: no-op, id: a}], on-error: [{step: log x, next: a}, goto start]}]", ``},
		{"exit", "{steps: [{step: fail, on-error: [{step: log a, next: exit}, {step: fail, on-error: goto exit}]}], on-error: {step: fail, on-error: goto exit}}", ``},
		{"a label", "[label a, goto a]", ``},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := parse(t, tc.yaml)
			if tc.want == "" {
				return // it was accepted
			}
			if diff := cmp.Diff(tc.want, placelessJSON(t, d)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

func TestShorthandOfEveryTypeIsATemplate(t *testing.T) {
	for _, typ := range model.Types() {
		if _, err := shorthand.Parse(typ.Shorthand); err != nil {
			t.Errorf("%s: %v", typ.Name, err)
		}
	}
}
