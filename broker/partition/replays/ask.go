package replays

import (
	"context"
	"errors"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/schemas"
)

// askWait bounds how long a decider may think about a replay.
const askWait = schemas.Duration(5e9)

// ask asks a decider of the type where the new run begins. One that does not know the
// question keeps no replay points.
func (rs *Replays) ask(ctx context.Context, y *replay) error {
	s := y.old
	task := &schemas.DecisionTask{
		V: schemas.Version, Namespace: rs.Env.Options.Namespace, WorkflowID: s.WorkflowID, Run: s.Run,
		Type: s.Start.WorkflowType, TypeVersion: s.Start.WorkflowTypeVersion,
		Token: s.Run + ".replay." + y.run, Events: []schemas.Event{}, Context: s.Context,
		Attempt: 1, Deadline: rs.Env.Now().Add(askWait),
		Replay: &schemas.ReplayQuestion{From: y.from(), Force: y.force},
	}
	body, err := schemas.MarshalJSON(task)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, askWait.Std())
	defer cancel()
	m, err := rs.Env.Conn.Request(ctx, rs.Env.NS.Decide(task.Type), nil, body)
	if err != nil && y.force && y.from() == schemas.ReplayFromStart {
		// it needs no decider to begin anew with the same input
		y.plan = &schemas.ReplayPlan{From: schemas.ReplayFromStart}
		return nil
	}
	switch {
	case errors.Is(err, natsconn.ErrNoResponders):
		return schemas.Errorf(
			schemas.CodeConflict,
			"no decider for type %q is listening, and only it can tell where run %s may begin again",
			task.Type,
			s.Run,
		).
			About(s.WorkflowID, s.Run).WithHint(
			"start one in namespace %q, or begin anew with: drover start %s --id %s",
			rs.Env.Options.Namespace, task.Type, s.WorkflowID)
	case errors.Is(err, natsconn.ErrTimeout), errors.Is(err, context.DeadlineExceeded):
		return schemas.Errorf(schemas.CodeTimeout,
			"the decider of type %q did not tell within %v where run %s may begin again",
			task.Type, askWait.Std(), s.Run).About(s.WorkflowID, s.Run).
			WithHint("look at its log; asking again does no harm")
	case err != nil:
		return err
	}
	reply := &schemas.DecisionReply{}
	if err := natsconn.Decode(m.Header, m.Data, reply); err != nil {
		return schemas.Errorf(schemas.CodeConflict,
			"the decider of type %q gave an answer that cannot be read: %v", task.Type, err).
			About(s.WorkflowID, s.Run)
	}
	return y.answered(task.Type, reply)
}

// answered takes the answer of a decider.
func (y *replay) answered(typ string, reply *schemas.DecisionReply) error {
	a := reply.Replay
	switch {
	case a == nil && reply.Error != nil:
		return schemas.Errorf(schemas.CodeConflict,
			"the decider of type %q cannot tell where run %s may begin again: %s",
			typ, y.old.Run, reply.Error.Reason).
			About(y.q.WorkflowID, y.old.Run).WithHint("look at its log; asking again does no harm")
	case a == nil && y.from() != schemas.ReplayFromStart:
		return schemas.Errorf(
			schemas.CodeConflict,
			"the decider of type %q keeps no replay points: a run of it can be replayed from start only",
			typ,
		).
			InField("from").About(y.q.WorkflowID, y.old.Run).
			WithHint("say --from start: the new run begins with the same input")
	case a == nil:
		a = &schemas.ReplayAnswer{}
	case a.Refused != "":
		return schemas.Errorf(schemas.CodeConflict,
			"run %s of workflow %q cannot be replayed from %s: %s",
			y.old.Run, y.q.WorkflowID, y.from(), a.Refused).
			InField("from").About(y.q.WorkflowID, y.old.Run).WithHint("%s", a.Hint)
	}
	y.goesOn = len(a.Input) > 0
	if y.plan, y.input = a.Plan, a.Input; y.plan == nil {
		y.plan = &schemas.ReplayPlan{From: schemas.ReplayFromStart}
	}
	return nil
}
