package execution

import (
	"cmp"

	"github.com/droverhq/drover/schemas"
)

// end closes the run: its last event, the workers told, its children treated as the policy says,
// its parent informed.
func (st *step) end(event schemas.Attributes) {
	if len(st.Activities) > 0 {
		for _, a := range st.OpenActivities() {
			st.tellWorker(a, "the workflow is closed", true)
		}
	}
	st.letGo(event)
	st.emit(event)
	for _, e := range st.endChildren() {
		st.do(e)
	}
	st.do(Closed{})
}

// tellWorker is for attempts as they stand before the event that ends them: later they have no
// worker any more.
func (st *step) tellWorker(a *Activity, reason string, gone bool) {
	if a.Started != 0 && a.Worker != "" {
		st.do(CancelRunning{
			ScheduledID: a.ScheduledID, Worker: a.Worker,
			Token: Token(st.Run, a.ScheduledID, a.Attempt), Reason: reason, Gone: gone,
		})
	}
}

// childPolicy is what becomes of the children of a closed run. It is applied to what was ended by
// force, as SWF does: a decider that closes its run has decided about the children too.
func (s *State) childPolicy() schemas.ChildPolicy {
	if s.Close == nil {
		return schemas.ChildAbandon
	}
	switch a := s.Close.Attributes.(type) {
	case *schemas.WorkflowTerminated:
		return cmp.Or(a.ChildPolicy, schemas.ChildAbandon)
	case *schemas.WorkflowTimedOut:
		return cmp.Or(a.ChildPolicy, schemas.ChildAbandon)
	}
	return schemas.ChildAbandon
}

// ChildrenTreated is what was done about the children of a run that has closed; empty for one that
// is open.
func (s *State) ChildrenTreated() schemas.ChildPolicy {
	if s.Closed() {
		return s.childPolicy()
	}
	return ""
}

func (s *State) endChildren() []Effect {
	policy := s.childPolicy()
	if policy == schemas.ChildAbandon {
		return nil
	}
	var effects []Effect
	for _, c := range s.OpenChildren() {
		effects = append(effects, c.end(policy))
	}
	return effects
}

func (c *ChildRun) end(policy schemas.ChildPolicy) Effect {
	return EndChild{
		ScheduledID: c.ScheduledID,
		Child:       schemas.Execution{WorkflowID: c.Scheduled.WorkflowID, Run: c.Scheduled.Run},
		Policy:      policy,
	}
}

// OpenEffects returns what an owner has to do again if it does not know whether it was done: tasks
// of activities that wait, children and requests without an answer, and what follows a close.
func (s *State) OpenEffects(now schemas.Timestamp) []Effect {
	var open []Effect
	for _, a := range s.OpenActivities() {
		switch {
		case a.Started == 0 && a.NotBefore <= now:
			open = append(open, Dispatch{ScheduledID: a.ScheduledID})
		case a.Started != 0 && a.Offered:
			open = append(open, Dispatch{ScheduledID: a.ScheduledID, Store: true})
		}
		if a.Started != 0 && a.CancelRequested != 0 {
			open = append(open, CancelRunning{
				ScheduledID: a.CancelRequested, Worker: a.Worker,
				Token: Token(s.Run, a.ScheduledID, a.Attempt), Reason: reasonCancel,
			})
		}
	}
	for _, c := range s.OpenChildren() {
		if c.Started == 0 {
			open = append(open, StartChild{ScheduledID: c.ScheduledID})
		}
	}
	if !s.Closed() {
		open = append(open, s.openLocks()...)
		open = append(open, s.openRequests()...)
	}
	for _, x := range s.OpenExternals() {
		open = append(open, Request{ScheduledID: x.ScheduledID})
	}
	if s.Closed() {
		open = append(open, s.endChildren()...)
		if s.Start.ParentWorkflowExecution != nil {
			open = append(open, Closed{})
		}
	}
	return open
}

// SetBy is the event that an effect of [State.OpenEffects] stems from; 0 if it is the close.
func SetBy(e Effect) int64 {
	switch e := e.(type) {
	case Dispatch:
		return e.ScheduledID
	case CancelRunning:
		return e.ScheduledID
	case StartChild:
		return e.ScheduledID
	case EnterLock:
		return e.By
	case AskState:
		return e.ScheduledID
	case Request:
		return e.ScheduledID
	}
	return 0
}

// closed answers what comes after the end: workers that ask are told to stop, senders that nobody
// is there, outcomes and signals are parked.
func (st *step) closed(m Message) {
	switch m := m.(type) {
	case Report:
		switch m.Report.Kind {
		case schemas.ReportBegin:
			st.deny(m.Report, "the workflow is closed")
			return
		case schemas.ReportLost:
			st.do(Permit{
				To:         m.Report.ReplyTo,
				Permission: schemas.Permission{Nonce: m.Report.Nonce, Done: schemas.LostGone},
			})
			return
		}
		if m.Report.Kind != schemas.ReportStarted && m.Report.Kind != schemas.ReportReturned {
			st.dead(DeadClosedActivity, "the workflow closed (%s) before this outcome came", st.Status)
		}
	case Signal:
		st.signalClosed(m)
	case Cancel:
		cause := schemas.CauseUnknownExecution
		if st.knowsErrand(m.Request.Origin) {
			cause = ""
		}
		st.answerRequest(m.Request.Origin, cause)
	case Child:
		st.childOfClosed(m.Report)
	case Reply:
		st.dead(DeadLateDecision, "the workflow closed (%s) before this decision came", st.Status)
	}
}

