package flow

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/decider/flow/machine"
	"github.com/droverhq/drover/decider/flow/run"
	"github.com/droverhq/drover/schemas"
)

// A run continues as new when it is asked to: its history is about to be full, it is as old as its
// policy says, or its node is about to be recycled. The next run begins with the state and with
// what has just come in. That is done when nothing is under way that the next run would not hear
// of: no activity, child or request on a state key. Timers are armed again by the next run, with
// what is left of them.

// onward is what the next run begins with.
type onward struct {
	State  json.RawMessage `json:"state"`
	Inputs []input         `json:"inputs,omitempty"`
	// Due is when the timers fire that have not: timeouts, and that of the step that waits.
	Due map[string]schemas.Timestamp `json:"due,omitempty"`
}

// locked tells whether the state holds a lock, which the service hands over from run to run. A
// replay of the next run, which may have ended before its first decision, gets none: the lock was
// free by then. It goes on as the replay of any other state, and asks for its lock.
func (o *onward) locked() bool {
	s, err := run.Decode(o.State)
	return err == nil && s.Locked != ""
}

// input is a machine.Input in JSON.
type input struct {
	Kind    machine.Kind    `json:"kind"`
	ID      string          `json:"id,omitempty"`
	Name    string          `json:"name,omitempty"`
	Value   run.Value       `json:"value,omitzero"`
	Failure *run.Failure    `json:"failure,omitempty"`
	Reduced run.Value       `json:"reduced,omitzero"`
	State   json.RawMessage `json:"state,omitempty"`
}

func inputs(kept []input) []machine.Input {
	var all []machine.Input
	for _, k := range kept {
		reduced, _ := k.Reduced.V.(map[string]any)
		all = append(all, machine.Input{
			Kind: k.Kind, ID: k.ID, Name: k.Name, Value: k.Value.V, Failure: k.Failure,
			Reduced: reduced, State: k.State,
		})
	}
	return all
}

func kept(all []machine.Input) []input {
	var out []input
	for _, in := range all {
		k := input{
			Kind:    in.Kind,
			ID:      in.ID,
			Name:    in.Name,
			Value:   run.Value{V: in.Value},
			Failure: in.Failure,
			State:   in.State,
		}
		if in.Reduced != nil {
			k.Reduced = run.Value{V: any(in.Reduced)}
		}
		out = append(out, k)
	}
	return out
}

// still tells whether all that the run has asked for is answered, by the inputs at the latest.
func (t *turn) still(in []machine.Input) bool {
	w := t.state.Wait
	if t.state.Status != run.Running || w == nil || len(t.s.Open) > 0 || len(t.s.Asked) > 0 {
		return false
	}
	for id := range t.state.Timers {
		if _, known := t.s.Due[id]; !known && !answered(in, id) {
			// it was armed by a version that did not note it
			return false
		}
	}
	_, known := t.s.Due[w.ID]
	return w.For != machine.StartTimer || known || answered(in, w.ID)
}

// arms tells whether the run waits for a timer, or has it as a timeout, so that the next run must
// have what is left of it. One that only parts two decisions is waited for.
func (t *turn) arms(id string) bool {
	w := t.state.Wait
	return t.state.Timers[id] != "" ||
		w != nil && w.For == machine.StartTimer && w.ID == id && !w.Whole
}

func answered(in []machine.Input, id string) bool {
	return slices.ContainsFunc(in, func(one machine.Input) bool { return one.ID == id })
}

// armed notes when a timer fires.
func (t *turn) armed(a machine.Action) {
	if !t.arms(a.ID) {
		return
	}
	if t.s.Due == nil {
		t.s.Due = map[string]schemas.Timestamp{}
	}
	t.s.Due[a.ID] = schemas.At(now(t.task).Add(a.Delay))
}

// stays tells whether the run was just refused to continue, and not because something had come in:
// asked again at once, the service would refuse it again, without end.
func stays(t *decider.Task) bool {
	return slices.ContainsFunc(t.Events(), func(e schemas.Event) bool {
		a, ok := e.Attributes.(*schemas.WorkflowCloseFailed)
		return ok && a.Decision == schemas.DecideContinueAsNew &&
			a.Cause != schemas.CauseUnhandledDecision
	})
}

// onward ends this run in favour of the next. If it is refused, the context has what came in.
func (t *turn) onward(in []machine.Input) ([]schemas.Decision, error) {
	state, err := run.Encode(t.state)
	if err != nil {
		return nil, fmt.Errorf("flow %s: %w", t.task.Type(), err)
	}
	t.s.State, t.s.Again = state, kept(in)
	due := maps.Clone(t.s.Due)
	maps.DeleteFunc(due,
		func(id string, _ schemas.Timestamp) bool { return !t.arms(id) || answered(in, id) })
	next, err := wrap(origin{
		Version: t.s.Version, Part: t.s.Part, Locked: t.s.Locked, Held: t.s.Held,
		Continue: &onward{State: state, Inputs: t.s.Again, Due: due},
	})
	if err != nil {
		return nil, err
	}
	after, err := json.Marshal(t.s)
	if err != nil {
		return nil, fmt.Errorf("flow %s: encode the context: %w", t.task.Type(), err)
	}
	t.task.SetContext(after)
	return []schemas.Decision{schemas.Decide(&schemas.ContinueAsNew{Input: next, Part: true})}, nil
}

// carryOn makes the first decision of the next run.
func (d *Decider) carryOn(
	ctx context.Context, t *decider.Task, turn *turn, o *origin, version string,
) ([]schemas.Decision, error) {
	state, err := run.Decode(o.Continue.State)
	if err != nil {
		return []schemas.Decision{decider.Fail("input", err.Error())}, nil
	}
	state.Task, state.Mode = t.Execution().Run, string(t.StartMode())
	turn.state, turn.s.Version, turn.s.Part, turn.s.Again = state, version, o.Part, o.Continue.Inputs
	turn.s.Due, turn.s.Locked, turn.s.Held = o.Continue.Due, o.Locked, o.Held
	for _, id := range slices.Sorted(maps.Keys(o.Continue.Due)) {
		turn.decide([]machine.Action{
			{Do: machine.StartTimer, ID: id, Delay: max(o.Continue.Due[id].Time().Sub(now(t)), 0)},
		})
	}
	return d.goOn(ctx, t, turn, nil)
}
