package execution

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/droverhq/drover/schemas"
)

// Step lets a message happen at the instant now: it returns the events that follow, already
// applied, and the effects to perform once they are committed. The times of the events are now, or
// later if the history is ahead of it.
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
		st.start(m)
	case Signal:
		st.signal(m)
	case Copied:
		st.copied(m)
	case Cancel:
		st.cancel(m.Request)
	case Terminate:
		st.terminate(m.Request)
	case Child:
		st.child(m.Report)
	case External:
		st.external(m.Answer)
	case Report:
		st.report(m)
	case Gone:
		st.gone(m)
	case AlarmFired:
		st.alarmFired(m.Uncommitted)
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
	case Granted:
		st.granted(m)
	case Denied:
		st.denied(m)
	case Lost:
		st.lockLost(m)
	case Answered:
		st.answered(m)
	case BreakLock:
		st.breakLock(m.Request)
	case Hold:
		st.hold(m.Request)
	case Release:
		st.release(m.Request)
	case Recycle:
		st.suggest(false, true)
	}
	if len(st.events) > 0 {
		st.suggest(false, false)
	}
	if st.LastID >= c.hardLimit() && !st.Closed() && !st.Copying() {
		st.end(&schemas.WorkflowTerminated{
			Reason: fmt.Sprintf(
				"the history has %d events; at most %d are allowed: continue as new before that",
				st.LastID, c.MaxEvents),
			Cause: schemas.CauseEventLimitExceeded, ChildPolicy: st.Start.ChildPolicy,
		})
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
	said    int  // bytes of details that the events have
	beaten  bool // those of a heartbeat are among them
	whole   bool // the reply is all or nothing
}

// room returns details, or nil if the record has none for them beside those of whatever else ends
// in this step. Those of one heartbeat always fit alone, since they have come in a message, and
// beside the words of the failure that has ended its attempt if a record takes both: it is twice
// what is for details.
func (st *step) room(details schemas.Payload) schemas.Payload {
	most := st.c.Details
	if !st.beaten {
		most *= 2
	}
	if st.said > 0 && st.said+len(details) > most {
		return nil
	}
	st.said += len(details)
	st.beaten = st.beaten || len(details) > 0
	return details
}

// emit appends an event and applies it, so that everything after it decides on the new state.
func (st *step) emit(a schemas.Attributes) int64 {
	e := schemas.Event{ID: st.LastID + 1, Time: max(st.now, st.LastTime), Attributes: a}
	if st.events == nil {
		st.events = make([]schemas.Event, 0, 4)
	}
	st.events = append(st.events, e)
	if st.c.Happens != nil {
		st.c.Happens(st.State, e)
	}
	st.Apply(e)
	return e.ID
}

func (st *step) do(e Effect) { st.effects = append(st.effects, e) }

func (st *step) dead(reason, format string, args ...any) {
	st.do(Dead{Reason: reason, Details: fmt.Sprintf(format, args...)})
}

// wake asks for a decider unless one is pending already. At most one decider runs and at most one
// is pending after it.
func (st *step) wake() {
	if st.Closed() || st.Paused != nil || st.Decision.Scheduled != 0 {
		return
	}
	st.emit(st.NextDecider(st.c))
}

