package checker

import (
	"crypto/sha256"

	"github.com/droverhq/drover/schemas"
)

// externalRequest is a signal or cancel request of one workflow to another, as source and target
// have it. Either side may be unread yet.
type externalRequest struct {
	// The source's side.
	asked     at
	want      message
	delivered at
	to        schemas.Execution // where the answer says it is
	failed    at

	// The target's side.
	received at
	is       message
}

// message is what is carried. Run is the one that is meant, or the one that has it.
type message struct {
	schemas.Execution
	kind  schemas.EventType // as the target has it
	name  string
	input [sha256.Size]byte
}

func (n *Namespace) external(q question) *externalRequest {
	x := n.externals[q]
	if x == nil {
		x = &externalRequest{}
		n.externals[q] = x
	}
	return x
}

// witnessErrand takes what source and target write of signals and cancel requests.
func (n *Namespace) witnessErrand(h *History, e schemas.Event) bool {
	switch a := e.Attributes.(type) {
	case *schemas.SignalExternalScheduled:
		n.sent(h, e, message{
			schemas.Execution{WorkflowID: a.WorkflowID, Run: a.Run},
			schemas.EventSignal,
			a.SignalName, content(a.Input),
		})
	case *schemas.CancelExternalScheduled:
		n.sent(h, e, message{
			schemas.Execution{WorkflowID: a.WorkflowID, Run: a.Run},
			schemas.EventWorkflowCancelRequested, "", content(nil),
		})
	case *schemas.ExternalSignaled:
		n.delivered(h, e, a.ScheduledEventID, a.WorkflowExecution)
	case *schemas.ExternalCancelRequested:
		n.delivered(h, e, a.ScheduledEventID, a.WorkflowExecution)
	case *schemas.SignalExternalFailed:
		n.failed(h, e, a.ScheduledEventID)
	case *schemas.CancelExternalFailed:
		n.failed(h, e, a.ScheduledEventID)
	case *schemas.Signal:
		if a.OriginRun != "" {
			return true // the origin counts
		}
		n.received(h, e, a.ExternalWorkflowExecution, a.ExternalScheduledEventID,
			message{h.execution(), e.Type(), a.SignalName, content(a.Input)})
	case *schemas.WorkflowCancelRequested:
		n.cancelRequested(h, e, a)
	default:
		return false
	}
	return true
}

func (n *Namespace) sent(h *History, e schemas.Event, m message) {
	q := question{h.execution(), e.ID}
	x := n.external(q)
	x.asked, x.want = n.here(h, e), m
	n.compareMessages(q, x)
	n.settleExternal(q, x)
}

func (n *Namespace) delivered(h *History, e schemas.Event, scheduled int64, to schemas.Execution) {
	q := question{h.execution(), scheduled}
	x := n.external(q)
	x.delivered, x.to = n.here(h, e), to
	n.settleExternal(q, x)
}

func (n *Namespace) failed(h *History, e schemas.Event, scheduled int64) {
	if scheduled == 0 {
		return // refused at once: nothing was sent
	}
	q := question{h.execution(), scheduled}
	x := n.external(q)
	x.failed = n.here(h, e)
	n.settleExternal(q, x)
}

func (n *Namespace) received(
	h *History, e schemas.Event, source *schemas.Execution, scheduled int64, m message,
) {
	if source == nil || scheduled == 0 {
		return
	}
	q := question{*source, scheduled}
	x := n.external(q)
	if x.received.set() {
		n.report(RuleDelivery, h.execution(), e.ID,
			"what %s sent is at event %d of workflow %q run %s already",
			q, x.received.event, x.received.WorkflowID, x.received.Run)
		return
	}
	x.received, x.is = n.here(h, e), m
	n.compareMessages(q, x)
	n.settleExternal(q, x)
}

func (n *Namespace) cancelRequested(
	h *History, e schemas.Event, a *schemas.WorkflowCancelRequested,
) {
	n.canceled[schemas.Execution{WorkflowID: h.workflowID, Run: h.chain()}] = true
	q, isChild := h.asker()
	if isChild {
		n.child(q).canceled = true
	}
	if a.Cause != schemas.CauseChildPolicyApplied {
		n.received(h, e, a.ExternalWorkflowExecution, a.ExternalScheduledEventID,
			message{h.execution(), e.Type(), "", content(nil)})
		return
	}
	n.policyApplied(h, e, schemas.ChildRequestCancel)
	if x := a.ExternalWorkflowExecution; x != nil && isChild && (*x != q.Execution ||
		a.ExternalScheduledEventID != 0 && a.ExternalScheduledEventID != q.event) {
		n.report(RuleChildPolicy, h.execution(), e.ID,
			"the policy is that of %s, it says; the run is the child of %s",
			question{*x, a.ExternalScheduledEventID}, q)
	}
}

