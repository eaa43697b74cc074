package bulk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"iter"

	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// freeze is the activity drover.bulk.freeze: it asks the query, and writes what it has found into
// payloads and their references into the record. Once that is written another attempt finds it.
func (b *Bulk) freeze(ctx context.Context, _ struct{}) (*frozen, error) {
	job, err := b.jobOf(ctx)
	if err != nil {
		return nil, err
	}
	if job.Frozen {
		return &frozen{job.Runs, job.Pages}, nil
	}
	defer beat(ctx, func() any { return nil })()
	rec := job.BulkRecord
	page := make([]target, 0, perPage)
	put := func() error {
		body, err := json.Marshal(page)
		if err != nil {
			return err
		}
		ref, err := b.payloads.Upload(ctx, body)
		if err != nil {
			return err
		}
		rec.Pages, page = append(rec.Pages, *ref), page[:0]
		return nil
	}
	for t, err := range b.targets(ctx, job) {
		if err != nil {
			return nil, err
		}
		if rec.Runs++; rec.Runs > ops.MaxBulkRuns {
			return nil, activity.Final(fmt.Errorf("the query finds more than %d runs: "+
				"narrow it, and take the rest with another job", ops.MaxBulkRuns))
		}
		if page = append(page, t); len(page) == perPage {
			if err := put(); err != nil {
				return nil, err
			}
		}
	}
	if len(page) > 0 {
		if err := put(); err != nil {
			return nil, err
		}
	}
	rec.Frozen = true
	if err := b.write(ctx, &rec, job.rev); err != nil {
		return nil, err // it may be written all the same: the next attempt sees
	}
	return &frozen{rec.Runs, rec.Pages}, b.o.Before("answer freeze")
}

// targets are the runs that a job acts on, each once: jobs are never among them, nor children where
// their parents are what is replayed.
func (b *Bulk) targets(ctx context.Context, job *job) iter.Seq2[target, error] {
	return func(yield func(target, error) bool) {
		q := &job.Request
		text, e := understood(q, job.At.Time())
		if e != nil {
			yield(target{}, activity.Final(e))
			return
		}
		seen, seed := map[uint64]bool{}, maphash.MakeSeed()
		for r, err := range b.o.Find(ctx, text, Filter(q.Action, q.Filter)) {
			if err != nil {
				if e, ok := errors.AsType[*schemas.Error](err); ok &&
					e.Code == schemas.CodeInvalid {
					err = activity.Final(err)
				}
				yield(target{}, err)
				return
			}
			hash := maphash.String(seed, r.Run)
			if seen[hash] || r.Type == ops.TypeBulk {
				continue
			}
			seen[hash] = true
			if !yield(target{ID: r.WorkflowID, Run: r.Run, First: r.FirstRun}, nil) {
				return
			}
		}
	}
}
