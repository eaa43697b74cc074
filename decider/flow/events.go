package flow

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/decider/flow/machine"
	"github.com/droverhq/drover/decider/flow/run"
	"github.com/droverhq/drover/decider/flow/value"
	"github.com/droverhq/drover/schemas"
)

// reader turns events into inputs. What asked for something tells the number under which the answer
// comes.
type reader struct {
	ctx  context.Context
	task *decider.Task
	s    *saved
	in   []machine.Input
}

// read takes one event. What is no business of a flow is passed over.
func (r *reader) read(e schemas.Event) error {
	switch a := e.Attributes.(type) {
	case *schemas.ActivityScheduled:
		r.open(e.ID, a.ActivityID)
	case *schemas.ActivitySuccess:
		return r.result(a.ScheduledEventID, a.Result)
	case *schemas.ActivityFailed:
		return r.failed(a.ScheduledEventID, a.Reason, a.Details)
	case *schemas.ActivityCanceled:
		return r.failed(a.ScheduledEventID, run.NameCanceled, a.Details)
	case *schemas.ActivityTimedOut:
		return r.failed(a.ScheduledEventID, run.NameTimeout,
			schemas.Text("the activity ran out of time: "+string(a.TimeoutType)))
	case *schemas.ActivityScheduledTimeout:
		return r.failed(a.ScheduledEventID, run.NameTimeout,
			schemas.Text("no worker took the activity in time: "+string(a.TimeoutType)))
	case *schemas.ActivityScheduleFailed:
		r.refused(a.ActivityID, a.Cause, a.Details)
	case *schemas.TimerExpired:
		r.hears(machine.Input{Kind: machine.Fired, ID: a.TimerID})
	case *schemas.TimerScheduleFailed:
		r.refused(a.TimerID, a.Cause, a.Details)
	case *schemas.Signal:
		content, err := r.task.Payload(r.ctx, a.Input)
		if err != nil {
			return err
		}
		v, err := incoming(content)
		if err != nil { // the sender has been told that it arrived, so it does
			v = map[string]any{"unreadable": err.Error()}
		}
		r.hears(machine.Input{Kind: machine.Signal, Name: a.SignalName, Value: v})
	case *schemas.WorkflowCancelRequested:
		r.hears(machine.Input{Kind: machine.Stop})
	default:
		return r.readOthers(e)
	}
	return nil
}

func (r *reader) readOthers(e schemas.Event) error {
	switch a := e.Attributes.(type) {
	case *schemas.ChildScheduled:
		r.open(e.ID, noted(a.Control))
	case *schemas.ChildSuccess:
		return r.childResult(a)
	case *schemas.ChildFailed:
		return r.childFailed(a.ScheduledEventID, a.Reason, a.Details, false)
	case *schemas.ChildCanceled:
		return r.childFailed(a.ScheduledEventID, run.NameCanceled, a.Details, true)
	case *schemas.ChildTerminated:
		return r.failed(a.ScheduledEventID, "terminated", schemas.Text("the child was terminated"))
	case *schemas.ChildTimedOut:
		return r.failed(a.ScheduledEventID, run.NameTimeout, schemas.Text("the child ran out of time"))
	case *schemas.ChildStartFailed:
		r.close(a.ScheduledEventID)
		id := noted(a.Control)
		delete(r.s.Children, id)
		r.refused(id, a.Cause, a.Details)
	case *schemas.SignalExternalFailed:
		f := run.NewFailure(string(a.Cause), "workflow "+a.WorkflowID+": "+string(a.Cause)+" "+a.Details)
		id := noted(a.Control)
		r.hears(machine.Input{Kind: machine.Failed, ID: id, Name: id, Failure: f})
	case *schemas.LockAcquired:
		r.hears(machine.Input{Kind: machine.Granted, ID: "lock"})
	case *schemas.LockRefused:
		r.fails("lock",
			run.Failuref(string(a.Cause), "the lock %q is not to be had: %s", a.Lock, a.Details))
	case *schemas.LockReleased:
		r.s.release(a.Scope, a.Lock)
	case *schemas.LockBroken:
		r.s.release(a.Scope, a.Lock)
		r.hears(machine.Input{Kind: machine.Broken, ID: "lock", Name: a.Lock})
	case *schemas.StateRequested:
		if len(r.s.Asked) > 0 {
			r.open(e.ID, r.s.Asked[0])
			r.s.Asked = r.s.Asked[1:]
		}
	case *schemas.StateRead:
		return r.result(a.ScheduledEventID, a.Value)
	case *schemas.StateSet:
		if lock, ok := schemas.StateLock(a.Key); ok {
			r.s.hold(a.Scope, lock)
		}
		return r.result(a.ScheduledEventID, nil)
	case *schemas.StateCleared:
		return r.result(a.ScheduledEventID, nil)
	case *schemas.StateRefused:
		r.stateRefused(a)
	}
	return nil
}

