package decisions

import (
	"time"

	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/deciders"
)

// deciderHost is what the parts of package deciders may do with the partition.
type deciderHost struct{ p *Decisions }

func (h deciderHost) After(d time.Duration, f func()) { h.p.Loop.After(d, f) }

func (h deciderHost) Recall(wid string, from *deciders.Queue) {
	r := h.p.host.Get(wid)
	r.Decider.Recalled = from
	h.p.host.When(r, func() {
		r.Decider.LeaveBacklog()
		h.p.host.Mark(r)
	})
}

// enterBacklog lets a run wait for somebody to listen: nobody did.
func (ds *Decisions) enterBacklog(r *actor.Run) {
	r.Decider.EnterBacklog()
	r.Decider.Reasks++
	from := r.Decider.Recalled
	r.Decider.Recalled = nil
	ds.Deciders.Backlog.Enter(r.State.Start.WorkflowType, r.WorkflowID, from)
}

// LeaveBacklog takes a run out of those that wait for somebody to listen.
func (ds *Decisions) LeaveBacklog(r *actor.Run) {
	if r.Decider.Asking.NoPoller() {
		r.Decider.LeaveBacklog()
		ds.Deciders.Backlog.Remove(r.WorkflowID)
	}
}

// RejoinBacklog is called for a run that was loaded: it may have left the memory while it waited.
func (ds *Decisions) RejoinBacklog(r *actor.Run) {
	if !ds.Deciders.Backlog.Has(r.WorkflowID) {
		return
	}
	if !r.Open() {
		ds.Deciders.Backlog.Remove(r.WorkflowID)
		return
	}
	r.Decider.EnterBacklog()
	r.Decider.Reasks = actor.ManyReasks
}

// EndRecall: the question for a run that was recalled has come to its end, or there was none.
func (ds *Decisions) EndRecall(r *actor.Run) {
	if r.Decider.Recalled != nil {
		r.Decider.Recalled.Ended()
		r.Decider.Recalled = nil
	}
}
