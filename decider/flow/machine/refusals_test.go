package machine_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/droverhq/drover/decider/flow/machine"
	"github.com/droverhq/drover/decider/flow/run"
)

// What the service refuses fails what has asked for it: a step, which its handler may catch, or the run.
func TestRefusalsReachWhoAsked(t *testing.T) {
	for name, c := range map[string]struct{ script, want, not string }{
		"a lock":                     {"lock: l\nsteps: [activity a]\n|failed lock NOPE full", "fail [NOPE] full", "schedule"},
		"a sleep":                    {"steps: [{step: sleep 1h, on-error: [activity b]}]\n|failed 0#1 NOPE full", "schedule 0.on-error.0#1 b", "fail"},
		"a key of a step":            {"steps: [{step: \"let x = ${state.k}\", on-error: [activity b]}]\n|failed 0#1?k NOPE full", "schedule 0.on-error.0#1 b", "fail"},
		"a key of a condition":       {"steps: [{step: no-op, condition: {target: \"${state.k}\"}, on-error: [activity b]}]\n|failed 0#1?k NOPE full", "schedule 0.on-error.0#1 b", "fail"},
		"a key of the run":           {"condition: {target: \"${state.k}\"}\nsteps: [activity a]\non-error: [activity b]\n|failed #0?k NOPE full", "fail [NOPE] full", "schedule"},
		"a key of the run's output":  {"steps: [no-op]\non-error: [activity b]\noutput: ${state.k}\n|failed #0?k NOPE full", "fail [NOPE] full", "schedule"},
		"a key of the run's timeout": {"timeout: ${state.k}\nsteps: [activity a]\n|failed #0?k NOPE full", "fail [NOPE] full", "schedule"},
	} {
		t.Run(name, func(t *testing.T) {
			text, answer, _ := strings.Cut(c.script, "|")
			answers(t, "flow\n"+text+"----\n\nstart\n----\n\n"+answer+"\n----", c.want, "!"+c.not)
		})
	}
}

// The condition of a run may name a state key: it begins when that is known.
func TestConditionOfRunByStateKey(t *testing.T) {
	const flow = "flow\ncondition: {target: \"${state.k}\", equals: 1}\nsteps: [activity a]\n----\n\nstart\n----\n\n"
	answers(t, flow+"result #0?k 1\n----", "schedule 0#1 a")
	answers(t, flow+"result #0?k 2\n----", "complete", "!schedule")
}

// heard is what a run does about inputs that come together, after its first decision.
func heard(t *testing.T, text string, in ...machine.Input) (*run.State, []string) {
	t.Helper()
	p := part(t, compile(t, text), "")
	s, _, err := machine.Start(p, machine.Begin{}, begin, half)
	if err != nil {
		t.Fatal(err)
	}
	actions, err := machine.Step(p, s, in, begin, half)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, a := range actions {
		all = append(all, shown(a))
	}
	return s, all
}

