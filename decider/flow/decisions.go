package flow

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/decider/flow/machine"
	"github.com/droverhq/drover/decider/flow/run"
	"github.com/droverhq/drover/schemas"
)

// Names of markers that flows leave in their history.
const (
	MarkerLog = "log"
)

// turn is one decision in the making.
type turn struct {
	d         *Decider
	task      *decider.Task
	s         *saved
	p         *machine.Program
	state     *run.State
	decisions []schemas.Decision
	end       *machine.Action
	err       error
}

// decide turns actions into decisions.
func (t *turn) decide(actions []machine.Action) {
	for _, a := range actions {
		switch a.Do {
		case machine.Complete, machine.Fail, machine.Cancel:
			t.end = &a
		case machine.Acquire, machine.ReadState, machine.WriteState, machine.ClearState:
			t.shared(a)
		case machine.MarkPoint, machine.ResetPoints, machine.SetRetention:
			t.note(a)
		default:
			t.plain(a)
		}
	}
}

func (t *turn) add(d schemas.DecisionAttributes) {
	t.decisions = append(t.decisions, schemas.Decide(d))
}

func (t *turn) payload(v any) schemas.Payload {
	p, err := outgoing(v)
	if err != nil && t.err == nil {
		t.err = fmt.Errorf("flow %s: %w", t.task.Type(), err)
	}
	return p
}

// plain is for what the run itself has.
func (t *turn) plain(a machine.Action) {
	switch a.Do {
	case machine.Schedule:
		list := a.List
		if list == "" && (t.s.Defaults == nil || t.s.Defaults.List == "") {
			list = t.d.o.List
		}
		t.add(&schemas.ScheduleActivity{
			ActivityID: a.ID, ActivityType: a.Name, Input: t.payload(a.Value), List: list,
			NotIdempotent: !a.Idempotent,
		})
	case machine.CancelWork:
		t.add(&schemas.RequestCancelActivity{ActivityID: a.ID})
	case machine.StartTimer:
		t.armed(a)
		t.add(&schemas.ScheduleTimer{TimerID: a.ID, StartToFireTimeout: schemas.Duration(a.Delay)})
	case machine.CancelTimer:
		t.add(&schemas.CancelTimer{TimerID: a.ID})
	case machine.StartChild:
		t.child(a)
	case machine.CancelChild:
		t.add(&schemas.CancelExternal{WorkflowID: t.childID(a.ID)})
	case machine.SendSignal:
		t.add(&schemas.SignalExternal{
			WorkflowID: a.Run, SignalName: a.Name, Input: t.payload(a.Value),
			Control: t.payload(a.Name),
		})
	case machine.SetLabels:
		t.add(&schemas.SetAttributes{Attributes: a.Labels})
	case machine.LogLine:
		line := map[string]any{"level": a.Level, "text": a.Text}
		if a.Category != "" {
			line["category"] = a.Category
		}
		t.add(&schemas.RecordMarker{MarkerName: MarkerLog, Details: t.payload(line)})
	}
}

// shared asks for locks and state keys, which go beyond the run.
func (t *turn) shared(a machine.Action) {
	var d schemas.DecisionAttributes
	switch a.Do {
	case machine.Acquire:
		d = &schemas.AcquireLock{Lock: a.Name, Scope: a.Scope, Limit: a.Limit}
	case machine.ReadState:
		d = &schemas.GetState{Key: a.Name, Scope: a.Scope}
	case machine.WriteState:
		d = &schemas.SetState{
			Key: a.Name, Scope: a.Scope, Value: t.payload(a.Value), Require: t.payload(a.Require),
		}
	default:
		d = &schemas.ClearState{Key: a.Name, Scope: a.Scope}
	}
	if a.Do != machine.Acquire {
		t.s.Asked = append(t.s.Asked, a.ID)
	}
	t.add(d)
}

// note writes what is for those who look at the run later.
func (t *turn) note(a machine.Action) {
	switch a.Do {
	case machine.MarkPoint:
		t.add(&schemas.SetReplayPoint{Name: a.Name, Only: a.Only})
	case machine.ResetPoints:
		t.add(&schemas.ResetReplayPoints{})
	default:
		t.add(&schemas.SetRetention{Retention: a.Text, Hash: a.Hash})
	}
}

// childID is the workflow id of a child: unique by the run that asks for it, and of bounded length
// however deep runs are nested.
func (t *turn) childID(action string) string {
	if id := t.s.Children[action]; id != "" {
		return id
	}
	return t.task.Execution().Run + ":" + action
}

func (t *turn) child(a machine.Action) {
	d := &schemas.StartChild{
		WorkflowType: a.Name, Control: t.payload(a.ID), Input: t.payload(any(a.Child.Input)),
	}
	if a.Child.Input == nil {
		d.Input = nil
	}
	if a.Name == "" {
		o := origin{
			Version: t.s.Version, Part: a.Child.Program, Reducing: a.Child.Reducing,
			IdempotentAll: a.Child.IdempotentAll,
			Locked:        t.locked(),
		}
		if a.Child.Input != nil {
			o.Input = run.Value{V: any(a.Child.Input)}
		}
		if a.Child.Vars != nil {
			o.Vars = run.Value{V: any(a.Child.Vars)}
		}
		if r := a.Child.Replay; r != nil {
			o.Replay = &replay{State: r.State, From: r.From, Force: r.Force}
		}
		d.WorkflowType, d.Part, d.ActivityDefaults = t.task.Type(), true, t.s.Defaults
		if d.Input, t.err = wrap(o); t.err != nil {
			return
		}
	}
	if a.Run != "" {
		if t.s.Children == nil {
			t.s.Children = map[string]string{}
		}
		t.s.Children[a.ID] = a.Run
	}
	d.WorkflowID = t.childID(a.ID)
	t.add(d)
}

