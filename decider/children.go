package decider

import (
	"fmt"
	"slices"

	"github.com/droverhq/drover/schemas"
)

// ChildStatus says where a child of a run stands. The zero value means that it was never asked for.
// Values are append-only. It is no [schemas.Status], which a workflow has from its first event on:
// a child may be asked for and never begin.
type ChildStatus int

const (
	// ChildScheduled was asked for and has not begun yet.
	ChildScheduled ChildStatus = iota + 1
	// ChildStarted runs. One that continues as new still does.
	ChildStarted
	// ChildSucceeded is closed and has a result.
	ChildSucceeded
	// ChildFailed is closed and has a reason.
	ChildFailed
	// ChildTimedOut is closed; the reason is the timeout's type.
	ChildTimedOut
	// ChildCanceled is closed: its decider gave in to a cancel request.
	ChildCanceled
	// ChildTerminated is closed: it was ended by force.
	ChildTerminated
	// ChildRefused never began; the reason is the cause of the refusal, for example
	// WORKFLOW_ALREADY_RUNNING.
	ChildRefused
)

var childStatuses = [...]string{
	"unscheduled", "scheduled", "started", "succeeded", "failed", "timed out", "canceled",
	"terminated", "refused",
}

// String returns a word or two.
func (s ChildStatus) String() string {
	if s < 0 || int(s) >= len(childStatuses) {
		return fmt.Sprintf("ChildStatus(%d)", int(s))
	}
	return childStatuses[s]
}

// Open tells whether the child is to begin or runs.
func (s ChildStatus) Open() bool { return s == ChildScheduled || s == ChildStarted }

// Closed tells whether the child has ended, well or badly, or was refused.
func (s ChildStatus) Closed() bool { return s > ChildStarted }

// Child is what a run knows of one of its children. The zero value is a child that was never asked
// for.
type Child struct {
	WorkflowID string
	Type       string
	// Run is the child's run, known as soon as it is asked for. Of one that has continued as new
	// and is closed, it is the run that closed.
	Run string
	// ScheduledID is the ChildScheduled event; 0 if the broker refused the child at once.
	ScheduledID int64
	Status      ChildStatus
	Result      schemas.Payload // if it succeeded
	// Reason says why it ended otherwise, as with activities; Cause is the same for a refused
	// child, to compare with.
	Reason string
	Cause  schemas.Cause
	// Details came with the end of a child that did not succeed, or say which field was wrong and
	// which limit was met.
	Details schemas.Payload
	// Control is the note that [Control] gave it.
	Control schemas.Payload
}

type children struct {
	all     []*Child // in the order they were asked for
	byEvent map[int64]*Child
	byID    map[string]*Child // the one that [View.Child] shows
}

func (v *View) addChild(e schemas.Event) {
	switch a := e.Attributes.(type) {
	case *schemas.ChildScheduled:
		v.children.add(&Child{
			WorkflowID: a.WorkflowID, Type: a.WorkflowType, Run: a.Run, ScheduledID: e.ID,
			Status: ChildScheduled, Control: a.Control,
		})
	case *schemas.ChildStarted:
		if c := v.children.byEvent[a.ScheduledEventID]; c != nil && c.Status == ChildScheduled {
			c.Status, c.Run = ChildStarted, a.WorkflowExecution.Run
		}
	case *schemas.ChildSuccess:
		if c := v.children.close(a.ScheduledEventID, a.WorkflowExecution.Run, ChildSucceeded); c != nil {
			c.Result = a.Result
		}
	case *schemas.ChildFailed:
		if c := v.children.close(a.ScheduledEventID, a.WorkflowExecution.Run, ChildFailed); c != nil {
			c.Reason, c.Details = a.Reason, a.Details
		}
	case *schemas.ChildTimedOut:
		if c := v.children.close(a.ScheduledEventID, a.WorkflowExecution.Run, ChildTimedOut); c != nil {
			c.Reason = string(a.TimeoutType)
		}
	case *schemas.ChildCanceled:
		if c := v.children.close(a.ScheduledEventID, a.WorkflowExecution.Run, ChildCanceled); c != nil {
			c.Details = a.Details
		}
	case *schemas.ChildTerminated:
		v.children.close(a.ScheduledEventID, a.WorkflowExecution.Run, ChildTerminated)
	case *schemas.ChildStartFailed:
		v.children.refuse(a)
	}
}

