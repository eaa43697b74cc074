package decider

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/droverhq/drover/schemas"
)

// Replayer is a [Decider] that can begin a run where another one of its type stood. One that is no
// Replayer can have its runs replayed from the start only, with the same input.
//
// Replay is asked about a run that has ended, before anything is written. [Task.Context] is what
// its last decision left, [Task.Events] has nothing, and [Task.History] reads what has happened in
// the run. The answer says what would run again, and with which input the new run is to begin; or
// why the run cannot be replayed so. An error means that this worker cannot tell now: the broker
// says so to whoever asked.
type Replayer interface {
	Replay(ctx context.Context, t *Task, q schemas.ReplayQuestion) (*schemas.ReplayAnswer, error)
}

// replayTime bounds an answer for which the broker names no deadline.
const replayTime = 10 * time.Second

// question answers a task that asks for no decision. No cache and no run is touched.
func (s *session) question(work context.Context, a *ask, t *Task) {
	until := a.arrived.Add(replayTime)
	ctx, cancel := context.WithDeadlineCause(work, until, ErrDeadline)
	defer cancel()
	var answer *schemas.ReplayAnswer
	err := errReplayGoexit
	// deferred for the sake of runtime.Goexit
	defer func() { s.tell(work, a, &t.task, answer, err, until) }()
	if answer, err = replay(ctx, a.decider, t); err == nil {
		answer.Input, err = s.payloads.Spill(ctx, answer.Input)
	}
}

// tell answers a question, or says why there is no answer.
func (s *session) tell(
	work context.Context, a *ask, dt *schemas.DecisionTask, answer *schemas.ReplayAnswer, err error,
	until time.Time,
) {
	log := s.log.WithField("workflow", dt.WorkflowID).WithField("run", dt.Run).WithField("type",
		dt.Type)
	if err != nil {
		log.WithField("err", clip(fmt.Sprint(err), maxReason)).
			Warn("a decider cannot tell how a run is replayed")
		if sent := s.sendError(work, a, dt.Token, schemas.CauseDeciderError, err, until); sent != nil {
			log.WithField("err", sent).Warn("whoever asked is not told")
		}
		return
	}
	body, err := encode(a, &schemas.DecisionReply{
		Token: dt.Token, Decisions: []schemas.Decision{}, Identity: s.opts.Identity, Replay: answer,
	})
	if err == nil {
		err = s.send(work, a.msg, body, until)
	}
	if err != nil {
		log.WithField("err", err).Warn("how a run is replayed could not be told")
	}
}

// replay calls the decider. A panic is an error, and its errors are [sound].
func replay(ctx context.Context, d Decider, t *Task) (answer *schemas.ReplayAnswer, err error) {
	r, ok := d.(Replayer)
	if !ok {
		return plainReplay(t), nil
	}
	defer caught(&err)
	if answer, err = r.Replay(ctx, t, *t.task.Replay); err == nil && answer == nil {
		err = errors.New("the decider gave no answer about a replay")
	}
	return answer, safeError(err)
}

// plainReplay is the answer for deciders that keep no replay points.
func plainReplay(t *Task) *schemas.ReplayAnswer {
	if t.task.Replay.From == schemas.ReplayFromStart {
		return &schemas.ReplayAnswer{Plan: &schemas.ReplayPlan{From: schemas.ReplayFromStart}}
	}
	return &schemas.ReplayAnswer{
		Refused: fmt.Sprintf(
			"the decider of type %q keeps no replay points: a run of it can be replayed from start only",
			t.task.Type),
		Hint: "say --from start: the new run begins with the same input",
	}
}
