package machine_test

import "testing"

// A handler none of whose items is for an error hands it to what is around the step, however far that is.
func TestErrorThatNoItemIsFor(t *testing.T) {
	const flow = `
flow
- type: subworkflow
  steps:
  - type: subworkflow
    steps:
    - {step: activity a, on-error: [{step: activity never, condition: {equals: never}}]}
`
	const fails = `----

start
----

failed 0.steps.0.steps.0#1 boom it failed
----`
	answers(t, flow+"  on-error: [activity b]\n- no-op\n"+fails, "schedule 0.on-error.0#1 b", "!never", "!fail")
	answers(t, flow+"    on-error: [activity b]\n- no-op\n"+fails, "schedule 0.steps.0.on-error.0#1 b", "!never", "!fail")
	answers(t, flow+fails, "fail [boom] it failed at=0.steps.0.steps.0")
}

// exit leaves the handler that it is in, also from a block of it.
func TestExitFromABlockOfAHandler(t *testing.T) {
	answers(t, `
flow
- step: activity a
  on-error:
  - {type: subworkflow, steps: [{step: activity c, next: exit}]}
  - activity never
- activity b
----

start
----

failed 0#1 boom it failed
----

result 0.on-error.0.steps.0#1 1
----`, "schedule 1#1 b", "!never")
}