// stateRefused reads a refusal. One that was given at once has no request in the history, and
// stands where that would.
func (r *reader) stateRefused(a *schemas.StateRefused) {
	id, ok := r.close(a.ScheduledEventID)
	if a.ScheduledEventID == 0 && len(r.s.Asked) > 0 {
		id, ok, r.s.Asked = r.s.Asked[0], true, r.s.Asked[1:]
	}
	switch {
	case !ok:
	case a.Cause == schemas.CauseRequirement:
		r.hears(machine.Input{Kind: machine.Refused, ID: id})
	default:
		r.refused(id, a.Cause, a.Details)
	}
}

func (r *reader) hears(in machine.Input) { r.in = append(r.in, in) }

func (r *reader) fails(id string, f *run.Failure) {
	r.hears(machine.Input{Kind: machine.Failed, ID: id, Failure: f})
}

func (r *reader) open(event int64, id string) {
	if id == "" {
		return
	}
	if r.s.Open == nil {
		r.s.Open = map[int64]string{}
	}
	r.s.Open[event] = id
}

func (r *reader) close(event int64) (string, bool) {
	id, ok := r.s.Open[event]
	delete(r.s.Open, event)
	delete(r.s.Children, id)
	return id, ok
}

// result is an answer. One that is no value of a flow is a failure of the step, not of the
// decision.
func (r *reader) result(event int64, p schemas.Payload) error {
	id, ok := r.close(event)
	if !ok {
		return nil
	}
	content, err := r.task.Payload(r.ctx, p)
	if err != nil {
		return err
	}
	v, err := incoming(content)
	if err != nil {
		r.fails(id, run.NewFailure(run.NameExpression, "the answer cannot be used: "+err.Error()))
		return nil
	}
	r.hears(machine.Input{Kind: machine.Result, ID: id, Value: v})
	return nil
}

// failed is the failure of an activity or a child: its reason is the name, its details the message
// and what error-field finds.
func (r *reader) failed(event int64, reason string, details schemas.Payload) error {
	id, ok := r.close(event)
	if !ok {
		return nil
	}
	content, err := r.task.Payload(r.ctx, details)
	if err != nil {
		return err
	}
	v, err := incoming(content)
	if err != nil {
		v = nil // the reason says enough
	}
	r.fails(id, failure(reason, v, maxCauses))
	return nil
}

// maxCauses is how many causes of a child's failure are taken over: more than that are not kept by
// the machine.
const maxCauses = 16