// finish leaves the state in the context, and ends the run if it is at its end.
func (t *turn) finish() ([]schemas.Decision, error) {
	state, fresh, err := run.EncodeLean(t.state)
	if err != nil {
		return nil, fmt.Errorf("flow %s: %w", t.task.Type(), err)
	}
	t.s.State = state
	t.keepApart(fresh)
	maps.DeleteFunc(t.s.Due, func(id string, _ schemas.Timestamp) bool { return !t.arms(id) })
	if t.end != nil && t.locked() && t.works() {
		t.end = nil // the run says so again when there is news of it
	}
	if t.end != nil {
		t.decisions = without(t.decisions)
		if state, err = run.Encode(t.state); err != nil {
			return nil, fmt.Errorf("flow %s: %w", t.task.Type(), err)
		}
		t.close(*t.end, state)
		if t.s.Part != "" && t.end.Do == machine.Complete { // it is not replayed on its own
			if t.s.State, err = run.Encode(t.state.Completed()); err != nil {
				return nil, fmt.Errorf("flow %s: %w", t.task.Type(), err)
			}
		}
	}
	if t.err != nil {
		return nil, t.err
	}
	after, err := json.Marshal(t.s)
	if err != nil {
		return nil, fmt.Errorf("flow %s: encode the context: %w", t.task.Type(), err)
	}
	t.task.SetContext(after)
	return t.decisions, nil
}

// locked tells whether the work of the run is done under a lock: its own, one that it has taken by
// a state key, or that of a run around it. Then the run ends after all that it has begun, also what
// it has given up: the lock is free when the run that holds it has closed, and what others do under
// it must not meet what is left of this one.
func (t *turn) locked() bool { return t.s.Locked || t.state.Locked != "" || len(t.s.Held) > 0 }

// works tells whether an activity or a child has not ended.
func (t *turn) works() bool {
	for _, id := range t.s.Open {
		if t.p.IsWork(id) {
			return true
		}
	}
	return false
}

// without leaves out what a run that ends with these decisions has asked for in them, and what
// takes that back: it would end with the run, and the service refuses a reply that asks for it and
// ends the run.
func without(decisions []schemas.Decision) []schemas.Decision {
	type key struct {
		by schemas.DecisionType
		id string
	}
	out := map[key]bool{}
	return slices.DeleteFunc(decisions, func(d schemas.Decision) bool {
		switch a := d.Attributes.(type) {
		case *schemas.ScheduleActivity:
			out[key{schemas.DecideRequestCancelActivity, a.ActivityID}] = true
			return true
		case *schemas.ScheduleTimer:
			out[key{schemas.DecideCancelTimer, a.TimerID}] = true
			return true
		case *schemas.StartChild:
			out[key{schemas.DecideCancelExternal, a.WorkflowID}] = true
			return true
		case *schemas.RequestCancelActivity:
			return out[key{d.Type(), a.ActivityID}]
		case *schemas.CancelTimer:
			return out[key{d.Type(), a.TimerID}]
		case *schemas.CancelExternal:
			return out[key{d.Type(), a.WorkflowID}]
		case *schemas.AcquireLock, *schemas.GetState, *schemas.SetState, *schemas.ClearState:
			return true
		}
		return false
	})
}

// maxLeft is how large a state may be that a part hands to the run around it, which keeps it until
// the step has ended.
const maxLeft = 64 << 10

func (t *turn) close(a machine.Action, state []byte) {
	part := t.s.Part != ""
	switch a.Do {
	case machine.Complete:
		d := &schemas.CompleteWorkflow{Result: t.payload(a.Value)}
		if part {
			o := outcome{Output: run.Value{V: a.Value}}
			if a.Reduced != nil {
				o.Reduced = run.Value{V: any(a.Reduced)}
			}
			d.Result, t.err = wrap(o)
		}
		t.add(d)
	case machine.Fail:
		d := &schemas.FailWorkflow{Reason: "failed"}
		if len(a.Failure.Names) > 0 {
			d.Reason = a.Failure.Names[0]
		}
		if part {
			o := outcome{Failure: a.Failure}
			if len(state) <= maxLeft && t.resumable(state) {
				o.State = state
			}
			d.Details, t.err = wrap(o)
		} else {
			d.Details = t.payload(details(a.Failure))
		}
		t.add(d)
	default:
		d := &schemas.CancelWorkflow{}
		if part && len(state) <= maxLeft && t.resumable(state) {
			d.Details, t.err = wrap(outcome{Failure: a.Failure, State: state})
		} else {
			d.Details = t.payload(details(a.Failure))
		}
		t.add(d)
	}
}

// resumable tells whether a run could go on from the state with which it ends. It hands no other
// on: the step around it may not run again then, unless it is idempotent by its own word, or forced
// to, and begins its runs anew.
func (t *turn) resumable(state []byte) bool {
	_, err := machine.Preview(t.p, machine.Origin{State: state, From: schemas.ReplayFromEnd})
	return err == nil
}

// details show a failure to whoever looks at the run.
func details(f *run.Failure) any {
	if f == nil {
		return nil
	}
	return f.Shown()
}
