package execution

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/droverhq/drover/schemas"
)

const reasonCancel = "the decider has asked for its end"

// externalSignalID is what a target remembers of a signal that another workflow sent.
func externalSignalID(run string, event int64) string {
	return run + "." + strconv.FormatInt(event, 10)
}

// ReceivedFromWorkflows returns what a run that begins anew under the same id must know: the
// signals and cancel requests of other workflows, which their owners may still repeat (P-6). Those
// of people are not among them: who sends one again to a new run means it. Of what the runs before
// it in the chain have received only the looks can tell.
func (s *State) ReceivedFromWorkflows() []string {
	var ids []string
	for _, id := range s.SignalIDs {
		if looksSent(id) && !slices.Contains(s.Lookalikes, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// looksSent tells whether an id has the form of [externalSignalID].
func looksSent(id string) bool {
	dot := strings.LastIndexByte(id, '.')
	_, err := strconv.ParseUint(id[dot+1:], 10, 63)
	return dot > 0 && err == nil
}

// OpenChildren returns the children that have not closed, in the order they were asked for.
func (s *State) OpenChildren() []*ChildRun {
	return slices.SortedFunc(maps.Values(s.Children),
		func(a, b *ChildRun) int { return cmp.Compare(a.ScheduledID, b.ScheduledID) })
}

// OpenExternals returns the unanswered signals and cancel requests to other workflows, in their
// order.
func (s *State) OpenExternals() []*ExternalAction {
	return slices.SortedFunc(maps.Values(s.Externals),
		func(a, b *ExternalAction) int { return cmp.Compare(a.ScheduledID, b.ScheduledID) })
}

// wakes tells whether an event is a reason to ask the decider: by its type, or since what it answers
// says so. The event is not applied yet.
func (s *State) wakes(e schemas.Event) bool {
	switch a := e.Attributes.(type) {
	case *schemas.ChildStarted:
		c := s.Children[a.ScheduledEventID]
		return c != nil && c.Scheduled.Tell
	case *schemas.ExternalSignaled:
		x := s.Externals[a.ScheduledEventID]
		return x != nil && x.Signal != nil && x.Signal.Tell
	case *schemas.ExternalCancelRequested:
		x := s.Externals[a.ScheduledEventID]
		return x != nil && x.Cancel != nil && x.Cancel.Tell
	}
	return e.Type().Wakes()
}

func (s *State) applyExchange(e schemas.Event) bool {
	switch a := e.Attributes.(type) {
	case *schemas.ChildScheduled:
		if s.Children == nil {
			s.Children = make(map[int64]*ChildRun)
		}
		s.Children[e.ID] = &ChildRun{ScheduledID: e.ID, Scheduled: a, At: e.Time}
	case *schemas.ChildStarted:
		if c := s.Children[a.ScheduledEventID]; c != nil {
			c.Started = e.ID
		}
	case *schemas.ChildStartFailed:
		delete(s.Children, a.ScheduledEventID)
	case *schemas.ChildSuccess:
		delete(s.Children, a.ScheduledEventID)
	case *schemas.ChildFailed:
		delete(s.Children, a.ScheduledEventID)
	case *schemas.ChildTimedOut:
		delete(s.Children, a.ScheduledEventID)
	case *schemas.ChildCanceled:
		delete(s.Children, a.ScheduledEventID)
	case *schemas.ChildTerminated:
		delete(s.Children, a.ScheduledEventID)
	case *schemas.SignalExternalScheduled:
		s.externalAction(&ExternalAction{ScheduledID: e.ID, Signal: a})
	case *schemas.CancelExternalScheduled:
		s.externalAction(&ExternalAction{ScheduledID: e.ID, Cancel: a})
	case *schemas.ExternalSignaled:
		delete(s.Externals, a.ScheduledEventID)
	case *schemas.SignalExternalFailed:
		delete(s.Externals, a.ScheduledEventID)
	case *schemas.ExternalCancelRequested:
		delete(s.Externals, a.ScheduledEventID)
	case *schemas.CancelExternalFailed:
		delete(s.Externals, a.ScheduledEventID)
	default:
		return false
	}
	return true
}

func (s *State) externalAction(x *ExternalAction) {
	if s.Externals == nil {
		s.Externals = make(map[int64]*ExternalAction)
	}
	s.Externals[x.ScheduledID] = x
}

// child notes what became of a child. Reports may come twice, and a close before its start.
func (st *step) child(r *schemas.ChildReport) {
	c := st.Children[r.ScheduledEventID]
	if r.ParentRun != st.Run || c == nil {
		return // of a run before this one, or closed already
	}
	o := c.Scheduled
	if r.Cause != "" {
		if c.Started == 0 {
			st.emit(&schemas.ChildStartFailed{
				WorkflowID: o.WorkflowID, WorkflowType: o.WorkflowType, Cause: r.Cause,
				ScheduledEventID: c.ScheduledID, Control: o.Control,
				DeciderCompletedEventID: o.DeciderCompletedEventID,
			})
			st.wake()
		}
		return
	}
	news := false
	if c.Started == 0 {
		st.emit(&schemas.ChildStarted{
			WorkflowExecution: schemas.Execution{WorkflowID: o.WorkflowID, Run: o.Run},
			WorkflowType:      o.WorkflowType, ScheduledEventID: c.ScheduledID,
		})
		news = o.Tell
	}
	if event := childClose(r, c); event != nil {
		st.emit(event)
		news = true
	}
	if news {
		st.wake()
	}
}

// childClose is the event for the end of a child, nil for a report of its start.
func childClose(r *schemas.ChildReport, c *ChildRun) schemas.Attributes {
	x := schemas.Execution{WorkflowID: c.Scheduled.WorkflowID, Run: r.Child.Run}
	typ, scheduled, started := c.Scheduled.WorkflowType, c.ScheduledID, c.Started
	switch r.Status {
	case schemas.StatusCompleted:
		return &schemas.ChildSuccess{
			WorkflowExecution: x, WorkflowType: typ, ScheduledEventID: scheduled,
			StartedEventID: started, Result: r.Result,
		}
	case schemas.StatusFailed:
		return &schemas.ChildFailed{
			WorkflowExecution: x, WorkflowType: typ, ScheduledEventID: scheduled,
			StartedEventID: started, Reason: r.Reason, Details: r.Details,
		}
	case schemas.StatusTimedOut:
		return &schemas.ChildTimedOut{
			WorkflowExecution: x, WorkflowType: typ, ScheduledEventID: scheduled,
			StartedEventID: started, TimeoutType: schemas.TimeoutStartToClose,
		}
	case schemas.StatusCanceled:
		return &schemas.ChildCanceled{
			WorkflowExecution: x, WorkflowType: typ, ScheduledEventID: scheduled,
			StartedEventID: started, Details: r.Details,
		}
	case schemas.StatusTerminated:
		return &schemas.ChildTerminated{
			WorkflowExecution: x, WorkflowType: typ, ScheduledEventID: scheduled,
			StartedEventID: started,
		}
	}
	return nil
}

// external notes the answer to a signal or cancel request that this run has sent.
func (st *step) external(r *schemas.ExternalAnswer) {
	x := st.Externals[r.ScheduledEventID]
	if r.SourceRun != st.Run || x == nil {
		return
	}
	if s := x.Signal; s != nil {
		if r.Cause == "" {
			st.emit(&schemas.ExternalSignaled{
				WorkflowExecution: r.Target, ScheduledEventID: x.ScheduledID,
			})
			if s.Tell {
				st.wake()
			}
			return
		}
		st.emit(&schemas.SignalExternalFailed{
			WorkflowID: s.WorkflowID, Run: s.Run, Cause: r.Cause, ScheduledEventID: x.ScheduledID,
			Control: s.Control, DeciderCompletedEventID: s.DeciderCompletedEventID,
		})
		st.wake()
		return
	}
	if r.Cause == "" {
		st.emit(&schemas.ExternalCancelRequested{
			WorkflowExecution: r.Target, ScheduledEventID: x.ScheduledID,
		})
		if x.Cancel.Tell {
			st.wake()
		}
		return
	}
	st.emit(&schemas.CancelExternalFailed{
		WorkflowID: x.Cancel.WorkflowID, Run: x.Cancel.Run, Cause: r.Cause,
		ScheduledEventID: x.ScheduledID, Control: x.Cancel.Control,
		DeciderCompletedEventID: x.Cancel.DeciderCompletedEventID,
	})
	st.wake()
}

// answer tells the sender of a signal what became of it.
func (st *step) answer(x *schemas.ExternalSignal, cause schemas.Cause) {
	st.do(Answer{To: x.Source, Answer: schemas.ExternalAnswer{
		SourceRun: x.Source.Run, ScheduledEventID: x.ScheduledEventID, Target: st.target(x.Run),
		Cause: cause,
	}})
}

// answerRequest is answer for a cancel request; a child policy wants none.
func (st *step) answerRequest(o *schemas.RequestOrigin, cause schemas.Cause) {
	if !isErrand(o) {
		return
	}
	st.do(Answer{To: *o.Execution, Answer: schemas.ExternalAnswer{
		SourceRun: o.Execution.Run, ScheduledEventID: o.ScheduledEventID,
		Target: st.target(o.FirstRun), Cause: cause,
	}})
}

func (st *step) target(run string) schemas.Execution {
	return schemas.Execution{WorkflowID: st.WorkflowID, Run: cmp.Or(run, st.Run)}
}
