package bulk

import (
	"context"
	"iter"
	"time"

	"github.com/droverhq/drover/ops/query"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

const (
	// findPage is how many runs one question asks for.
	findPage = 1000
	// catchUp is how long the index may take to read what was written before the question.
	catchUp = 10 * time.Second
)

// Filter is the condition on what an action is done to, beside the query: a further one, if any;
// jobs are never acted on, and of a family only the parent is replayed.
func Filter(action ops.BulkAction, further string) string {
	f := "type != '" + ops.TypeBulk + "'"
	if action == ops.BulkReplay {
		f += " AND parent IS NULL"
	}
	if further != "" {
		f += " AND (" + further + ")"
	}
	return f
}

// understood is a query as it is asked: its times are those of the begin of the job. Runs that are
// deleted come in the order of their starts if nothing else is said: the first ones of a chain have
// to go before the others.
func understood(q *ops.BulkRequest, now time.Time) (string, *schemas.Error) {
	parsed, err := query.Parse(q.Query, now)
	if err != nil {
		return "", schemas.Errorf(schemas.CodeInvalid, "the query cannot be read: %v", err).
			InField("query")
	}
	if len(parsed.Group) > 0 {
		return "", schemas.Errorf(schemas.CodeInvalid, "a query with GROUP BY finds no runs").
			InField("query").WithHint("leave GROUP BY out")
	}
	if q.Action == ops.BulkDelete && len(parsed.Order) == 0 && parsed.Limit == 0 {
		parsed.Order = []query.Order{{Field: query.Field{Column: query.ColumnStarted}}}
	}
	return parsed.String(), nil
}

// find asks the index. While that is being built it would lack runs, so it is asked again later.
func (b *Bulk) find(ctx context.Context, text, filter string) iter.Seq2[ops.FoundRun, error] {
	return func(yield func(ops.FoundRun, error) bool) {
		q := &ops.QueryRequest{
			V: schemas.Version, Query: text, Filter: filter, Limit: findPage,
			Wait: schemas.Duration(catchUp),
		}
		for {
			a := &ops.QueryResponse{}
			err := b.askEvery(ctx, catchUp+askEvery, "query", q, a, &a.Error)
			if err == nil && a.Index.Building > 0 {
				err = schemas.Errorf(schemas.CodeUnavailable, "the index is being built: %.0f%%",
					100*a.Index.Building)
			}
			if err != nil {
				yield(ops.FoundRun{}, err)
				return
			}
			for _, r := range a.Runs {
				if !yield(r, nil) {
					return
				}
			}
			if q.Cursor = a.Cursor; q.Cursor == "" {
				return
			}
		}
	}
}