func (n *Namespace) compareMessages(q question, x *externalRequest) {
	is, want := x.is, x.want
	if !x.asked.set() || !x.received.set() {
		return
	}
	p, _, _ := n.run(is.Execution)
	switch {
	case is.kind != want.kind || is.WorkflowID != want.WorkflowID ||
		want.Run != "" && want.Run != is.Run && want.Run != p.chain:
		n.report(RuleDelivery, is.Execution, x.received.event, "%s sent %s to workflow %q run %q",
			q, want.kind, want.WorkflowID, want.Run)
	case is.name != want.name:
		n.report(RuleDelivery, is.Execution, x.received.event, "%s sent the signal %q, not %q",
			q, want.name, is.name)
	case is.input != want.input:
		n.report(RuleDelivery, is.Execution, x.received.event,
			"the signal has another input than %s gave to it", q)
	}
}

// settleExternal judges a request as soon as both sides have said their last word, and forgets it.
// One that comes back after that names an event that has sent nothing.
//
// One that failed may have arrived all the same: a workflow that did not exist remembers nothing,
// so that a request which is repeated because its answer was late may find a run that has begun
// meanwhile.
func (n *Namespace) settleExternal(q question, x *externalRequest) {
	_, _, closed := n.run(q.Execution)
	switch {
	case x.asked.set() && x.failed.set() && x.received.set():
	case x.asked.set() && x.delivered.set() && x.received.set():
		if !n.compareTargets(q, x) {
			return
		}
	case x.asked.set() && x.received.set() && closed:
	default:
		return
	}
	delete(n.externals, q)
}

// compareTargets tells whether the run that the answer names is known. It may be a later run of the
// chain than the one that has the message, or the first one, or of a later chain that began with
// the knowledge of it.
func (n *Namespace) compareTargets(q question, x *externalRequest) bool {
	got, known, _ := n.run(x.to)
	want, _, _ := n.run(x.received.Execution)
	if x.to.WorkflowID != x.received.WorkflowID ||
		known && got.chain != want.chain && !n.ids[x.to.WorkflowID].knew(got.chain, q) {
		n.report(RuleDelivery, x.delivered.Execution, x.delivered.event,
			"the request of event %d is in workflow %q run %s, it says; it is in workflow %q run %s",
			x.asked.event, x.to.WorkflowID, x.to.Run, x.received.WorkflowID, x.received.Run)
		return true
	}
	return known
}

// endExternal judges a request that was not settled.
func (n *Namespace) endExternal(q question, x *externalRequest, o EndOptions) {
	_, known, closed := n.run(q.Execution)
	switch {
	case !x.asked.set() && x.received.due() && n.provable(q.Execution, o):
		n.report(RuleDelivery, x.received.Execution, x.received.event,
			"%s sent it, it says; there is no such event, or what it sent has arrived before", q)
	case x.delivered.due() && x.received.set():
		if known := n.compareTargets(q, x); !known && !o.Removed {
			n.report(RuleDelivery, x.delivered.Execution, x.delivered.event,
				"the request of event %d is in workflow %q run %s, it says; there is no such run",
				q.event, x.to.WorkflowID, x.to.Run)
		}
	case x.asked.set() && x.delivered.due() && n.provable(x.to, o) && !n.toldAlready(x):
		n.report(RuleDelivery, x.delivered.Execution, x.delivered.event,
			"the request of event %d is in workflow %q run %s, it says; it is not",
			q.event, x.to.WorkflowID, x.to.Run)
	case o.Quiet && x.asked.set() && known && !closed && !x.delivered.set() && !x.failed.set():
		n.report(RuleUnfinished, q.Execution, q.event, "the request to workflow %q has no answer",
			x.want.WorkflowID)
	}
}

// toldAlready: a run of an earlier version was asked to cancel once; who asked again got the same
// answer.
func (n *Namespace) toldAlready(x *externalRequest) bool {
	p, _, _ := n.run(x.to)
	meant := x.want.Run == "" || x.want.Run == x.to.Run || x.want.Run == p.chain
	return meant && x.want.kind == schemas.EventWorkflowCancelRequested &&
		n.canceled[schemas.Execution{WorkflowID: x.to.WorkflowID, Run: p.chain}]
}
