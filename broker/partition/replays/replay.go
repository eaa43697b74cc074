package replays

import (
	"strings"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/schemas"
)

// replay is one that is being prepared.
type replay struct {
	q      *schemas.ReplayRequest
	force  bool
	latest string // run of the workflow id
	run    string // the new one
	old    *execution.State
	plan   *schemas.ReplayPlan
	input  schemas.Payload
	// goesOn: the decider has given the input, so the new run begins where the old one was.
	goesOn bool
	// done: an earlier try of the request has begun the run, or there is nothing to do.
	done bool
}

// from takes the words for places in any case, and says what is meant without one.
func (y *replay) from() string {
	switch from := strings.ToLower(y.q.From); from {
	case "":
		return schemas.ReplayFromEnd
	case schemas.ReplayFromStart, schemas.ReplayFromLast, schemas.ReplayFromEnd:
		return from
	}
	return y.q.From
}

// requestID is that of the start: a start with the request id of a replay is no repeat of it.
func (y *replay) requestID() string { return "replay " + y.q.RequestID }

func (y *replay) answer(run string, started bool) *schemas.ReplayResponse {
	a := &schemas.ReplayResponse{
		V: schemas.Version, WorkflowID: y.q.WorkflowID, Run: run, Started: started, Plan: y.plan,
	}
	if y.old != nil {
		a.Replays = y.old.Run
	}
	return a
}

func (y *replay) refuse(e *schemas.Error) *schemas.ReplayResponse {
	a := y.answer("", false)
	a.Error = e
	return a
}

// start is that of the new run: of the same type, with the same options.
func (y *replay) start() *schemas.StartRequest {
	s := y.old.Start
	attributes := s.Attributes
	if y.goesOn {
		attributes = y.old.Attributes
	}
	return &schemas.StartRequest{
		V: schemas.Version, WorkflowID: y.q.WorkflowID, Run: y.run, RequestID: y.requestID(),
		Type: s.WorkflowType, TypeVersion: s.WorkflowTypeVersion, Input: y.input,
		ExecutionStartToCloseTimeout: s.ExecutionStartToCloseTimeout,
		TaskStartToCloseTimeout:      s.TaskStartToCloseTimeout,
		TaskScheduleToStartTimeout:   s.TaskScheduleToStartTimeout, TaskPriority: s.TaskPriority,
		ActivityDefaults: s.ActivityDefaults, ChildPolicy: s.ChildPolicy, TagList: s.TagList,
		Attributes: attributes, Identity: y.q.Identity, Continuation: s.Continuation,
		Replays: &schemas.ReplayOf{
			Run: y.old.Run, From: y.from(), Force: y.force, Reason: y.q.Reason,
			Identity: y.q.Identity,
		},
	}
}