func (st *step) start(m Start) {
	r := m.Request
	if st.Start != nil {
		st.dead(DeadInvalid, "run %s has begun already", st.Run)
		return
	}
	d := st.c.Types.workflowDefaults(r.Type, r.TypeVersion)
	e := &schemas.WorkflowStarted{
		WorkflowID: r.WorkflowID, Run: r.Run, WorkflowType: r.Type,
		WorkflowTypeVersion: r.TypeVersion, Input: r.Input,
		ExecutionStartToCloseTimeout: r.ExecutionStartToCloseTimeout,
		TaskStartToCloseTimeout:      r.TaskStartToCloseTimeout,
		TaskScheduleToStartTimeout:   r.TaskScheduleToStartTimeout, TaskPriority: r.TaskPriority,
		ActivityDefaults: r.ActivityDefaults, ChildPolicy: r.ChildPolicy, TagList: r.TagList,
		Attributes: r.Attributes, SignalIDs: m.Received, Replays: r.Replays, RequestID: r.RequestID,
		Identity: r.Identity, StartMode: startMode(r), Continuation: r.Continuation,
	}
	def(&e.ExecutionStartToCloseTimeout, d.ExecutionStartToCloseTimeout)
	def(&e.ExecutionStartToCloseTimeout, st.c.WorkflowTimeout)
	def(&e.TaskStartToCloseTimeout, d.TaskStartToCloseTimeout)
	def(&e.TaskScheduleToStartTimeout, d.TaskScheduleToStartTimeout)
	def(&e.TaskPriority, d.TaskPriority)
	def(&e.ActivityDefaults, d.ActivityDefaults)
	def(&e.ChildPolicy, d.ChildPolicy)
	def(&e.ChildPolicy, st.c.ChildPolicy)
	e.Retention, e.ParentRetention = m.Retention, m.ParentRetention
	if o := r.Origin; o != nil {
		e.ParentWorkflowExecution, e.ParentScheduledEventID, e.Depth = o.Parent, o.ParentScheduledEventID, o.Depth
		e.ContinuedExecutionRun, e.FirstExecutionRun = o.ContinuedRun, o.FirstRun
		if o.ContinuedRun != "" {
			e.SignalIDs, e.RequestIDs, e.Locks = o.SignalIDs, o.RequestIDs, o.Locks
			e.UnreadSignals = o.UnreadSignals
			e.Retention, e.Held = o.Retention, o.Held
		}
		e.ParentRetention = o.ParentRetention
	}
	st.emit(e)
	st.wake()
	if r.Signal != nil {
		st.signal(StartSignalOf(r))
	}
}

// startMode is what begins a run: the service knows it of a replay and of a child, and who starts
// says it of any other.
func startMode(r *schemas.StartRequest) schemas.StartMode {
	switch o := r.Origin; {
	case r.Replays != nil:
		return schemas.ModeReplay
	case o != nil && o.ContinuedRun == "" && o.Parent != nil:
		return schemas.ModeChild
	}
	return cmp.Or(r.StartMode, schemas.ModeManual)
}

// StartSignalOf is the signal of a signal-with-start.
func StartSignalOf(r *schemas.StartRequest) Signal {
	return Signal{
		Name: r.Signal.Name, Input: r.Signal.Input,
		RequestID: cmp.Or(r.Signal.RequestID, r.RequestID, r.Run),
	}
}

func (st *step) signal(m Signal) {
	if err := schemas.ValidateLength("request id", m.RequestID); err != nil {
		// a thousand of them stand in the first record of the next run
		st.dead(DeadInvalid, "%s", err)
		return
	}
	known := st.Knows(m)
	if m.Bad != "" && !known {
		st.dead(DeadInvalid, "%s", m.Bad)
		return
	}
	e := &schemas.Signal{SignalName: m.Name, Input: m.Input, RequestID: m.RequestID}
	if x := m.External; x != nil {
		if !known && !st.is(x.Run, x.Run) {
			st.answer(x, schemas.CauseUnknownExecution)
			return
		}
		e.ExternalWorkflowExecution, e.ExternalScheduledEventID = &x.Source, x.ScheduledEventID
		st.answer(x, "")
	}
	if known {
		return // a repeat: the history has it, or that of a run before this one in the chain
	}
	st.emit(e)
	st.wake()
}

// Knows tells whether a signal is in the history of the chain already. One without an id never is.
func (s *State) Knows(m Signal) bool {
	id := sentID(m)
	return id != "" && slices.Contains(s.SignalIDs, id)
}

// sentID is what a repeat of a signal is known by; empty if its sender gave nothing.
func sentID(m Signal) string {
	if x := m.External; x != nil {
		return externalSignalID(x.Source.Run, x.ScheduledEventID)
	}
	return m.RequestID
}
