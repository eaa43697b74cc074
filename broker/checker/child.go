package checker

import (
	"crypto/sha256"

	"github.com/droverhq/drover/schemas"
)

// child is what parent and child say of one child. Either side may be unread yet.
type child struct {
	// The parent's side.
	asked    at
	want     terms
	started  at
	refused  at
	reported at
	report   ending

	// The child's side: its first and its latest run.
	begun    at // event 1 of the first run that was read of it
	fresh    bool
	is       terms
	latest   schemas.Execution
	canceled bool // a run of the chain was asked to cancel: once is enough
	closed   at
	end      ending
	forced   at // where the parent's policy was carried out
	policy   schemas.ChildPolicy
}

// terms are what a child is asked to be.
type terms struct {
	schemas.Execution
	typ, version string
	depth        int
	input        [sha256.Size]byte
}

// ending is how a child ended.
type ending struct {
	run    string
	status schemas.Status
	words  [sha256.Size]byte // the hash of its result, or of its reason and details
}

func endingOf(run string, status schemas.Status, reason string, words schemas.Payload) ending {
	sum := content(words)
	return ending{
		run: run, status: status, words: sha256.Sum256(append([]byte(reason+"\x00"), sum[:]...)),
	}
}

func (n *Namespace) child(q question) *child {
	c := n.children[q]
	if c == nil {
		c = &child{}
		n.children[q] = c
	}
	return c
}

// witnessParent takes what a parent writes of its children.
func (n *Namespace) witnessParent(h *History, e schemas.Event) bool {
	switch a := e.Attributes.(type) {
	case *schemas.ChildScheduled:
		q := question{h.execution(), e.ID}
		c := n.child(q)
		c.asked, c.want = n.here(h, e), terms{
			Execution: schemas.Execution{WorkflowID: a.WorkflowID, Run: a.Run}, typ: a.WorkflowType,
			version: a.WorkflowTypeVersion, depth: h.link.depth + 1, input: content(a.Input),
		}
		n.compareTerms(q, c)
		n.settleChild(q, c)
	case *schemas.ChildStarted:
		n.child(question{h.execution(), a.ScheduledEventID}).started = n.here(h, e)
	case *schemas.ChildStartFailed:
		if a.ScheduledEventID != 0 {
			q := question{h.execution(), a.ScheduledEventID}
			c := n.child(q)
			c.refused = n.here(h, e)
			n.settleChild(q, c)
		}
	case *schemas.ChildSuccess:
		n.childReported(h, e, a.ScheduledEventID,
			endingOf(a.WorkflowExecution.Run, schemas.StatusCompleted, "", a.Result))
	case *schemas.ChildFailed:
		n.childReported(h, e, a.ScheduledEventID,
			endingOf(a.WorkflowExecution.Run, schemas.StatusFailed, a.Reason, a.Details))
	case *schemas.ChildTimedOut:
		n.childReported(h, e, a.ScheduledEventID, endingOf(a.WorkflowExecution.Run, schemas.StatusTimedOut, "", nil))
	case *schemas.ChildCanceled:
		n.childReported(h, e, a.ScheduledEventID,
			endingOf(a.WorkflowExecution.Run, schemas.StatusCanceled, "", a.Details))
	case *schemas.ChildTerminated:
		n.childReported(h, e, a.ScheduledEventID, endingOf(a.WorkflowExecution.Run, schemas.StatusTerminated, "", nil))
	default:
		return false
	}
	return true
}

func (n *Namespace) childReported(h *History, e schemas.Event, scheduled int64, end ending) {
	q := question{h.execution(), scheduled}
	c := n.child(q)
	c.reported, c.report = n.here(h, e), end
	n.settleChild(q, c)
}

