package decider

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/droverhq/drover/schemas"
)

// The constructors below take payloads (input, result, details) as any value: a [schemas.Payload],
// []byte or [json.RawMessage] is taken as it is, nil is no payload, everything else is encoded as
// JSON. A value that has no JSON form is a mistake in the program: the constructor panics, and the
// worker reports that as the decider's panic.
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

// Schedule queues an activity under an id that no open activity of the run has. Input is any value
// with a JSON form, or bytes (a [schemas.Payload], []byte or [json.RawMessage]) that are taken as
// they are.
func Schedule(activityID, activityType string, input any, opts ...ActivityOption) schemas.Decision {
	a := &schemas.ScheduleActivity{
		ActivityID: activityID, ActivityType: activityType, Input: payload(input),
	}
	for _, opt := range opts {
		opt.forActivity(a)
	}
	return schemas.Decide(a)
}

// CancelActivity asks for the end of an open activity. One that waits is canceled at once, one that
// runs is told, and may still succeed.
func CancelActivity(activityID string) schemas.Decision {
	return schemas.Decide(&schemas.RequestCancelActivity{ActivityID: activityID})
}

// Timer arms a timer under an id that no open timer of the run has. It fires d after the event that
// arms it; with a d of 0 it fires at once.
func Timer(id string, d time.Duration, opts ...TimerOption) schemas.Decision {
	t := &schemas.ScheduleTimer{TimerID: id, StartToFireTimeout: schemas.Duration(d)}
	for _, opt := range opts {
		opt.forTimer(t)
	}
	return schemas.Decide(t)
}

// CancelTimer takes an open timer back.
func CancelTimer(id string) schemas.Decision {
	return schemas.Decide(&schemas.CancelTimer{TimerID: id})
}

// Marker writes a note into the history; it wakes nobody. Details as in [Schedule].
func Marker(name string, details any) schemas.Decision {
	return schemas.Decide(&schemas.RecordMarker{MarkerName: name, Details: payload(details)})
}

// SetAttributes changes what the run shows in lists. Names that are not given stay as they are; an
// empty value removes its name. It wakes nobody. A run has 32 KiB of names and values at most; a
// reply that sets more is refused.
func SetAttributes(attributes map[string]string) schemas.Decision {
	return schemas.Decide(&schemas.SetAttributes{Attributes: attributes})
}

// StartChild starts a workflow whose end is reported to this run. The workflow id is the child's
// own, 1 to 256 bytes, and no open run of the namespace may have it. Input as in [Schedule]. See
// [View.Child] for where it stands.
//
// The run is asked again when the child has ended or could not be started, and with [Tell] when it
// begins. Causes of a refusal are [schemas.CauseWorkflowRunning], [schemas.CauseOpenChildrenLimit],
// [schemas.CauseChildDepth], [schemas.CauseInvalidAttributes] and those about registered types. A
// refused child may be asked for again.
func StartChild(workflowID, workflowType string, input any, opts ...ChildOption) schemas.Decision {
	c := &schemas.StartChild{
		WorkflowID: workflowID, WorkflowType: workflowType, Input: payload(input),
	}
	for _, opt := range opts {
		opt.forChild(c)
	}
	return schemas.Decide(c)
}

// SignalExternal sends a signal to another workflow of the namespace: to its open run, unless
// [ToRun] names one. It arrives once. Input as in [Schedule]. See [View.ExternalSignals] for the
// answer.
//
// The run is asked again only if the signal has reached nobody, or with [Tell]. Causes are
// [schemas.CauseUnknownExecution] if no such run is open, [schemas.CauseOpenExternalsLimit] and
// [schemas.CauseInvalidAttributes].
func SignalExternal(workflowID, name string, input any, opts ...ExternalOption) schemas.Decision {
	s := &schemas.SignalExternal{WorkflowID: workflowID, SignalName: name, Input: payload(input)}
	for _, opt := range opts {
		opt.forSignal(s)
	}
	return schemas.Decide(s)
}

// CancelExternal asks another workflow of the namespace, such as a child, to end: its open run,
// unless [ToRun] names one. What comes of it is for that workflow's decider to say. See
// [View.ExternalCancels] for the answer, and [SignalExternal] about when the run is asked again and
// the causes.
func CancelExternal(workflowID string, opts ...ExternalOption) schemas.Decision {
	c := &schemas.CancelExternal{WorkflowID: workflowID}
	for _, opt := range opts {
		opt.forCancel(c)
	}
	return schemas.Decide(c)
}

// Complete ends the run with a result, as in [Schedule]. A decision that ends the run must be the
// last of its answer. The broker refuses it if something has come in that this task does not show,
// and asks again; see [View.Refused]. What the answer decides beside it stands all the same: look
// for it in the View before it is decided again, such as a signal to another workflow in
// [View.ExternalSignals].
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

// ContinueAsNew ends the run and starts a fresh one of the same type under the same workflow id,
// with an empty history: for work without end, before [Task.SuggestContinueAsNew] says that it is
// time. Input as in [Schedule]; nil is that of this run. Attributes, the parent and what no option
// sets stay as they were. Open activities, timers and children of the run are not taken over: the
// end of a child is then reported to nobody. The rules of [Complete] hold, but that signals alone
// refuse it three times in a row at most: then the next run begins with those that no decider has
// seen. No signal is lost in between.
func ContinueAsNew(input any, opts ...ContinueOption) schemas.Decision {
	c := &schemas.ContinueAsNew{Input: payload(input)}
	for _, opt := range opts {
		opt.forContinue(c)
	}
	return schemas.Decide(c)
}

// Started returns what the run was started with: the attributes of event 1, or nil if events do not
// begin with it.
func Started(events []schemas.Event) *schemas.WorkflowStarted {
	if len(events) == 0 {
		return nil
	}
	started, _ := events[0].Attributes.(*schemas.WorkflowStarted)
	return started
}
