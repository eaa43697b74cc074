package schemas

import "fmt"

// The places that are no steps, from which a run may be replayed.
const (
	ReplayFromStart = "start" // the beginning
	ReplayFromLast  = "last"  // the replay point that was passed last
	ReplayFromEnd   = "end"   // where the run stood
)

const (
	// MaxReplayReason is how many bytes the reason of a replay may have: it stands in the headers
	// of every record of the run.
	MaxReplayReason = 1024
	// MaxReplayAttempts is how many attempts an answer tells of.
	MaxReplayAttempts = 100
)

// ReplayOf says which run another run of the same workflow id repeats, from where, why and for
// whom.
type ReplayOf struct {
	Run string `json:"run"`
	// From is what was asked for: start, last, end, or a step.
	From string `json:"from"`
	// Force: idempotence, replay points and replayable: disabled were not minded.
	Force    bool   `json:"force,omitempty"`
	Reason   string `json:"reason,omitempty"`
	Identity string `json:"identity,omitempty"`
}

// ReplayRequest asks for a new run that repeats one which has ended. It comes by two subjects: only
// api.replayForce goes around replayable: disabled, idempotence and replay points.
type ReplayRequest struct {
	V          int    `json:"v,omitempty"`
	WorkflowID string `json:"workflowId"`
	// Run is the run that is repeated; empty means the latest.
	Run string `json:"run,omitempty"`
	// From is start, last, end, or the id, index or ref of a step. Empty means end.
	From string `json:"from,omitempty"`
	// DryRun asks what would run again, and begins nothing.
	DryRun bool `json:"dryRun,omitempty"`
	// LatestOnly refuses the replay if Run is not the latest run of the workflow.
	LatestOnly bool   `json:"latestOnly,omitempty"`
	RequestID  string `json:"requestId,omitempty"`
	Reason     string `json:"reason,omitempty"`
	Identity   string `json:"identity,omitempty"`
}

// Validate names the field that is wrong.
func (q *ReplayRequest) Validate() error {
	if err := ValidateID("workflowId", q.WorkflowID); err != nil {
		return Errorf(CodeInvalid, "%v", err).InField("workflowId")
	}
	for _, f := range []struct{ field, value string }{{"run", q.Run}, {"from", q.From}, {"requestId", q.RequestID}} {
		if f.value == "" {
			continue
		}
		if err := ValidateID(f.field, f.value); err != nil {
			return Errorf(CodeInvalid, "%v", err).InField(f.field)
		}
	}
	if len(q.Reason) > MaxReplayReason {
		return Errorf(CodeInvalid, "reason: %d bytes; want at most %d",
			len(q.Reason), MaxReplayReason).InField("reason").WithHint("say it shorter")
	}
	return nil
}

// ReplayResponse answers a replay. Run is the new run; it is the one that was to be repeated if
// there was nothing to do, and empty for a dry run.
type ReplayResponse struct {
	V          int    `json:"v,omitempty"`
	WorkflowID string `json:"workflowId"`
	Run        string `json:"run,omitempty"`
	// Replays is the run that is repeated.
	Replays string `json:"replays,omitempty"`
	// Started is false if the answer repeats that of an earlier request with the same id, or
	// nothing is to be done.
	Started bool `json:"started"`
	// Plan is what runs again.
	Plan  *ReplayPlan `json:"plan,omitempty"`
	Error *Error      `json:"error,omitempty"`
}

// ReplayPlan says what a replay runs again.
type ReplayPlan struct {
	// From is where the new run begins: start, end if nothing is left to run, or the ref of a step.
	From string `json:"from"`
	// Resumes: the step goes on with the inputs that it had, and its condition is not judged again.
	Resumes bool `json:"resumes,omitempty"`
	// Again are the steps that have run since that place, in the order of the text.
	Again []ReplayStep `json:"again,omitempty"`
}

// Risky are the steps of the plan that may not simply run twice.
func (p *ReplayPlan) Risky() []ReplayStep {
	var risky []ReplayStep
	for _, s := range p.Again {
		if s.NotIdempotent {
			risky = append(risky, s)
		}
	}
	return risky
}

// ReplayStep is a step of a plan.
type ReplayStep struct {
	// Ref is where the step stands: its index, and those in the blocks around.
	Ref string `json:"ref"`
	// Name is its id, if it has one.
	Name string `json:"name,omitempty"`
	Type string `json:"type"`
	// NotIdempotent: the step, or one of a run within it, may not simply run twice.
	NotIdempotent bool `json:"notIdempotent,omitempty"`
}

func (s ReplayStep) String() string {
	if s.Name != "" {
		return fmt.Sprintf("%s (%s, %s)", s.Ref, s.Name, s.Type)
	}
	return fmt.Sprintf("%s (%s)", s.Ref, s.Type)
}

// ReplayQuestion is in a decision task that asks for no decision: how would a run that has ended be
// replayed?
type ReplayQuestion struct {
	// From is start, last, end, or what the operator calls a step.
	From string `json:"from"`
	// Force goes around idempotence, replay points and replayable: disabled.
	Force bool `json:"force,omitempty"`
}

// ReplayAnswer is a decider's answer to a ReplayQuestion.
type ReplayAnswer struct {
	// Input is that of the new run; without one it is that of the old run.
	Input Payload `json:"input,omitempty"`
	// Plan is what runs again.
	Plan *ReplayPlan `json:"plan,omitempty"`
	// Refused says why the run cannot be replayed, and Hint what to do about it.
	Refused string `json:"refused,omitempty"`
	Hint    string `json:"hint,omitempty"`
}

// ReplayAttempt is one of the runs that are, or repeat, one and the same.
type ReplayAttempt struct {
	Run string `json:"run"`
	// Replays is absent for the initial run.
	Replays   *ReplayOf `json:"replays,omitempty"`
	StartedAt Timestamp `json:"startedAt"`
	ClosedAt  Timestamp `json:"closedAt,omitempty"`
	Status    Status    `json:"status"`
}