// witnessChild takes what a child writes of itself, and what is done to it by its parent's policy.
func (n *Namespace) witnessChild(h *History, e schemas.Event) {
	var end ending
	switch a := e.Attributes.(type) {
	case *schemas.WorkflowStarted:
		n.childBegun(h, e, a)
		return
	case *schemas.WorkflowSuccess:
		end = endingOf(h.run, schemas.StatusCompleted, "", a.Result)
	case *schemas.WorkflowFailed:
		end = endingOf(h.run, schemas.StatusFailed, a.Reason, a.Details)
	case *schemas.WorkflowTimedOut:
		end = endingOf(h.run, schemas.StatusTimedOut, "", nil)
	case *schemas.WorkflowCanceled:
		end = endingOf(h.run, schemas.StatusCanceled, "", a.Details)
	case *schemas.WorkflowTerminated:
		if a.Cause == schemas.CauseChildPolicyApplied {
			n.policyApplied(h, e, schemas.ChildTerminate)
		}
		end = endingOf(h.run, schemas.StatusTerminated, "", nil)
	default:
		return
	}
	if q, ok := h.asker(); ok {
		c := n.child(q)
		c.closed, c.end, c.latest = n.here(h, e), end, h.execution()
		n.settleChild(q, c)
	}
}

// asker is the event that asked for the run, if it is a child.
func (h *History) asker() (question, bool) {
	return question{h.link.parent, h.link.parentEvent}, h.link.isChild()
}

func (n *Namespace) childBegun(h *History, e schemas.Event, a *schemas.WorkflowStarted) {
	q, ok := h.asker()
	if !ok {
		return
	}
	c := n.child(q)
	c.latest = h.execution()
	if !c.begun.set() {
		c.begun = n.here(h, e)
	}
	if a.ContinuedExecutionRun != "" {
		return
	}
	if c.fresh {
		n.report(RuleParent, h.execution(), e.ID, "%s asked for run %s; that has begun already",
			q, c.is.Run)
		return
	}
	c.fresh, c.is = true, terms{
		Execution: h.execution(), typ: a.WorkflowType, version: a.WorkflowTypeVersion,
		depth: a.Depth, input: content(a.Input),
	}
	n.compareTerms(q, c)
	n.settleChild(q, c)
}

func (n *Namespace) compareTerms(q question, c *child) {
	is, want := c.is, c.want
	switch {
	case !c.fresh || !c.asked.set() || is == want:
	case is.Execution != want.Execution:
		n.report(RuleParent, is.Execution, 1,
			"%s, which the run names, asked for workflow %q run %s", q, want.WorkflowID, want.Run)
	case is.input != want.input:
		n.report(RuleParent, is.Execution, 1, "the run has another input than %s gave to it", q)
	default:
		n.report(RuleParent, is.Execution, 1,
			"the run is of type %q version %q at depth %d; %s asked for type %q version %q at depth %d",
			is.typ, is.version, is.depth, q, want.typ, want.version, want.depth)
	}
}

// policyApplied notes that a run was ended, or asked to end, by its parent's policy.
func (n *Namespace) policyApplied(h *History, e schemas.Event, policy schemas.ChildPolicy) {
	q, ok := h.asker()
	if !ok {
		n.report(RuleChildPolicy, h.execution(), e.ID,
			"%s by the policy of a parent, but the run has none", e.Type())
		return
	}
	c := n.child(q)
	c.forced, c.policy = n.here(h, e), policy
}

// settleChild judges a child as soon as both sides have said their last word, and forgets it. One
// that comes back after that names an event that asks for nothing.
func (n *Namespace) settleChild(q question, c *child) {
	_, _, parentClosed := n.run(q.Execution)
	switch {
	case c.refused.set() && c.begun.set():
		n.report(RuleParent, c.refused.Execution, c.refused.event,
			"ChildStartFailed, but run %s of workflow %q has begun",
			c.begun.Run, c.begun.WorkflowID)
	case c.refused.set():
	case c.reported.set() && c.closed.set():
		n.compareEnds(c)
		n.judgePolicy(q, c)
	case c.asked.set() && c.closed.set() && parentClosed:
		n.judgePolicy(q, c)
	default:
		return
	}
	delete(n.children, q)
}

func (n *Namespace) compareEnds(c *child) {
	switch got, want := c.report, c.end; {
	case got == want:
	case got.run != want.run || got.status != want.status:
		n.report(RuleParent, c.reported.Execution, c.reported.event,
			"the child is %s in run %s, it says; it is %s in run %s",
			got.status, got.run, want.status, want.run)
	default:
		n.report(RuleParent, c.reported.Execution, c.reported.event,
			"the child's result, reason or details are not those of run %s", want.run)
	}
}

