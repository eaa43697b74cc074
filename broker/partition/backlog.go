package partition

import (
	"time"

	"github.com/droverhq/drover/broker/partition/deciders"
)

// deciderHost is what the parts of package deciders may do with the partition.
type deciderHost struct{ p *Partition }

func (h deciderHost) After(d time.Duration, f func()) { h.p.loop.After(d, f) }

func (h deciderHost) Recall(wid string, from *deciders.Queue) {
	r := h.p.get(wid)
	r.recalled = from
	h.p.when(r, func() {
		r.noPoller = false
		h.p.mark(r)
	})
}

// enterBacklog lets a run wait for somebody to listen: nobody did.
func (p *Partition) enterBacklog(r *run) {
	r.noPoller = true
	r.reasks++
	from := r.recalled
	r.recalled = nil
	p.deciders.Backlog.Enter(r.state.Start.WorkflowType, r.wid, from)
}

// leaveBacklog takes a run out of those that wait for somebody to listen.
func (p *Partition) leaveBacklog(r *run) {
	if r.noPoller {
		r.noPoller = false
		p.deciders.Backlog.Remove(r.wid)
	}
}

// rejoinBacklog is called for a run that was loaded: it may have left the memory while it waited.
func (p *Partition) rejoinBacklog(r *run) {
	if !p.deciders.Backlog.Has(r.wid) {
		return
	}
	if !r.open() {
		p.deciders.Backlog.Remove(r.wid)
		return
	}
	r.noPoller, r.reasks = true, manyReasks
}

// endRecall: the question for a run that was recalled has come to its end, or there was none.
func (p *Partition) endRecall(r *run) {
	if r.recalled != nil {
		r.recalled.Ended()
		r.recalled = nil
	}
}