// failure reads details. Those of a child that is a flow tell what caused its failure, so that
// handlers here find what they look for however deep it was.
func failure(reason string, details any, causes int) *run.Failure {
	text, isText := details.(string)
	if isText {
		return run.NewFailure(reason, text)
	}
	m, isMap := details.(map[string]any)
	if !isMap {
		return run.NewFailure(reason, reason)
	}
	message, ok := m["message"].(string)
	if !ok {
		message = reason
	}
	if reason == run.NameCanceled && ofFlow(run.NameTimeout, m) {
		// it ran out of its own time, so its step fails as any other that does
		f := failure(run.NameTimeout, m, causes)
		f.Names = append(f.Names, run.NameCanceled)
		return f
	}
	f := run.NewFailure(reason, message)
	if !ofFlow(reason, m) {
		f.Fields = run.Value{V: m}
		return f
	}
	f.Fields = run.Value{V: m["fields"]}
	if cause, ok := m["cause"].(map[string]any); ok && causes > 0 {
		name, _ := cause["type"].(string)
		f.Cause = failure(name, cause, causes-1)
	}
	return f
}

// ofFlow tells whether details are what a flow that has failed leaves: see its failure's shown form
// in package machine.
func ofFlow(reason string, details map[string]any) bool {
	for key := range details {
		if !slices.Contains([]string{"message", "type", "step", "fields", "cause"}, key) {
			return false
		}
	}
	return details["type"] == reason
}

func (r *reader) refused(id string, cause schemas.Cause, details string) {
	r.fails(id, run.NewFailure(string(cause), "the service refuses it: "+string(cause)+" "+details))
}

func (r *reader) childResult(a *schemas.ChildSuccess) error {
	content, err := r.task.Payload(r.ctx, a.Result)
	if err != nil {
		return err
	}
	o, ok := unwrap[outcome](content)
	if !ok {
		return r.result(a.ScheduledEventID, content)
	}
	id, open := r.close(a.ScheduledEventID)
	if open {
		reduced, _ := o.Reduced.V.(map[string]any)
		r.hears(machine.Input{Kind: machine.Result, ID: id, Value: o.Output.V, Reduced: reduced})
	}
	return nil
}

// childFailed reads how a child ended that has not succeeded. What a flow leaves has its state.
func (r *reader) childFailed(
	event int64, reason string, details schemas.Payload, canceled bool,
) error {
	content, err := r.task.Payload(r.ctx, details)
	if err != nil {
		return err
	}
	if canceled && len(content) == 0 {
		content = schemas.Text("the child was canceled")
	}
	o, ok := unwrap[outcome](content)
	if !ok || o.Failure == nil {
		return r.failed(event, reason, content)
	}
	if id, open := r.close(event); open {
		if canceled && !o.Failure.Has(run.NameCanceled) { // it ran out of its own time
			o.Failure.Names = append(o.Failure.Names, run.NameCanceled)
		}
		r.hears(machine.Input{Kind: machine.Failed, ID: id, Failure: o.Failure, State: o.State})
	}
	return nil
}

// noted reads the note that an action was given with its decision.
func noted(control schemas.Payload) string {
	var id string
	if json.Unmarshal(control, &id) != nil {
		return ""
	}
	return id
}

// begins reads how a run begins.
func (r *reader) begins(a *schemas.WorkflowStarted) (*origin, error) {
	content, err := r.task.Payload(r.ctx, a.Input)
	if err != nil {
		return nil, err
	}
	// Nobody else wraps an input: what stands in one that a person gives is data.
	if o, ok := unwrap[origin](content); ok &&
		(a.ParentWorkflowExecution != nil || a.ContinuedExecutionRun != "" || a.Replays != nil) {
		return o, nil
	}
	v, err := incoming(content)
	if err != nil {
		return nil, &inputError{err.Error()}
	}
	in, isMap := v.(map[string]any)
	if v != nil && !isMap {
		return nil, &inputError{"it is a " + value.TypeName(v) + ": give a map of its parameters"}
	}
	return &origin{Input: run.Value{V: any(in)}}, nil
}

// inputError is about what a run was started with: the run fails, and asking again would not help.
type inputError struct{ problem string }

func (e *inputError) Error() string { return "the input of the run: " + e.problem }
