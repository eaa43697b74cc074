package execution

import (
	"fmt"
	"slices"

	"github.com/droverhq/drover/schemas"
)

// Step lets a message happen at the instant now: it returns the events that follow, already applied, and the effects to
// perform once they are committed. The times of the events are now, or later if the history is ahead of it.
func (s *State) Step(c *Config, m Message, now schemas.Timestamp) ([]schemas.Event, []Effect) {
	st := step{State: s, c: c, now: now}
	if s.Closed() {
		st.closed(m)
		return nil, st.effects
	}
	if _, isStart := m.(Start); s.Start == nil && !isStart {
		st.dead(DeadInvalid, "run %s has not begun", s.Run)
		return nil, st.effects
	}
	switch m := m.(type) {
	case Start:
		st.start(m.Request)
	case Signal:
		if m.RequestID != "" && slices.Contains(s.SignalIDs, m.RequestID) {
			break // a repeat: the history has it
		}
		st.emit(&schemas.Signal{SignalName: m.Name, Input: m.Input, RequestID: m.RequestID})
		st.wake()
	case Report:
		st.report(m.Report)
	case Ring:
		st.ring(m.Uncommitted)
	case Taken:
		st.taken(m.Identity)
	case Reply:
		st.reply(m)
	case Refuse:
		st.refuse(m)
	case Pause:
		st.pause(m.Request)
	case Resume:
		st.resume(m.Request)
	}
	return st.events, st.effects
}

// step is one call of Step: the state, and what came of it.
type step struct {
	*State
	c       *Config
	now     schemas.Timestamp
	events  []schemas.Event
	effects []Effect
}

// emit appends an event and applies it, so that everything after it decides on the new state.
func (st *step) emit(a schemas.Attributes) int64 {
	e := schemas.Event{ID: st.LastID + 1, Time: max(st.now, st.LastTime), Attributes: a}
	st.events = append(st.events, e)
	st.Apply(e)
	return e.ID
}

func (st *step) do(e Effect) { st.effects = append(st.effects, e) }

func (st *step) dead(reason, format string, args ...any) {
	st.do(Dead{Reason: reason, Details: fmt.Sprintf(format, args...)})
}

// wake asks for a decider unless one is pending already. At most one decider runs and at most one is pending behind it.
func (st *step) wake() {
	if st.Closed() || st.Paused != nil || st.Decision.Scheduled != 0 {
		return
	}
	st.emit(&schemas.DeciderScheduled{
		StartToCloseTimeout:    st.deciderTimeout(st.c),
		ScheduleToStartTimeout: st.Start.TaskScheduleToStartTimeout,
		TaskPriority:           st.Start.TaskPriority,
		Attempt:                st.Decision.Failures + 1,
	})
}

func (st *step) start(r *schemas.StartRequest) {
	if st.Start != nil {
		st.dead(DeadInvalid, "run %s has begun already", st.Run)
		return
	}
	timeout := r.ExecutionStartToCloseTimeout
	if timeout == 0 {
		timeout = st.c.WorkflowTimeout
	}
	st.emit(&schemas.WorkflowStarted{
		WorkflowID: r.WorkflowID, Run: r.Run, WorkflowType: r.Type, WorkflowTypeVersion: r.TypeVersion, Input: r.Input,
		ExecutionStartToCloseTimeout: timeout, TaskStartToCloseTimeout: r.TaskStartToCloseTimeout,
		TaskScheduleToStartTimeout: r.TaskScheduleToStartTimeout, TaskPriority: r.TaskPriority,
		ActivityDefaults: r.ActivityDefaults, ChildPolicy: r.ChildPolicy, TagList: r.TagList, Attributes: r.Attributes,
		RequestID: r.RequestID, Identity: r.Identity,
	})
	st.wake()
}

// closed answers what comes after the end: workers that ask are told to stop, outcomes and signals are parked.
func (st *step) closed(m Message) {
	switch m := m.(type) {
	case Report:
		if m.Report.Kind == schemas.ReportBegin {
			st.deny(m.Report, "the workflow is closed")
			return
		}
		if m.Report.Kind != schemas.ReportStarted {
			st.dead(DeadClosedActivity, "the workflow closed (%s) before this outcome came", st.Status)
		}
	case Signal:
		if m.RequestID != "" && slices.Contains(st.SignalIDs, m.RequestID) {
			return
		}
		st.dead(DeadClosedWorkflow, "the workflow is closed (%s); start it again, or signal another", st.Status)
	case Reply:
		st.dead(DeadLateDecision, "the workflow closed (%s) before this decision came", st.Status)
	}
}

func (st *step) pause(r *schemas.ExecutionRequest) {
	if st.Paused == nil {
		st.emit(&schemas.WorkflowPaused{Cause: schemas.CauseOperatorInitiated, Reason: r.Reason, RequestID: r.RequestID, Identity: r.Identity})
	}
}

func (st *step) resume(r *schemas.ExecutionRequest) {
	if st.Paused != nil {
		st.emit(&schemas.WorkflowResumed{Reason: r.Reason, RequestID: r.RequestID, Identity: r.Identity})
		st.wake()
	}
}
