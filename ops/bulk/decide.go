package bulk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// heartbeat is how long a worker may be silent: a node that was killed is noticed so soon.
const heartbeat = schemas.Duration(5 * time.Second)

// begin is the input of a job: what is to be done, and how far the runs before of its chain have
// come.
type begin struct {
	ops.BulkRequest
	State *ops.BulkState `json:"state,omitempty"`
}

// Decide is the decider of drover.bulk. One activity follows the other.
func Decide(ctx context.Context, t *decider.Task) ([]schemas.Decision, error) {
	var s ops.BulkState
	if c := t.Context(); len(c) > 0 {
		if err := json.Unmarshal(c, &s); err != nil {
			return nil, fmt.Errorf("the state of the job: %w", err)
		}
	}
	var n news
	for _, e := range t.Events() {
		if s, ok := e.Attributes.(*schemas.ActivitySuccess); ok {
			var err error
			if s.Result, err = t.Payload(ctx, s.Result); err != nil {
				return nil, err
			}
		}
		if err := fold(&s, e, &n); err != nil {
			return nil, err
		}
	}
	d, err := decide(&s, n, t.SuggestContinueAsNew())
	if err != nil {
		return nil, err
	}
	state, err := json.Marshal(&s)
	if err != nil {
		return nil, err
	}
	t.SetContext(state)
	switch c := d.(type) {
	case nil:
		return nil, nil
	case *schemas.ContinueAsNew:
		if c.Input, err = again(ctx, t, state); err != nil {
			return nil, err
		}
	}
	return []schemas.Decision{schemas.Decide(d)}, nil
}

// again is the input of the next run of a job: that of this one, and how far it has come.
func again(ctx context.Context, t *decider.Task, state schemas.Payload) (schemas.Payload, error) {
	for e, err := range t.History(ctx) {
		if err != nil {
			return nil, err
		}
		in := map[string]json.RawMessage{}
		if a, ok := e.Attributes.(*schemas.WorkflowStarted); ok {
			if err := json.Unmarshal(a.Input, &in); err != nil {
				return nil, fmt.Errorf("the input of the job: %w", err)
			}
		}
		in["state"] = json.RawMessage(state)
		return json.Marshal(in)
	}
	return nil, errors.New("the history of the job is empty")
}

const freezing = "freeze"

// news are what has happened since the last decision.
type news struct {
	failed string // why the activity did not do its work, if it did not
	cancel bool   // the job is to end
}

// fold takes an event.
func fold(s *ops.BulkState, e schemas.Event, n *news) error {
	ended := func(why string) {
		n.failed, s.Open = why, ""
	}
	switch a := e.Attributes.(type) {
	case *schemas.WorkflowStarted:
		var in begin
		if err := json.Unmarshal(a.Input, &in); err != nil {
			return fmt.Errorf("the input of the job: %w", err)
		}
		if *s = (ops.BulkState{V: schemas.Version, Action: in.Action, Rate: in.Rate}); in.State != nil {
			*s = *in.State
		}
	case *schemas.ActivitySuccess:
		was := s.Open
		s.Open = ""
		if was == freezing {
			var f frozen
			if err := json.Unmarshal(a.Result, &f); err != nil {
				return fmt.Errorf("what the query has found: %w", err)
			}
			s.Runs, s.Left, s.Found = f.Runs, f.Runs, true
			return nil
		}
		var p outcome
		if err := json.Unmarshal(a.Result, &p); err != nil {
			return fmt.Errorf("the outcome of %s: %w", was, err)
		}
		take(s, p)
	case *schemas.ActivityCanceled:
		was := s.Open
		s.Open = ""
		if len(a.Details) > 0 && was != freezing {
			var p progress
			if err := json.Unmarshal(a.Details, &p); err != nil {
				return fmt.Errorf("how far %s has come: %w", was, err)
			}
			take(s, p.outcome)
		}
	case *schemas.ActivityFailed:
		ended(a.Reason)
	case *schemas.ActivityTimedOut:
		ended("the activity ran out of time")
	case *schemas.ActivityScheduledTimeout:
		ended("no node with the role ops took the activity")
	case *schemas.ActivityScheduleFailed:
		ended("the activity could not be scheduled: " + string(a.Cause))
	case *schemas.Signal:
		var rate int
		if a.SignalName == ops.SignalRate && json.Unmarshal(a.Input, &rate) == nil && rate > 0 {
			s.Rate = min(rate, ops.MaxBulkRate)
		}
	case *schemas.WorkflowCancelRequested:
		s.Canceling, n.cancel = true, true
	}
	return nil
}

// decide says what comes next; nil if the activity that is under way has to end before.
func decide(
	s *ops.BulkState, n news, long bool,
) (schemas.DecisionAttributes, error) {
	state := func() (schemas.Payload, error) {
		body, err := json.Marshal(s)
		return body, err
	}
	switch {
	case s.Open != "" && n.cancel:
		return &schemas.RequestCancelActivity{ActivityID: s.Open}, nil
	case s.Open != "":
		return nil, nil
	case n.failed != "":
		details, err := state()
		return &schemas.FailWorkflow{Reason: clip(n.failed, longestMessage), Details: details}, err
	case s.Canceling:
		details, err := state()
		return &schemas.CancelWorkflow{Details: details}, err
	case !s.Found:
		s.Open = freezing
		return schedule(s.Open, ops.ActivityBulkFreeze, nil), nil
	case s.Left == 0:
		result, err := state()
		return &schemas.CompleteWorkflow{Result: result}, err
	case long:
		return &schemas.ContinueAsNew{Part: true}, nil
	}
	some := next(s)
	s.Open = "act-" + strconv.Itoa(some.From)
	in, err := json.Marshal(some)
	return schedule(s.Open, ops.ActivityBulkAct, in), err
}

// schedule schedules an activity that is repeated until it succeeds, but for what is wrong with the job itself.
func schedule(id, typ string, in schemas.Payload) *schemas.ScheduleActivity {
	return &schemas.ScheduleActivity{
		ActivityID: id, ActivityType: typ, List: ops.BulkList, Input: in,
		HeartbeatTimeout: heartbeat, ScheduleToStartTimeout: schemas.Unlimited,
		StartToCloseTimeout: schemas.Unlimited, ScheduleToCloseTimeout: schemas.Unlimited,
		MaximumInterruptions: -1,
		Retry:                &schemas.RetryPolicy{MaximumInterval: 2 * heartbeat},
	}
}