// judgePolicy checks that the policy that was carried out is the one of the parent's end.
func (n *Namespace) judgePolicy(q question, c *child) {
	if !c.forced.set() {
		return
	}
	p, known, closed := n.run(q.Execution)
	switch {
	case !known || !closed && c.forced.late:
	case !closed:
		n.report(RuleChildPolicy, c.forced.Execution, c.forced.event,
			"the policy %s was carried out, but the parent, run %s of workflow %q, is open",
			c.policy, q.Run, q.WorkflowID)
	case p.policy != c.policy:
		n.report(RuleChildPolicy, c.forced.Execution, c.forced.event,
			"the policy %s was carried out; that of the end of the parent, run %s of workflow %q, is %q",
			c.policy, q.Run, q.WorkflowID, p.policy)
	case c.reported.set():
		n.report(RuleChildPolicy, c.forced.Execution, c.forced.event,
			"the policy %s was carried out, but the parent had the child's end at event %d",
			c.policy, c.reported.event)
	}
}

// endChild judges a child that was not settled.
func (n *Namespace) endChild(q question, c *child, o EndOptions) {
	p, known, closed := n.run(q.Execution)
	n.judgePolicy(q, c)
	switch {
	case !c.asked.set() && c.begun.due() && n.provable(q.Execution, o):
		n.report(RuleParent, c.begun.Execution, c.begun.event,
			"%s asked for the run, it says; there is no such ChildScheduled, or it has had its child",
			q)
	case c.asked.set() && !c.begun.set():
		n.endUnbegun(c, o, known && !closed)
	case c.asked.set() && c.reported.due() && !c.closed.set() && !n.lost(c.latest, o):
		n.report(RuleParent, c.reported.Execution, c.reported.event,
			"the child is %s, it says; run %s of workflow %q is not closed",
			c.report.status, c.latest.Run, c.latest.WorkflowID)
	}
	if !o.Quiet || !c.asked.set() || !c.begun.set() || !known {
		return
	}
	switch _, _, ended := n.run(c.latest); {
	case c.closed.set() && !closed && !c.reported.set():
		n.report(RuleUnfinished, c.closed.Execution, c.closed.event,
			"the child is closed, but its parent, workflow %q run %s, has not noted it",
			q.WorkflowID, q.Run)
	case c.closed.set() || ended || !closed:
	case p.policy == schemas.ChildTerminate:
		n.report(RuleChildPolicy, c.latest, 0,
			"the run is open; its parent, workflow %q run %s, ended by force with the policy %s",
			q.WorkflowID, q.Run, p.policy)
	case p.policy == schemas.ChildRequestCancel && !c.canceled:
		n.report(RuleChildPolicy, c.latest, 0,
			"the run was not asked to cancel; its parent, workflow %q run %s, ended by force with the policy %s",
			q.WorkflowID, q.Run, p.policy)
	}
}

// endUnbegun judges a child that has no history. One may have been removed once its parent knows
// its end, or is closed itself.
func (n *Namespace) endUnbegun(c *child, o EndOptions, parentOpen bool) {
	said := c.started
	if !said.set() {
		said = c.reported
	}
	_, known, _ := n.run(c.want.Execution)
	switch {
	case said.due() && (known || !o.Removed || parentOpen && !c.reported.set()):
		n.report(RuleParent, said.Execution, said.event,
			"the child, run %s of workflow %q, has begun, it says; no such run names event %d as what asked for it",
			c.want.Run, c.want.WorkflowID, c.asked.event)
	case o.Quiet && parentOpen && !said.set():
		n.report(RuleUnfinished, c.asked.Execution, c.asked.event,
			"the child, run %s of workflow %q, has neither begun nor been refused",
			c.want.Run, c.want.WorkflowID)
	}
}

// lost tells whether a later run of the chain may have been there and is removed.
func (n *Namespace) lost(x schemas.Execution, o EndOptions) bool {
	_, known, closed := n.run(x)
	return o.Removed && (!known || closed)
}
