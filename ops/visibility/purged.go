package visibility

import (
	"context"
	"fmt"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// restOfCompare is how many times as long as a comparison took is waited until the next one.
const restOfCompare = 20

// hearPurged takes rows away whose runs the janitor of some node purges, until close is called.
func (x *Index) hearPurged() (sub natsconn.Subscription, err error) {
	sub, err = x.conn.Subscribe(x.o.Namespace.AllPurged(), "", func(m natsconn.Msg) {
		var gone ops.PurgedRun
		if err := schemas.Unmarshal(m.Data, &gone); err != nil || gone.WorkflowID == "" {
			return // it is a hint, and the comparison finds what it was about
		}
		p := subject.Partition(gone.WorkflowID, len(x.parts))
		store := x.parts[p].store.Load()
		// one of the same id may have begun since
		r, ok := store.Get(gone.WorkflowID, gone.Run)
		if ok && r.Sequence <= gone.Sequence {
			store.Delete(gone.WorkflowID, gone.Run)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("visibility: hear what is purged: %w", err)
	}
	return sub, nil
}

// compare looks for rows whose runs were purged without a word that was heard, if there are more
// rows than subjects in the stream, or nobody listened for a while.
func (t *part) compare(ctx context.Context) error {
	if !t.comparedAt.IsZero() && time.Since(t.comparedAt) < restOfCompare*t.comparing {
		return nil
	}
	rows := t.store.Load().Len()
	if rows == 0 {
		return nil
	}
	// Runs that begin after the rows were counted are subjects alone, and one is that of fences.
	subjects, err := t.x.conn.StreamSubjectCount(ctx, t.stream)
	if err != nil || rows < subjects && !t.away {
		return err
	}
	began := time.Now()
	if err := t.removeGone(ctx); err != nil {
		return err
	}
	t.comparedAt, t.comparing, t.away = time.Now(), time.Since(began), false
	return nil
}

// removeGone takes the rows away whose runs have no subject in the stream.
func (t *part) removeGone(ctx context.Context) error {
	store := t.store.Load()
	type place struct {
		wid, run string
		sequence uint64
	}
	var rows []place
	for r := range store.All {
		rows = append(rows, place{r.WorkflowID, r.Run, r.Sequence})
	}
	// read after the rows, so that none of them is newer
	subjects, whole, err := t.x.conn.StreamSubjects(ctx, t.stream,
		t.x.o.Namespace.AllRuns(t.p), mostSubjects)
	if err != nil || !whole {
		return err
	}
	there := make(map[string]bool, len(subjects))
	for _, s := range subjects {
		there[s] = true
	}
	for _, r := range rows {
		if there[t.x.o.Namespace.History(t.p, r.wid, r.run)] {
			continue
		}
		if now, ok := store.Get(r.wid, r.run); ok && now.Sequence == r.sequence {
			store.Delete(r.wid, r.run)
			t.changes++
		}
	}
	return nil
}

// mostSubjects bounds the runs of a partition that are compared.
const mostSubjects = 20_000_000
