package partition

import (
	"context"
	"errors"

	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/schemas"
)

// serveHistory answers a page of events; with a wait it holds the answer back until there is
// something to say.
func (p *Partition) serveHistory(q *schemas.HistoryRequest, reply func(any)) {
	r := p.get(q.WorkflowID)
	p.whenSound(r, reply, func() {
		switch {
		case !r.Live() || q.Run != "" && r.State.Run != q.Run:
			p.readPage(q, runs.PageOf{Run: q.Run, Closed: true}, reply)
		case p.maybePurged(r):
			p.readPage(q, runs.PageOf{Run: r.State.Run, Closed: true}, reply)
		default:
			id := r.State.Run
			p.wait(r, q.Wait, func(r *actor.Run) bool {
				return r.State.Run != id || r.Committed > q.After || p.ended(r)
			}, func(r *actor.Run) {
				if r.State.Run == id && r.Committed <= q.After {
					reply(&schemas.HistoryResponse{
						V: schemas.Version, Run: id, Events: []schemas.Event{}, Closed: p.ended(r),
					})
					return
				}
				if r.State.Run != id {
					p.readPage(q, runs.PageOf{Run: id, Closed: true}, reply)
					return
				}
				of := runs.PageOf{
					Run: id, Least: r.Committed, Closed: p.ended(r), Last: r.End.Sequence,
				}
				p.readPage(q, of, reply)
			})
		}
	})
}

// ended tells whether the close is in the history.
func (p *Partition) ended(r *actor.Run) bool {
	return r.State.Closed() && r.Inflight == nil && len(r.Pending) == 0
}

// readPage answers with a page of a history.
func (p *Partition) readPage(q *schemas.HistoryRequest, of runs.PageOf, reply func(any)) {
	p.b.Work.Go(func() {
		p.b.Readers.Enter()
		defer p.b.Readers.Leave()
		ctx, cancel := context.WithTimeout(p.b.Background, env.ReadTimeout)
		defer cancel()
		a, err := p.b.Histories.Page(ctx, p.n, q, of)
		if err != nil {
			a = &schemas.HistoryResponse{V: schemas.Version, Run: of.Run, Events: []schemas.Event{}}
			if a.Error = env.Unavailable(err); errors.Is(err, runs.ErrNoRun) {
				a.Error = env.NotFound(q.WorkflowID, of.Run)
			}
		}
		reply(a)
	})
}
