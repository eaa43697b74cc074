package decider

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/droverhq/drover/schemas"
)

// The constructors below take payloads (input, result, details) as any value: a [schemas.Payload], []byte or
// [json.RawMessage] is taken as it is, nil is no payload, everything else is encoded as JSON. A value that has no JSON
// form is a mistake in the program: the constructor panics, and the worker reports that as the decider's panic.
func payload(v any) schemas.Payload {
	switch v := v.(type) {
	case nil:
		return nil
	case schemas.Payload:
		return v
	case []byte:
		return v
	case json.RawMessage:
		return schemas.Payload(v)
	}
	p, err := schemas.JSONPayload(v)
	if err != nil {
		panic(fmt.Sprintf("decider: %T as a payload: %v", v, err))
	}
	return p
}

// ActivityOption changes how an activity is scheduled. What no option sets comes from the run's activity defaults.
type ActivityOption func(*schemas.ScheduleActivity)

// Schedule queues an activity under an id that no open activity of the run has. Input is any value with a JSON form,
// or bytes (a [schemas.Payload], []byte or [json.RawMessage]) that are taken as they are.
func Schedule(activityID, activityType string, input any, opts ...ActivityOption) schemas.Decision {
	a := &schemas.ScheduleActivity{ActivityID: activityID, ActivityType: activityType, Input: payload(input)}
	for _, opt := range opts {
		opt(a)
	}
	return schemas.Decide(a)
}

// List names the task list: only workers of that list get the activity.
func List(name string) ActivityOption {
	return func(a *schemas.ScheduleActivity) { a.List = name }
}

// Priority is written into the history and is part of the task's subject. A list is served in the order of scheduling all
// the same.
func Priority(n int) ActivityOption {
	return func(a *schemas.ScheduleActivity) { a.TaskPriority = n }
}

// StartToClose bounds one attempt, from the moment a worker takes it.
func StartToClose(d time.Duration) ActivityOption {
	return func(a *schemas.ScheduleActivity) { a.StartToCloseTimeout = schemas.Duration(d) }
}

// ScheduleToStart bounds the wait for a worker.
func ScheduleToStart(d time.Duration) ActivityOption {
	return func(a *schemas.ScheduleActivity) { a.ScheduleToStartTimeout = schemas.Duration(d) }
}

// ScheduleToClose bounds the activity as a whole, with every attempt.
func ScheduleToClose(d time.Duration) ActivityOption {
	return func(a *schemas.ScheduleActivity) { a.ScheduleToCloseTimeout = schemas.Duration(d) }
}

// Heartbeat bounds the time between two heartbeats.
func Heartbeat(d time.Duration) ActivityOption {
	return func(a *schemas.ScheduleActivity) { a.HeartbeatTimeout = schemas.Duration(d) }
}

// StartDelay holds the task back for d.
func StartDelay(d time.Duration) ActivityOption {
	return func(a *schemas.ScheduleActivity) { a.StartDelay = schemas.Duration(d) }
}

// NotIdempotent makes the activity run at most once: if its worker is lost, it fails.
func NotIdempotent() ActivityOption {
	return func(a *schemas.ScheduleActivity) { a.NotIdempotent = true }
}

// Retry lets the broker repeat a failed activity. Without it, retries are the decider's business.
func Retry(p schemas.RetryPolicy) ActivityOption {
	return func(a *schemas.ScheduleActivity) { a.Retry = &p }
}

// CancelActivity asks for the end of an open activity. A running one learns of it with its next heartbeat.
func CancelActivity(activityID string) schemas.Decision {
	return schemas.Decide(&schemas.RequestCancelActivity{ActivityID: activityID})
}

// Timer arms a timer under an id that no open timer of the run has.
func Timer(id string, d time.Duration) schemas.Decision {
	return schemas.Decide(&schemas.ScheduleTimer{TimerID: id, StartToFireTimeout: schemas.Duration(d)})
}

// CancelTimer takes an open timer back.
func CancelTimer(id string) schemas.Decision {
	return schemas.Decide(&schemas.CancelTimer{TimerID: id})
}

// Marker writes a note into the history; it wakes nobody. Details as in [Schedule].
func Marker(name string, details any) schemas.Decision {
	return schemas.Decide(&schemas.RecordMarker{MarkerName: name, Details: payload(details)})
}

// Complete ends the run with a result, as in [Schedule]. A decision that ends the run must be the last of its answer.
// The broker refuses it if something has come in that this task does not show, and asks again.
func Complete(result any) schemas.Decision {
	return schemas.Decide(&schemas.CompleteWorkflow{Result: payload(result)})
}

// Fail ends the run as failed. The rules of [Complete] hold.
func Fail(reason string, details any) schemas.Decision {
	return schemas.Decide(&schemas.FailWorkflow{Reason: reason, Details: payload(details)})
}

// Cancel ends the run as canceled. The rules of [Complete] hold.
func Cancel(details any) schemas.Decision {
	return schemas.Decide(&schemas.CancelWorkflow{Details: payload(details)})
}

// Started returns what the run was started with: the attributes of event 1, or nil if events do not begin with it.
func Started(events []schemas.Event) *schemas.WorkflowStarted {
	if len(events) == 0 {
		return nil
	}
	started, _ := events[0].Attributes.(*schemas.WorkflowStarted)
	return started
}