func TestInputsThatAreForNobody(t *testing.T) {
	sent := machine.Input{Kind: machine.Failed, ID: "go", Name: "go", Failure: run.NewFailure("UNKNOWN", "no such workflow")}
	signal := func(name string) machine.Input {
		return machine.Input{Kind: machine.Signal, Name: name, Value: int64(7)}
	}
	for name, c := range map[string]struct {
		text string
		in   []machine.Input
		want []string
	}{
		"a signal that was sent has reached nobody, and the run goes on": {
			"steps: [signal go to other, activity a]\n",
			[]machine.Input{sent},
			[]string{"log warn signal go has reached nobody: no such workflow"},
		},
		"the run has ended before it is asked to": {
			"steps: [wait for signal go]\n",
			[]machine.Input{signal("go"), {Kind: machine.Stop}},
			[]string{"complete 7"},
		},
		"a signal is named as the state key that is read": {
			"steps: [\"let x = ${state.k}\", \"return x is ${x}\"]\n",
			[]machine.Input{signal("k"), {Kind: machine.Result, ID: "0#1?k", Value: int64(5)}},
			[]string{"complete x is 5"},
		},
		"the end of a run that this loop has not begun": {
			"steps: [foreach n in 1..1 do no-op, return done]\n",
			[]machine.Input{{Kind: machine.Result, ID: "9#1/0"}, {Kind: machine.Result, ID: "0#1/0"}},
			[]string{"complete done"},
		},
		"another lock is broken, as one that was taken by its state key": {
			"lock: mine\nsteps: [wait for signal go]\n",
			[]machine.Input{{Kind: machine.Granted, ID: "lock"}, {Kind: machine.Broken, ID: "lock", Name: "other"}},
			nil,
		},
		"a lock is broken of a run without one": {
			"steps: [wait for signal go]\n",
			[]machine.Input{{Kind: machine.Broken, ID: "lock"}},
			nil,
		},
		"what was given up ends, and not what a stopped run waits for": {
			"lock: mine\nsteps: [{type: subworkflow, timeout: 1m, steps: [activity a], on-error: [no-op]}, activity b]\n",
			[]machine.Input{{Kind: machine.Granted, ID: "lock"}, {Kind: machine.Fired, ID: "0#1!timeout"}, {Kind: machine.Stop}, {Kind: machine.Failed, ID: "0.steps.0#1", Failure: run.NewFailure("canceled", "")}},
			[]string{"timer 0#1!timeout 1m0s", "schedule 0.steps.0#1 a", "cancel 0.steps.0#1", "schedule 1#1 b", "cancel 1#1"},
		},
	} {
		if _, got := heard(t, c.text, c.in...); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// The loss of a run's own lock is told, and the run goes on without it.
func TestLockThatIsBroken(t *testing.T) {
	s, got := heard(t, "lock: mine\nsteps: [wait for signal go]\n", machine.Input{Kind: machine.Granted, ID: "lock"}, machine.Input{Kind: machine.Broken, ID: "lock", Name: "mine"})
	if s.Locked != "" || len(got) != 1 || !strings.Contains(got[0], "the lock mine was taken away") {
		t.Errorf("got %q and the lock %q, want its loss told", got, s.Locked)
	}
}

// Signals that a later step takes are kept up to a bound, and those beyond it are told of.
func TestTooManySignals(t *testing.T) {
	in := slices.Repeat([]machine.Input{{Kind: machine.Signal, Name: "more"}}, 1_001)
	if _, got := heard(t, "steps: [sleep 1h, wait for signal more]\n", in...); len(got) == 0 || !strings.Contains(got[0], "signal more was thrown away") {
		t.Errorf("got %d actions, %.1q, want a log line", len(got), got)
	}
}

// Each step whose condition names a state key reads it for itself: it may have changed since the one before was passed over.
func TestConditionsReadTheirKeysAnew(t *testing.T) {
	answers(t, `
flow
- {step: activity a, condition: {target: "${state.k}", equals: 1}}
- {step: activity b, condition: {target: "${state.k}", equals: 2}}
----

start
----

result 0#1?k 3
----`, "read 1#1?k k", "!complete")
}

// What the body of a step has read, or the run before its steps, may have changed by the time of the output.
func TestOutputsReadTheirKeysAnew(t *testing.T) {
	answers(t, `
flow
- {step: "let x = ${state.k}", output: "${state.k}"}
----

start
----

result 0#1?k 1
----`, "read 0#1?k k", "!complete")
	answers(t, `
flow
condition: {target: "${state.k}", equals: 1}
steps: [activity a]
output: ${state.k}
----

start
----

result #0?k 1
----

result 0#1 1
----`, "read #0?k k", "!complete")
}

// A run whose condition was never judged is not run without it by a replay.
func TestReplayJudgesTheConditionThatNobodyHas(t *testing.T) {
	const flow = `
flow
condition: {target: "${state.k}", equals: 1}
steps: [activity a]
----

start
----

`
	for _, ended := range []string{"", "failed #0?k NOPE full\n----\n\n"} {
		answers(t, flow+ended+"replay end\n----", "read #0?k k", "!schedule")
	}
	answers(t, flow+"result #0?k 1\n----\n\nfailed 0#1 boom no\n----\n\nreplay end force\n----", "schedule 0#1.1 a", "!read") // it holds
}

// The name of a lock may be a state key; a lock without a name is none.
func TestLockNamedByStateKey(t *testing.T) {
	const flow = "flow\nlock: ${state.k}\nsteps: [activity a]\n----\n\nstart\n----\n\n"
	answers(t, flow+"result #0?k \"mine\"\n----", "lock mine", "!schedule")
	answers(t, flow+"result #0?k \"\"\n----", "fail", "its name is empty", "!lock ")
	answers(t, flow+"result #0?k [1]\n----", "fail", "lock: ", "!schedule")
}

// A step whose next cannot be made has failed.
func TestNextThatCannotBeMade(t *testing.T) {
	answers(t, `
flow
- {step: no-op, next: "${nothing}", on-error: [activity b]}
----

start
----`, "schedule 0.on-error.0#1 b", "!fail")
}
