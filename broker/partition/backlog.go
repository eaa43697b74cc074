package partition

import (
	"time"

	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/alarms"
	"github.com/droverhq/drover/broker/partition/deciders"
)

// deciderHost is what the parts of package deciders may do with the partition.
type deciderHost struct{ p *Partition }

func (h deciderHost) After(d time.Duration, f func()) { h.p.loop.After(d, f) }

func (h deciderHost) Recall(wid string, from *deciders.Queue) {
	r := h.p.get(wid)
	r.Decider.Recalled = from
	h.p.when(r, func() {
		r.Decider.NoPoller = false
		h.p.mark(r)
	})
}

// enterBacklog lets a run wait for somebody to listen: nobody did.
func (p *Partition) enterBacklog(r *actor.Run) {
	r.Decider.NoPoller = true
	r.Decider.Reasks++
	from := r.Decider.Recalled
	r.Decider.Recalled = nil
	p.deciders.Backlog.Enter(r.State.Start.WorkflowType, r.WorkflowID, from)
}

// leaveBacklog takes a run out of those that wait for somebody to listen.
func (p *Partition) leaveBacklog(r *actor.Run) {
	if r.Decider.NoPoller {
		r.Decider.NoPoller = false
		p.deciders.Backlog.Remove(r.WorkflowID)
	}
}

// rejoinBacklog is called for a run that was loaded: it may have left the memory while it waited.
func (p *Partition) rejoinBacklog(r *actor.Run) {
	if !p.deciders.Backlog.Has(r.WorkflowID) {
		return
	}
	if !r.Open() {
		p.deciders.Backlog.Remove(r.WorkflowID)
		return
	}
	r.Decider.NoPoller, r.Decider.Reasks = true, alarms.ManyReasks
}

// endRecall: the question for a run that was recalled has come to its end, or there was none.
func (p *Partition) endRecall(r *actor.Run) {
	if r.Decider.Recalled != nil {
		r.Decider.Recalled.Ended()
		r.Decider.Recalled = nil
	}
}
