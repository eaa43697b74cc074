package flow

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/decider/flow/machine"
	"github.com/droverhq/drover/decider/flow/run"
	"github.com/droverhq/drover/schemas"
)

// MarkerValues is the name of markers with values that the context names by their numbers: large
// ones that stay as they are, such as the input and the list of a loop. Each is written once, not
// with every decision.
const MarkerValues = "flow-values"

// past is what the history knows and the context does not.
type past struct {
	values  map[int]run.Value // that are apart
	earlier []json.RawMessage // states that the run began with
	outputs map[string]any    // of children, by the ids of the actions that started them
}

// readPast reads the history of a run. That is done when a worker meets a run that it does not have
// in memory, and that is in the middle of a large loop or has large values: once, not with each
// decision.
func readPast(ctx context.Context, t *decider.Task) (*past, error) {
	p := &past{values: map[int]run.Value{}, outputs: map[string]any{}}
	r, open := &reader{ctx: ctx, task: t, s: &saved{}}, map[int64]string{}
	for e, err := range t.History(ctx) {
		if err != nil {
			return nil, err
		}
		switch a := e.Attributes.(type) {
		case *schemas.WorkflowStarted:
			err = p.began(r, a)
		case *schemas.Marker:
			err = p.marked(r, a)
		case *schemas.ChildScheduled:
			open[e.ID] = noted(a.Control)
		case *schemas.ChildSuccess:
			err = p.ended(r, a, open[a.ScheduledEventID])
		}
		if err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (p *past) began(r *reader, a *schemas.WorkflowStarted) error {
	o, err := r.begins(a)
	if err != nil {
		return err
	}
	if o.Replay != nil {
		p.earlier = append(p.earlier, o.Replay.State)
	}
	if o.Continue != nil {
		p.earlier = append(p.earlier, o.Continue.State)
		for _, in := range o.Continue.Inputs {
			if in.Kind == machine.Result {
				p.outputs[in.ID] = in.Value.V
			}
		}
	}
	return nil
}

func (p *past) marked(r *reader, a *schemas.Marker) error {
	if a.MarkerName != MarkerValues {
		return nil
	}
	details, err := r.task.Payload(r.ctx, a.Details)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(details, &p.values); err != nil {
		return fmt.Errorf("flow: a marker %s is no map of values: %w", MarkerValues, err)
	}
	return nil
}

func (p *past) ended(r *reader, a *schemas.ChildSuccess, id string) error {
	if id == "" {
		return nil
	}
	content, err := r.task.Payload(r.ctx, a.Result)
	if err != nil {
		return err
	}
	if o, ok := unwrap[outcome](content); ok {
		p.outputs[id] = o.Output.V
	}
	return nil
}

// stateOf reads the state of a context.
func stateOf(ctx context.Context, t *decider.Task, data []byte) (*run.State, error) {
	if !run.Named(data) {
		return run.Decode(data)
	}
	p, err := readPast(ctx, t)
	if err != nil {
		return nil, err
	}
	s, err := run.DecodeLean(data, p.values)
	if err != nil {
		return nil, err
	}
	return s, p.fill(s)
}

// fill gives a state the outputs that it may need for some inputs, or all.
func fill(ctx context.Context, t *decider.Task, s *run.State, inputs int, all bool) error {
	if all {
		inputs = run.All
	}
	if !s.Lacks(inputs) {
		return nil
	}
	p, err := readPast(ctx, t)
	if err != nil {
		return err
	}
	return p.fill(s)
}

func (p *past) fill(s *run.State) error {
	for id, output := range p.outputs {
		s.Fill(id, output)
	}
	for _, data := range p.earlier {
		earlier, err := run.Decode(data)
		if err != nil {
			return err
		}
		s.FillFrom(earlier)
	}
	return nil
}

// whole makes the state of a context one that another run can begin with, which does not have the
// history of this one.
func whole(ctx context.Context, t *decider.Task, s *saved) error {
	state, err := stateOf(ctx, t, s.State)
	if err == nil {
		err = fill(ctx, t, state, 0, true)
	}
	if err != nil {
		return err
	}
	s.State, err = run.Encode(state)
	return err
}

// keepApart writes the values that the context will name from now on.
func (t *turn) keepApart(fresh map[int]run.Value) {
	if len(fresh) == 0 {
		return
	}
	details, err := json.Marshal(fresh)
	if err != nil && t.err == nil {
		t.err = fmt.Errorf("flow %s: encode values: %w", t.task.Type(), err)
	}
	t.add(&schemas.RecordMarker{MarkerName: MarkerValues, Details: details})
}
