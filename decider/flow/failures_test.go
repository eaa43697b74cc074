package flow

import (
	"testing"

	"github.com/droverhq/drover/schemas"
)

// A child that is a flow tells what caused its failure, and a handler finds it there, however deep it was.
func TestCausesOfAChildsFailure(t *testing.T) {
	const text = `
steps:
- step: child ship
  on-error:
  - step: log ${workflow.error.message}, ${workflow.error.cause.type}, ${workflow.error.cause.cause.cause.fields.disk}
    condition: {error-cause: {java-instance-of: interrupted}}
`
	tp := record(t, text, "")
	tp.decide()
	details := `{"type": "child", "message": "no disk", "step": "0", "cause":
		{"type": "child", "message": "no disk", "cause": {"type": "interrupted", "message": "lost", "fields": {"disk": 5}}}}`
	got := tp.decide(&schemas.ChildFailed{ScheduledEventID: tp.asked(schemas.EventChildScheduled), Reason: "child", Details: schemas.Payload(details)})
	tp.want(got, `RecordMarker {"markerName":"log","details":{"level":"info","text":"no disk, child, 5"}}`, `CompleteWorkflow {}`)
}

// What an activity says of a cause in words of its own stays a field.
func TestDetailsOfAnActivitysFailure(t *testing.T) {
	tp := record(t, "steps:\n- step: activity a\n  on-error: log ${workflow.error.message} ${workflow.error.fields.cause.type}\n", "")
	tp.decide()
	got := tp.decide(&schemas.ActivityFailed{
		ScheduledEventID: tp.asked(schemas.EventActivityScheduled), Reason: "broke", Details: schemas.Payload(`{"message": "m", "cause": {"type": "fuse"}}`),
	})
	tp.want(got, `RecordMarker {"markerName":"log","details":{"level":"info","text":"m fuse"}}`, `CompleteWorkflow {}`)
}
