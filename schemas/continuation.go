package schemas

import "time"

// StartMode says what began a run.
type StartMode string

// The start modes. Append-only.
const (
	ModeManual    StartMode = "Manual"    // somebody started it, or a program did
	ModeSchedule  StartMode = "Schedule"  // a schedule started it
	ModeChild     StartMode = "Child"     // a workflow started it
	ModeReplay    StartMode = "Replay"    // it repeats a run that has ended
	ModeAutoStart StartMode = "AutoStart" // it is kept running, and nothing ran
	// ModeContinuation is that of the runs which continue one of AutoStart. The runs which continue
	// any other have its mode.
	ModeContinuation StartMode = "AutoStart (Continuation)"
)

// StartModes are all of them.
func StartModes() []StartMode {
	return []StartMode{
		ModeManual, ModeSchedule, ModeChild, ModeReplay, ModeAutoStart, ModeContinuation,
	}
}

// ValidateRequested refuses what a start from outside cannot say of itself: brokers give the other
// modes. Empty is Manual.
func (m StartMode) ValidateRequested(field string) error {
	switch m {
	case "", ModeManual, ModeSchedule, ModeAutoStart:
		return nil
	case ModeChild, ModeReplay, ModeContinuation:
		return Errorf(CodeInvalid, "%s: %q is given by brokers, to no start from outside",
			field, string(m)).
			InField(field).WithHint("say Manual, Schedule or AutoStart, or leave it out")
	}
	return Errorf(CodeInvalid, "%s: %q is no start mode", field, string(m)).InField(field).
		WithHint("say Manual, Schedule or AutoStart, or leave it out")
}

// Continued is the mode of a run that continues one of this mode.
func (m StartMode) Continued() StartMode {
	if m == ModeAutoStart {
		return ModeContinuation
	}
	return m
}

// Mode returns what began the run, also of a run from before there were start modes.
func (w *WorkflowStarted) Mode() StartMode {
	switch {
	case w.StartMode != "":
		return w.StartMode
	case w.Replays != nil:
		return ModeReplay
	case w.ParentWorkflowExecution != nil:
		return ModeChild
	}
	return ModeManual
}

// ContinuationPolicy says when a run is asked to continue as new, so that its history stays short.
// It is asked only at a moment when nothing of it is open, and only if a signal or a timer has been
// handled since it began.
type ContinuationPolicy struct {
	// After is how old the run gets before it is asked; 0 for no such limit, or else at least a
	// second.
	After Duration `json:"after,omitempty"`
	// Events is how many events it gets before it is asked; 0 for no such limit, or else at least
	// 10.
	Events int64 `json:"events,omitempty"`
}

// The least values of a continuation policy.
const (
	MinContinuationAfter  = Duration(time.Second)
	MinContinuationEvents = 10
)

// Validate refuses a policy that would ask without end. The error names the field.
func (p *ContinuationPolicy) Validate(field string) error {
	switch {
	case p == nil:
		return nil
	case p.After != 0 && p.After < MinContinuationAfter:
		return Errorf(CodeInvalid, "%s.after: %s is too short", field, p.After).
			InField(field+".after").WithHint("say at least %s, or 0 for no limit of age",
			MinContinuationAfter)
	case p.Events != 0 && p.Events < MinContinuationEvents:
		return Errorf(CodeInvalid, "%s.events: %d is too few", field, p.Events).
			InField(field+".events").WithHint("say at least %d, or 0 for no limit of events",
			MinContinuationEvents)
	}
	return nil
}

// Why a run is asked to continue as new.
const (
	ContinueAge     = "age"     // it is as old as its policy says
	ContinueEvents  = "events"  // it has as many events as its policy says
	ContinueRecycle = "recycle" // its node is about to be recycled
	ContinueHistory = "history" // it nears the limit of events; only in a [DecisionTask]
)

// ContinuationSuggested asks the decider to continue as new.
type ContinuationSuggested struct {
	// Reasons are age, events and recycle: those that hold.
	Reasons []string `json:"reasons"`
}

// ContinuationHeld keeps the run from being asked to continue as new, as while somebody debugs it.
type ContinuationHeld struct {
	Reason    string `json:"reason,omitempty"`
	RequestID string `json:"requestId,omitempty"`
	Identity  string `json:"identity,omitempty"`
}

// ContinuationReleased undoes a hold.
type ContinuationReleased struct {
	Reason    string `json:"reason,omitempty"`
	RequestID string `json:"requestId,omitempty"`
	Identity  string `json:"identity,omitempty"`
}
