package flow

import (
	"context"
	"errors"
	"fmt"

	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/decider/flow/machine"
	"github.com/droverhq/drover/decider/flow/run"
	"github.com/droverhq/drover/schemas"
)

var _ decider.Replayer = (*Decider)(nil)

// Replay implements [decider.Replayer]: the new run begins with the state that the last decision of
// the old one left, at the place that is asked for. A run that was never decided upon begins again
// with its input.
func (d *Decider) Replay(
	ctx context.Context, t *decider.Task, q schemas.ReplayQuestion,
) (*schemas.ReplayAnswer, error) {
	before, err := t.Payload(ctx, t.Context())
	if err != nil {
		return nil, err
	}
	s, err := restore(before)
	switch {
	case err != nil:
		return nil, err
	case s == nil:
		return neverDecided(q), nil
	case s.Part != "":
		return &schemas.ReplayAnswer{
			Refused: "the run is a part of another flow's run, and parts are not replayed on their own",
			Hint:    "replay the workflow around it, which resumes its parts: drover describe tells its id",
		}, nil
	}
	flow, err := d.flow(ctx, t, s.Version)
	if err != nil {
		return nil, err
	}
	p, err := flow.Program(s.Part)
	if err != nil {
		return nil, fmt.Errorf("flow %s: %w", t.Type(), err)
	}
	if err := whole(ctx, t, s); err != nil {
		return nil, fmt.Errorf("flow %s: %w", t.Type(), err)
	}
	r, err := machine.Preview(p, machine.Origin{State: s.State, From: q.From, Force: q.Force})
	if f, ok := errors.AsType[*run.Failure](err); ok {
		return &schemas.ReplayAnswer{
			Refused: f.Message,
			Hint:    wayRound(p, machine.Origin{State: s.State, From: q.From, Force: q.Force}),
		}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("flow %s: %w", t.Type(), err)
	}
	input, err := wrap(origin{
		Version: s.Version, Part: s.Part,
		Replay: &replay{State: s.State, From: q.From, Force: q.Force},
	})
	if err != nil {
		return nil, err
	}
	return &schemas.ReplayAnswer{Input: input, Plan: planOf(r)}, nil
}

// wayRound says what makes a replay possible that was refused; nothing if force would be refused as
// well.
func wayRound(p *machine.Program, o machine.Origin) string {
	if o.Force {
		return ""
	}
	o.Force = true
	if _, err := machine.Preview(p, o); err != nil {
		return ""
	}
	return "if it may be done again, say --force, which needs a right of its own"
}

// neverDecided answers for a run that ended before its first decision: nothing of it has run.
func neverDecided(q schemas.ReplayQuestion) *schemas.ReplayAnswer {
	switch q.From {
	case schemas.ReplayFromStart, schemas.ReplayFromLast, schemas.ReplayFromEnd:
		return &schemas.ReplayAnswer{Plan: &schemas.ReplayPlan{From: schemas.ReplayFromStart}}
	}
	return &schemas.ReplayAnswer{
		Refused: fmt.Sprintf("no step of the run has begun, so none can be replayed from %s",
			q.From),
		Hint: "say --from start",
	}
}

func planOf(r *machine.Route) *schemas.ReplayPlan {
	p := &schemas.ReplayPlan{From: r.From, Resumes: r.Resumes}
	for _, s := range r.Again {
		p.Again = append(p.Again,
			schemas.ReplayStep{Ref: s.Ref, Name: s.ID, Type: s.Type, NotIdempotent: s.Risky})
	}
	return p
}
