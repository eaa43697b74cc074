package machine_test

import (
	"testing"

	"github.com/droverhq/drover/decider/flow/machine"
	"github.com/droverhq/drover/decider/flow/run"
)

// What the caller gives goes before what the definition gives, and that before defaults; what nobody gives is not required unless it says so.
func TestWhoseInputItIs(t *testing.T) {
	const flow = `
flow
parameters:
  a: {type: integer, defaultValue: 1}
  b: {type: integer}
  d: {type: integer}
input: {b: 2, c: 1}
steps: [{type: return, value: {a: "${a}", b: "${b}", c: "${c}"}}]
----

`
	answers(t, flow+"start\n----", `complete {"a":1,"b":2,"c":1}`)
	answers(t, flow+"start {\"a\":5,\"b\":6,\"c\":7}\n----", `complete {"a":5,"b":6,"c":7}`)
}

// A part that begins again has the variables that it began with, and not those that it has set since.
func TestPartBeginsAgainWithItsVariables(t *testing.T) {
	answers(t, `
flow
- type: foreach
  target: 1..2
  target_var_name: n
  replayable: from start
  steps:
  - let n = ${n} + 1
  - {step: "activity a with n = ${n}", on-error: [retry replay from start limit 2]}
----

start part=0 {"$vars":{"n":1}}
----

failed 0.steps.1#1 boom no
----`, `schedule 0.steps.1#2 a {"n":2}`)
}

// Steps count against a circle only as far as none of them waits.
func TestWaitsEndACircle(t *testing.T) {
	for step, in := range map[string]machine.Input{
		"let x = ${state.k}":         {Kind: machine.Result, ID: "1#1?k", Value: int64(1)},
		"activity a":                 {Kind: machine.Result, ID: "1#1"},
		"sleep 1s":                   {Kind: machine.Fired, ID: "1#1"},
		"foreach n in 1..1 do no-op": {Kind: machine.Result, ID: "1#1/0"},
	} {
		p := part(t, compile(t, "steps: [wait for signal go, \""+step+"\", no-op, no-op, no-op]\n"), "")
		s, _, err := machine.Start(p, machine.Begin{}, begin, half)
		if err != nil {
			t.Fatal(err)
		}

		for _, one := range []machine.Input{{Kind: machine.Signal, Name: "go"}, in} {
			if one.Kind == machine.Signal {
				s.Idle = machine.MaxIdle - 2
			}
			if _, err := machine.Step(p, s, []machine.Input{one}, begin, half); err != nil {
				t.Fatal(err)
			}
		}
		if s.Status != run.Succeeded {
			t.Errorf("%s: got %s with %+v, want that it goes on", step, s.Status, s.Failure)
		}
	}
}