func (k *children) add(c *Child) {
	if k.byID == nil {
		k.byEvent, k.byID = make(map[int64]*Child), make(map[string]*Child)
	}
	k.all = append(k.all, c)
	if c.ScheduledID != 0 {
		k.byEvent[c.ScheduledID] = c
	}
	if old := k.byID[c.WorkflowID]; old == nil || c.Status.Open() || !old.Status.Open() {
		k.byID[c.WorkflowID] = c
	}
}

// close returns the child, or nil if it is none that is open.
func (k *children) close(scheduled int64, run string, status ChildStatus) *Child {
	c := k.byEvent[scheduled]
	if c == nil || !c.Status.Open() {
		return nil
	}
	c.Status = status
	if run != "" {
		c.Run = run
	}
	return c
}

// refuse notes a refusal: at once, or by the owner of the workflow id. The latter may be about a
// second child of the id of one that is still open; then the open one is what a decider wants to
// see.
func (k *children) refuse(a *schemas.ChildStartFailed) {
	c := k.byEvent[a.ScheduledEventID]
	switch {
	case a.ScheduledEventID == 0:
		c = &Child{WorkflowID: a.WorkflowID, Type: a.WorkflowType, Control: a.Control}
	case c == nil || !c.Status.Open():
		return
	}
	c.Status, c.Reason, c.Cause, c.Details = ChildRefused, string(a.Cause), a.Cause,
		schemas.Payload(a.Details)
	if c.ScheduledID == 0 {
		k.add(c)
		return
	}
	for _, other := range slices.Backward(k.all) {
		if other.WorkflowID == c.WorkflowID && other.Status.Open() {
			k.byID[c.WorkflowID] = other
			return
		}
	}
}

// Child returns where the child of a workflow id stands: of several the latest, but rather one that
// is open than one that was refused since. Its Status is 0 if none was asked for.
func (v *View) Child(workflowID string) Child { return value(v.children.byID[workflowID]) }

// ChildAt returns the child that a ChildScheduled event asked for. Its Status is 0 if the event is
// no such one.
func (v *View) ChildAt(scheduledID int64) Child { return value(v.children.byEvent[scheduledID]) }

func value(c *Child) Child {
	if c == nil {
		return Child{}
	}
	return *c
}

// Children returns all children of the given workflow ids, or of all if none is given, in the order
// they were asked for: a workflow id that was used again is there again.
func (v *View) Children(workflowIDs ...string) []Child {
	var all []Child
	for _, c := range v.children.all {
		if about(c.WorkflowID, workflowIDs) {
			all = append(all, *c)
		}
	}
	return all
}

// OpenChildren returns the workflow ids of the open children in the order they were asked for.
func (v *View) OpenChildren() []string {
	ids := []string{}
	for _, c := range v.children.all {
		if c.Status.Open() {
			ids = append(ids, c.WorkflowID)
		}
	}
	return ids
}

// ChildrenDone tells whether each of the children has been asked for and has ended: the join of
// parallel workflows.
func (v *View) ChildrenDone(workflowIDs ...string) bool {
	for _, id := range workflowIDs {
		if !v.Child(id).Status.Closed() {
			return false
		}
	}
	return true
}

// about tells whether one of the wanted is meant; none wanted means all.
func about[T comparable](one T, wanted []T) bool {
	return len(wanted) == 0 || slices.Contains(wanted, one)
}
