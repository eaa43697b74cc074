package machine_test

import "testing"

// The timer of a step's timeout was refused by the service, and the step waited without end: it fails instead, as a sleep does.
func TestTimeoutIsRefused(t *testing.T) {
	const flow = `
flow
- {type: wait-for-signal, signal: go, timeout: 1h, on-error: [{type: return, value: "no time"}]}
----

start
----

`
	answers(t, flow+`failed 0#1!timeout OPEN_TIMERS_LIMIT_EXCEEDED too many
----`, "complete no time", "!cancel-timer", "!attributes")
	// Not that of an earlier try.
	answers(t, flow+`failed 0#7!timeout OPEN_TIMERS_LIMIT_EXCEEDED too many
----`, "nothing")
}

// A block whose timeout is refused takes back what runs in it.
func TestTimeoutOfBlockIsRefused(t *testing.T) {
	answers(t, `
flow
- type: subworkflow
  timeout: 10m
  steps:
  - {step: activity a, timeout: 1m}
  on-error:
  - activity compensate
----

start
----

failed 0#1!timeout OPEN_TIMERS_LIMIT_EXCEEDED too many
----`, "cancel 0.steps.0#1", "cancel-timer 0.steps.0#1!timeout", "schedule 0.on-error.0#1", "!fail")
}

// A run whose timeout is refused would have none.
func TestTimeoutOfRunIsRefused(t *testing.T) {
	answers(t, `
flow
timeout: 1h
steps:
- {step: activity a, on-error: [no-op]}
- no-op
on-error:
- no-op
----

start
----

failed run!timeout OPEN_TIMERS_LIMIT_EXCEEDED too many
----`, "cancel 0#1", "!on-error", "fail [OPEN_TIMERS_LIMIT_EXCEEDED] too many")
}

// A replay begins the time of what it goes on with, also where the old run was ended in the midst of it.
func TestTimeoutAfterReplay(t *testing.T) {
	answers(t, `
flow
- type: subworkflow
  timeout: 10m
  steps:
  - {step: activity a, timeout: 1m, idempotent: yes}
----

start
----

replay end
----`, "timer 0#1!timeout.2 10m", "timer 0.steps.0#1.1!timeout 1m", "schedule 0.steps.0#1.1 a")
}

// A retry that leaves a block takes back its timeout.
func TestTimeoutOfBlockThatARetryLeaves(t *testing.T) {
	answers(t, `
flow
- {id: a, step: activity a}
- type: subworkflow
  timeout: 10m
  steps:
  - retry from a limit 2
----

start
----

result 0#1 1
----`, "timer 1#1!timeout", "cancel-timer 1#1!timeout", "schedule 0#2 a")
}
