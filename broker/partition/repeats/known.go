package repeats

import (
	"context"

	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/subject"
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

// mostKnown bounds the memory: some two bytes for each id.
const mostKnown = 1 << 20

// List reads the ids of the history as it is after the fence. Those of new runs are added as they
// begin. Until it is called, and where the history has too many runs, no id is known to be unused.
func (rp *Repeats) List() {
	env.ReadAsync(rp.Env, rp.Loop, func(ctx context.Context) ([]string, error) {
		all, complete, err := rp.Env.Reads.StreamSubjects(
			ctx,
			rp.Env.NS.StreamHistory(rp.Partition),
			rp.Env.NS.AllRuns(rp.Partition),
			listedSubjects,
		)
		if !complete {
			all = nil
		} else if all == nil {
			all = []string{}
		}
		return all, err
	}, func(subjects []string, err error) {
		if err != nil {
			rp.Log.WithError(err).
				Debug("workflow ids cannot be listed; every start looks into the history")
		}
		if err != nil || subjects == nil {
			return
		}
		for _, s := range subjects {
			_, wid, _, err := subject.ParseHistory(s)
			if err != nil {
				rp.Log.WithError(err).
					Debug("the history has subjects that are not ours; every start looks into it")
				return
			}
			rp.known.Add(wid)
		}
		rp.listed = true
	})
}

// Begun adds the id of a workflow of which a run begins.
func (rp *Repeats) Begun(wid string) { rp.known.Add(wid) }

// Unused tells whether the history has no records of a workflow id, as far as is known.
func (rp *Repeats) Unused(wid string) bool { return rp.listed && !rp.known.Has(wid) }
