package retention

import (
	"cmp"
	"context"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/schemas"
)

// A chain is purged from its beginning. Were a run that has continued the last one that is left of
// its workflow id, whoever loads it would begin its successor anew (P-4); and without a run in its
// middle the checker could not follow the chain.

// link is a run of a workflow id that has continued as new.
type link struct {
	subject string
	seq     uint64 // of its last record
	first   string // run of its chain
}

// before are the runs which continued before one of their chain, and are still there.
func (k *look) before(ctx context.Context, c *candidate) (earlier []link, err error) {
	if c.line.FirstRun == "" {
		return nil, nil
	}
	wid, p := c.line.WorkflowID, int(c.partition)
	all, known := k.chains[wid]
	if !known {
		ns := k.j.o.Namespace
		o := natsconn.ReadOptions{
			FilterSubjects: []string{ns.HistoryOfWorkflow(p, wid)}, HeadersOnly: true,
			LastPerSubject: true,
		}
		err := k.j.o.Conn.Scan(ctx, ns.StreamHistory(p), o, func(s natsconn.Stored) error {
			if l, err := runs.ReadLine(s); err == nil && l.Status == schemas.StatusContinuedAsNew {
				// what cannot be read is no run
				all = append(all, link{s.Subject, s.Seq, cmp.Or(l.FirstRun, l.Run)})
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		if k.chains == nil {
			k.chains, k.purged = map[string][]link{}, map[string]bool{}
		}
		k.chains[wid] = all
	}
	for _, l := range all {
		if l.first == c.line.FirstRun && l.seq < c.seq && l.subject != c.subject &&
			!k.purged[l.subject] {
			earlier = append(earlier, l)
		}
	}
	return earlier, nil
}

// gone notes that a run was purged, and tells the indexes of runs.
func (k *look) gone(c *candidate) {
	k.j.tell(c)
	if k.purged != nil {
		k.purged[c.subject] = true
	}
}
