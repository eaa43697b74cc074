package machine_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/droverhq/drover/decider/flow/machine"
	"github.com/droverhq/drover/decider/flow/run"
)

// zoo is a flow with a little of everything.
const zoo = `
replayable: automatically from start
parameters: {n: integer}
steps:
- {id: a, step: 'let x = ${n} ?? 1', replayable: from here}
- step: activity work with n = ${x}
  idempotent: yes
  timeout: 1m
  on-error:
  - {step: log skipped, condition: {equals: never}}
  - steps:
    - if ${x} == 5 then goto a
    - retry limit 3 in 1m backoff 1s
- {type: switch, value: "${x}", cases: [{step: log one, condition: 1}, {steps: [sleep 1s, 'let y = ${state.k} ?? 2']}]}
- {type: foreach, target: 1..3, target_var_name: i, reducing: {sum: 0}, steps: ['let sum = ${sum} + ${i}']}
- set-state k = ${x}
- wait for signal go
- {id: b, step: approve it, on-error: goto b}
- wait z = ${state.z}
- http example.com
- child other with a = 1
- if ${x} == 1 then retry replay from a limit 2
on-error:
- {step: retry limit 2, condition: {glob: "*again*"}}
- log ${workflow.error.message}
output: ${x} ${state.out}
`

// tour are inputs that lead through the zoo.
func tour(actions []machine.Action, fail int) []machine.Input {
	var in []machine.Input
	for i, a := range actions {
		one := machine.Input{Kind: machine.Result, ID: a.ID, Value: int64(i)}
		switch a.Do {
		case machine.StartTimer:
			one.Kind = machine.Fired
		case machine.Acquire:
			one.Kind = machine.Granted
		case machine.Schedule, machine.StartChild, machine.WriteState:
			if fail%3 == 1 {
				one.Kind, one.Failure = machine.Failed, run.NewFailure("broke", "try again")
			}
			if fail%7 == 3 {
				one.Kind, one.Failure = machine.Failed, run.NewFailure(run.NameInterrupted, "lost")
			}
		case machine.ReadState:
		default:
			continue
		}
		in = append(in, one)
	}
	if len(in) == 0 {
		in = append(in, machine.Input{Kind: machine.Signal, Name: "go"}, machine.Input{Kind: machine.Signal, Name: "approve", Value: fail%2 == 0})
	}
	return in
}

// A state that somebody made up, as the input of a replay may be, ends in an error and not in a panic.
func FuzzState(f *testing.F) {
	p := part(f, compile(f, zoo), "")
	for seed := range 8 {
		s, actions, err := machine.Start(p, machine.Begin{}, begin, half)
		if err != nil {
			f.Fatal(err)
		}
		for i := range 30 {
			data, err := run.Encode(s)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data, uint8(i))
			if s.Status.Ended() {
				break
			}
			if actions, err = machine.Step(p, s, tour(actions, i*seed), begin.Add(time.Duration(i)*time.Second), half); err != nil {
				f.Fatal(err)
			}
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, what uint8) {
		s, err := run.Decode(data)
		if err != nil {
			return
		}
		once, err := run.Encode(s)
		if err != nil {
			t.Fatalf("a state that was read cannot be written: %v", err)
		}
		if again, err := run.Encode(read(t, once)); err != nil || !bytes.Equal(once, again) {
			t.Fatalf("a state is written in two ways: %v\n%s\n%s", err, once, again)
		}
		from := []string{"end", "last", "start", "a", "b", "1", "1.on-error.1"}[int(what)%7]
		for _, force := range []bool{false, true} {
			begun, actions, err := machine.Start(p, machine.Begin{Replay: &machine.Origin{State: data, From: from, Force: force}}, begin, half)
			if err != nil {
				continue
			}
			if _, err := machine.Step(p, begun, tour(actions, int(what)), begin, half); err != nil {
				t.Fatalf("a replay that has begun is refused: %v", err)
			}
		}
		var in []machine.Input
		if s.Wait != nil {
			for _, kind := range []machine.Kind{machine.Result, machine.Fired, machine.Granted, machine.Refused} {
				in = append(in, machine.Input{Kind: kind, ID: s.Wait.ID}, machine.Input{Kind: kind, ID: s.Wait.ID + "/0"})
			}
		}
		for id := range s.Timers {
			in = append(in, machine.Input{Kind: machine.Fired, ID: id})
		}
		in = append(in, machine.Input{Kind: machine.Signal, Name: "go"}, machine.Input{Kind: machine.Broken}, machine.Input{Kind: machine.Stop})
		if _, err := machine.Step(p, s, in, begin, half); err != nil {
			return // it does not fit
		}
	})
}
