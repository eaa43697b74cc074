package dispatch

import (
	"slices"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/partition/actor"
)

// copied notes the message of a task that a worker may have by an offer.
func (d *Dispatch) copied(r *actor.Run, c actor.TaskCopy) {
	r.Tasks.Copies = append(r.Tasks.Copies, c)
	if r.Inflight == nil && len(r.Pending) == 0 {
		d.DropCopies(r)
	}
}

// DropCopies deletes the messages of attempts that are over. Everything of the run is committed.
func (d *Dispatch) DropCopies(r *actor.Run) {
	r.Tasks.Copies = slices.DeleteFunc(r.Tasks.Copies, func(c actor.TaskCopy) bool {
		var a *execution.Activity
		if r.Live() && r.State.Run == c.Run {
			a = r.State.Activities[c.Scheduled]
		}
		switch {
		case a != nil && a.Attempt == c.Attempt && (a.Started == 0 || a.Offered):
			return false
		case a != nil && a.TaskSequence == c.Seq:
			return true // whoever was given it has begun with it: it is his now
		}
		// or it is dropped when it is delivered again
		d.host.Outside().Delete(d.Env.NS.StreamTasks(c.List), c.Seq, func(error) {})
		return true
	})
	if len(r.Tasks.Copies) == 0 {
		r.Tasks.Copies = nil
	}
}
