package machine_test

import (
	"fmt"
	"strings"
	"testing"
)

// answers runs the commands of a script and wants texts in, or (with !) not in, the answer to the last one.
func answers(t *testing.T, script string, wants ...string) {
	t.Helper()
	got := (&world{t: t}).script(strings.TrimSpace(script) + "\n")
	last := got[strings.LastIndex(strings.TrimSuffix(got, "\n"), "----\n")+5:]
	for _, want := range wants {
		text, not := strings.CutPrefix(want, "!")
		if strings.Contains(last, text) == not {
			t.Errorf("got %q, want %q in:\n%s", last, want, got)
		}
	}
}

// The handler of the workflow ran twice: the timeout of the step that had failed was still armed.
func TestWorkflowHandlerRunsOnce(t *testing.T) {
	answers(t, `
flow
steps:
- {step: activity a, timeout: 10m}
on-error:
- activity compensate
- return x
----

start
----

failed 0#1 boom it failed
----`, "schedule on-error.0#1", "cancel-timer 0#1!timeout")
	answers(t, `
flow
steps:
- {step: activity a, timeout: 10m}
on-error:
- activity compensate
----

start
----

failed 0#1 boom it failed
----

fired 0#1!timeout
----`, "!cancel on-error.0#1", "!on-error.0#2")
}

// A nested workflow of the step type deploy was that of another step type, deploy2.
func TestPartsOfTypes(t *testing.T) {
	answers(t, `
type
id: deploy
steps:
- no-op
- no-op
- {type: workflow, steps: [log the inner part of deploy]}
----

type
id: deploy2
steps:
- log this is another type
----

flow
- deploy
- deploy2
----

start part=type:deploy
----`, "!part=type:deploy2")
}

// The timeout of a block was gone when a retry resumed a step in it.
func TestTimeoutOfBlockAfterRetry(t *testing.T) {
	answers(t, `
flow
- type: subworkflow
  timeout: 10m
  steps:
  - {step: activity a, idempotent: yes}
  on-error:
  - retry limit 5
----

start
----

failed 0.steps.0#1 boom it failed
----`, "schedule 0.steps.0#1.1 a", "\ntimer 0#1")
}

// The output of a step was made twice if its next reads a state key.
func TestOutputOnce(t *testing.T) {
	answers(t, `
flow
- activity a
- type: no-op
  output: {a: "${output}"}
  next: ${state.target}
- {id: far, type: no-op}
----

start
----

result 0#1 1
----

result 1#1?target "far"
----`, `complete {"a":1}`)
}

// A signal whose name is a number was thrown away if it came before the step.
func TestSignalNamedByNumber(t *testing.T) {
	answers(t, `
flow
- sleep 10s
- {type: wait-for-signal, signal: 5}
----

start
----

signal 5 {"a":1}
----

fired 0#1
----`, `complete {"a":1}`)
}

// What approve shows stayed after a timeout.
func TestApprovalLabel(t *testing.T) {
	answers(t, `
flow
- {step: approve it, timeout: 1h, on-error: [no-op]}
- activity next
----

start
----

fired 0#1!timeout
----`, "attributes approval=\n")
}

// The timeout of a block was gone, too, when a retry went back to a step in it.
func TestTimeoutOfBlockAfterRestart(t *testing.T) {
	answers(t, `
flow
- type: subworkflow
  timeout: 10m
  steps:
  - {step: activity a, replayable: from here}
  - activity b
  on-error:
  - retry replay limit 5
----

start
----

result 0.steps.0#1 1
----

failed 0.steps.1#1 boom it failed
----`, "schedule 0.steps.0#2 a", "\ntimer 0#1")
}

// A timeout that names a state key failed: nobody read the key.
func TestTimeoutOfStateKey(t *testing.T) {
	answers(t, `
flow
- {step: activity a, timeout: "${state.patience}", condition: {target: "${state.open}", equals: true}}
----

start
----

result 0#1?open true
----

result 0#1?patience "5m"
----`, "schedule 0#1 a", "timer 0#1!timeout 5m")
	answers(t, `
flow
- {step: activity a, timeout: "${state.patience}", on-error: ['return ${workflow.error.message}']}
----

start
----

result 0#1?patience "soon"
----`, "complete", "timeout", "soon")
}

// So did that of a flow, whose time begins when the key has been read, after the lock.
func TestTimeoutOfFlowByStateKey(t *testing.T) {
	answers(t, `
flow
lock: l
timeout: ${state.patience}
steps:
- activity a
----

start
----

granted lock
----

result #0?patience "5m"
----`, "schedule 0#1 a", "timer run!timeout 5m")
}

// A step that resumed by itself kept the timeout of its first try beside the new one, and was timed out by it. Its timeout is not read anew.
func TestResumedStepHasOneTimeout(t *testing.T) {
	const deploy = `
type
id: deploy
steps:
- activity a
----

flow
replayable: automatically
steps:
- {step: deploy, timeout: %s, idempotent: yes}
----

start
----
%s
failed 0#1/0 interrupted the worker is lost
----`
	for timeout, read := range map[string]string{"10m": "", `"${state.patience}"`: "\nresult 0#1?patience \"10m\"\n----\n"} {
		answers(t, fmt.Sprintf(deploy, timeout, read), "timer 0#1.1!timeout 10m0s", "cancel-timer 0#1!timeout", "!cancel-timer 0#1.1!timeout", "child 0#1.1/0")
	}
}

// A run that failed after a goto, a next or a return, as by its output, was resumed at the step after that one in the text.
func TestResumedAfterAJump(t *testing.T) {
	for _, steps := range []string{
		"- goto end\n- activity never",
		"- {step: log on, next: end}\n- activity never",
		"- return 5\n- activity never",
		"- transform value 5 | return\n- activity never",
		"- if true then return 5\n- activity never",
		"- - if true then goto end\n  - activity never",
		"- - return 5\n  - activity never\n- activity never",
	} {
		before := "flow\nsteps:\n" + steps + "\noutput: ${state.owner} ${output}\n----\n\nstart\n----\n\nresult #0?owner\n----\n\n"
		answers(t, before+"preview end\n----", "!2", "!steps.1")
		answers(t, before+"replay end\n----", "read #0?owner owner", "!never")
	}
	before := `
flow
steps:
- {step: retry from there limit 1}
- activity never
- {id: there, step: activity there, condition: {state: owner, equals: Ada}}
----

start
----

stop
----

`
	answers(t, before+"replay end\n----", "read 2#1?owner", "!never")
}

// What stands around a loop is not seen within it: the error says how it gets there. Nobody is told so where nothing stands around.
func TestNamesWithinALoop(t *testing.T) {
	const way = `give them what stands around by input: {how: "${how}"}`
	flow := func(step string) string { return "\nflow\nsteps:\n" + step + "\n----\n\nstart" }
	answers(t, flow("- step: foreach n in 1..2\n  steps:\n  - log ${how}")+" part=0\n----", "there is no such value: ", way)
	answers(t, flow("- log ${how}")+"\n----", "there is no such value", "!"+way)
}
