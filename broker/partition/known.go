package partition

import (
	"context"

	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
)

// The first run of a workflow id needs no look into the history (ADR 0030): the owner keeps in mind
// which ids it has records of, and nobody else writes any. That is no proof: a late write of a
// former owner may have come after the listing (P-2). So the first record of a run that was not
// looked for is stored only if the history has no record of any run of its id: the server finds
// that out in the same moment. If it has one the write is refused, and the next term of the
// partition begins with what is there.
//
// Everything but a start that begins a run is judged by what the history says: "there is no such
// workflow" is not said by this.

// listedSubjects is how many runs a history may have at take-over for its ids to be listed, which
// the server does in one piece. Above that every start looks, as it does until the list is there.
const listedSubjects = 25_000

// listKnown reads the ids of the history as it is after the fence. Those of new runs are added as
// they begin.
func (p *Partition) listKnown() {
	if !p.singleReplica() {
		return
	}
	env.ReadAsync(p.b, p.loop, func(ctx context.Context) ([]string, error) {
		all, complete, err := p.b.Reads.StreamSubjects(ctx, p.b.NS.StreamHistory(p.n),
			p.b.NS.AllRuns(p.n), listedSubjects)
		if !complete {
			all = nil
		} else if all == nil {
			all = []string{}
		}
		return all, err
	}, func(subjects []string, err error) {
		if err != nil {
			p.log.WithError(err).
				Debug("workflow ids cannot be listed; every start looks into the history")
		}
		if err != nil || subjects == nil {
			return
		}
		for _, s := range subjects {
			_, wid, _, err := subject.ParseHistory(s)
			if err != nil {
				p.log.WithError(err).
					Debug("the history has subjects that are not ours; every start looks into it")
				return
			}
			p.intake.Known.Add(wid)
		}
		p.intake.Known.Listed()
	})
}

// fresh makes the actor of a workflow id for its first run, if that is certain enough and the start
// is about to begin one; else nil.
func (p *Partition) fresh(q *schemas.StartRequest) *actor.Run {
	if !p.intake.Known.Unused(q.WorkflowID) || p.runs[q.WorkflowID] != nil || !p.singleReplica() {
		return nil
	}
	if p.full() || p.b.RefuseType(q) != nil {
		return nil // a repeat is not refused: look
	}
	r := &actor.Run{WorkflowID: q.WorkflowID, Unproved: true}
	p.runs[r.WorkflowID] = r
	p.touch(r)
	return r
}