func (st *step) signalClosed(m Signal) {
	switch known := st.Knows(m); {
	case m.External != nil && known:
		st.answer(m.External, "")
	case m.External != nil:
		st.answer(m.External, schemas.CauseUnknownExecution)
	case !known:
		st.dead(DeadClosedWorkflow,
			"the workflow is closed (%s); start it again, or signal another", st.Status)
	}
}

// childOfClosed: a child that began after its parent was ended by force has missed the policy.
func (st *step) childOfClosed(r *schemas.ChildReport) {
	policy := st.childPolicy()
	c := st.Children[r.ScheduledEventID]
	if r.Status == schemas.StatusOpen && r.ParentRun == st.Run && c != nil &&
		policy != schemas.ChildAbandon {
		st.do(c.end(policy))
	}
}

// Continuation is the start of the run that follows one which continued as new, nil for any other.
// It knows what the chain has received (P-6) and who waits for its end.
func (s *State) Continuation() *schemas.StartRequest {
	if s.Close == nil {
		return nil
	}
	a, ok := s.Close.Attributes.(*schemas.WorkflowContinuedAsNew)
	if !ok {
		return nil
	}
	return &schemas.StartRequest{
		V: schemas.Version, WorkflowID: s.WorkflowID, Run: a.NewExecutionRun, Type: a.WorkflowType,
		TypeVersion: a.WorkflowTypeVersion, Input: a.Input,
		ExecutionStartToCloseTimeout: a.ExecutionStartToCloseTimeout,
		TaskStartToCloseTimeout:      a.TaskStartToCloseTimeout,
		TaskScheduleToStartTimeout:   s.Start.TaskScheduleToStartTimeout,
		TaskPriority:                 a.TaskPriority, ActivityDefaults: a.ActivityDefaults,
		ChildPolicy: a.ChildPolicy, TagList: a.TagList, Attributes: s.Attributes,
		Identity: s.Start.Identity, StartMode: s.Start.Mode().Continued(),
		Continuation: s.Start.Continuation,
		Origin: &schemas.StartOrigin{
			Parent:                 s.Start.ParentWorkflowExecution,
			ParentScheduledEventID: s.Start.ParentScheduledEventID, Depth: s.Start.Depth,
			ContinuedRun: s.Run, FirstRun: s.FirstRun(), SignalIDs: s.SignalIDs,
			RequestIDs: s.RequestIDs, Locks: s.heldLocks(), UnreadSignals: a.UnreadSignals,
			Retention: s.Retention, ParentRetention: s.Start.ParentRetention,
			Held: s.Continuing.Held,
		},
	}
}

// Unread returns the signals among the events of a run which continued as new that the next one
// begins with, in their order.
func (s *State) Unread(events []schemas.Event) []schemas.Event {
	var unread []schemas.Event
	for _, e := range events {
		if e.ID > s.Decision.Previous && e.Type() == schemas.EventSignal {
			unread = append(unread, e)
		}
	}
	return unread
}

// Copying tells whether the run has not yet all of the signals that the run before it had not read.
// Nothing else may happen to it.
func (s *State) Copying() bool {
	return s.Start != nil && !s.Closed() && s.Copied < s.Start.UnreadSignals
}

// copied takes over a signal from the run before.
func (st *step) copied(m Copied) {
	if !st.Copying() {
		return
	}
	of := m.Signal
	st.emit(&schemas.Signal{
		SignalName: of.SignalName, Input: of.Input,
		ExternalWorkflowExecution: of.ExternalWorkflowExecution,
		ExternalScheduledEventID:  of.ExternalScheduledEventID, RequestID: of.RequestID,
		OriginRun: st.Start.ContinuedExecutionRun, OriginEventID: m.EventID,
	})
	st.wake()
}

// AnswerAgain returns the answer to a message that the history has consumed already: whoever sent
// it may not have it.
func (s *State) AnswerAgain(m Message) []Effect {
	st := step{State: s}
	switch m := m.(type) {
	case Signal:
		if m.External != nil {
			cause := schemas.CauseUnknownExecution
			if s.Knows(m) {
				cause = ""
			}
			st.answer(m.External, cause)
		}
	case Cancel:
		cause := schemas.CauseUnknownExecution
		if s.knowsErrand(m.Request.Origin) || s.CancelRequested && s.Means(m.Request) {
			cause = ""
		}
		st.answerRequest(m.Request.Origin, cause)
	}
	return st.effects
}
