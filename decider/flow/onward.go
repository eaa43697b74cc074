package flow

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/decider/flow/machine"
	"github.com/droverhq/drover/schemas"
)

// A run whose history is about to be full continues as new: the next run begins with the state and with what has just come in. That is
// done when nothing is under way that the next run would not hear of: no activity, child, timer or request on a state key.

// onward is what the next run begins with.
type onward struct {
	State  json.RawMessage `json:"state"`
	Inputs []input         `json:"inputs,omitempty"`
}

// input is a machine.Input in JSON.
type input struct {
	Kind    machine.Kind     `json:"kind"`
	ID      string           `json:"id,omitempty"`
	Name    string           `json:"name,omitempty"`
	Value   machine.Value    `json:"value,omitzero"`
	Failure *machine.Failure `json:"failure,omitempty"`
	Reduced machine.Value    `json:"reduced,omitzero"`
	State   json.RawMessage  `json:"state,omitempty"`
}

func inputs(kept []input) []machine.Input {
	var all []machine.Input
	for _, k := range kept {
		reduced, _ := k.Reduced.V.(map[string]any)
		all = append(all, machine.Input{Kind: k.Kind, ID: k.ID, Name: k.Name, Value: k.Value.V, Failure: k.Failure, Reduced: reduced, State: k.State})
	}
	return all
}

func kept(all []machine.Input) []input {
	var out []input
	for _, in := range all {
		k := input{Kind: in.Kind, ID: in.ID, Name: in.Name, Value: machine.Value{V: in.Value}, Failure: in.Failure, State: in.State}
		if in.Reduced != nil {
			k.Reduced = machine.Value{V: any(in.Reduced)}
		}
		out = append(out, k)
	}
	return out
}

// still tells whether all that the run has asked for is answered, by the inputs at the latest.
func (t *turn) still(in []machine.Input) bool {
	w := t.state.Wait
	if t.state.Status != machine.Running || w == nil || len(t.s.Open) > 0 || len(t.s.Asked) > 0 || len(t.state.Timers) > 0 {
		return false
	}
	return w.For != machine.StartTimer || slices.ContainsFunc(in, func(one machine.Input) bool { return one.ID == w.ID })
}

// onward ends this run in favour of the next. If it is refused, the context has what came in.
func (t *turn) onward(in []machine.Input) ([]schemas.Decision, error) {
	state, err := machine.Encode(t.state)
	if err != nil {
		return nil, fmt.Errorf("flow %s: %w", t.task.Type(), err)
	}
	t.s.State, t.s.Again = state, kept(in)
	next, err := wrap(origin{Version: t.s.Version, Part: t.s.Part, Continue: &onward{State: state, Inputs: t.s.Again}})
	if err != nil {
		return nil, err
	}
	after, err := json.Marshal(t.s)
	if err != nil {
		return nil, fmt.Errorf("flow %s: encode the context: %w", t.task.Type(), err)
	}
	t.task.SetContext(after)
	return []schemas.Decision{schemas.Decide(&schemas.ContinueAsNew{Input: next})}, nil
}

// carryOn makes the first decision of the next run.
func (d *Decider) carryOn(ctx context.Context, t *decider.Task, turn *turn, o *origin, version string) ([]schemas.Decision, error) {
	state, err := machine.Decode(o.Continue.State)
	if err != nil {
		return []schemas.Decision{decider.Fail("input", err.Error())}, nil
	}
	state.Task = t.Execution().Run
	turn.state, turn.s.Version, turn.s.Part, turn.s.Again = state, version, o.Part, o.Continue.Inputs
	return d.goOn(ctx, t, turn, nil)
}
