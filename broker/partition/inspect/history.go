package inspect

import (
	"context"
	"errors"

	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/broker/validate"
	"github.com/droverhq/drover/schemas"
)

// History answers a page of events; with a wait it holds the answer back until there is
// something to say.
func (ins *Inspector) History(q *schemas.HistoryRequest, reply func(any)) {
	if refused := validate.History(q); refused != nil {
		reply(&schemas.HistoryResponse{
			V: schemas.Version, Events: []schemas.Event{},
			Error: refused.About(q.WorkflowID, q.Run),
		})
		return
	}
	r := ins.host.Get(q.WorkflowID)
	ins.host.WhenSound(r, reply, func() {
		switch {
		case !r.Live() || q.Run != "" && r.State.Run != q.Run:
			ins.readPage(q, runs.PageOf{Run: q.Run, Closed: true}, reply)
		case ins.maybePurged(r):
			ins.readPage(q, runs.PageOf{Run: r.State.Run, Closed: true}, reply)
		default:
			id := r.State.Run
			ins.host.Wait(r, q.Wait, func(r *actor.Run) bool {
				return r.State.Run != id || r.Committed > q.After || ins.ended(r)
			}, func(r *actor.Run) {
				if r.State.Run == id && r.Committed <= q.After {
					a := &schemas.HistoryResponse{
						V: schemas.Version, Run: id, Events: []schemas.Event{},
						Closed: ins.ended(r),
					}
					if len(q.Types) > 0 && !q.NewestFirst {
						a.Next = q.After
					}
					reply(a)
					return
				}
				if r.State.Run != id {
					ins.readPage(q, runs.PageOf{Run: id, Closed: true}, reply)
					return
				}
				of := runs.PageOf{
					Run: id, Least: r.Committed, Closed: ins.ended(r), Last: r.End.Sequence,
				}
				ins.readPage(q, of, reply)
			})
		}
	})
}

// ended tells whether the close is in the history.
func (ins *Inspector) ended(r *actor.Run) bool {
	return r.State.Closed() && r.Inflight == nil && len(r.Pending) == 0
}

// readPage answers with a page of a history.
func (ins *Inspector) readPage(q *schemas.HistoryRequest, of runs.PageOf, reply func(any)) {
	ins.Env.Work.Go(func() {
		ins.Env.Readers.Enter()
		defer ins.Env.Readers.Leave()
		ctx, cancel := context.WithTimeout(ins.Env.Background, env.ReadTimeout)
		defer cancel()
		a, err := ins.Env.Histories.Page(ctx, ins.Partition, q, of)
		if err != nil {
			a = &schemas.HistoryResponse{V: schemas.Version, Run: of.Run, Events: []schemas.Event{}}
			if a.Error = env.Unavailable(err); errors.Is(err, runs.ErrNoRun) {
				a.Error = env.NotFound(q.WorkflowID, of.Run)
			}
		}
		reply(a)
	})
}
