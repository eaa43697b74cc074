package drover

import (
	"context"
	"iter"
	"time"

	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// QueryOptions of [Client.Query] and [Client.Groups].
type QueryOptions struct {
	// Filter is another condition that must hold, such as "parent IS NULL". Defaults to none.
	Filter string
	// Limit ends the runs after so many, also if the query says more. Defaults to 0, all of them.
	Limit int
	// Wait is how long the index may take to read what was written before the call. What it has not
	// read by then is missing. Defaults to 0.
	Wait time.Duration
	// Index is told what each answer rests on. Defaults to nil.
	Index func(ops.IndexState)
}

// Query yields the runs that a query looks for, in its order: without ORDER BY those that started
// last come first. An empty query is all runs.
//
//	for run, err := range client.Query(ctx, "status = 'failed' AND closed > now-24h", nil)
//
// The index of the namespace answers. It may lack the newest records, which
// [QueryOptions].Index is told, and is never what an action on a run rests on. A run that changes
// meanwhile may be missing or come twice. The sequence ends with the last run, or with an error,
// which is its last value: of a query that cannot be read it is [ErrInvalid], and names the column.
func (c *Client) Query(
	ctx context.Context, text string, o *QueryOptions,
) iter.Seq2[ops.FoundRun, error] {
	if o == nil {
		o = &QueryOptions{}
	}
	q := query{verb: "query", hold: o.Wait}
	fetch := func(cursor string, size int) ([]ops.FoundRun, string, error) {
		req := &ops.QueryRequest{
			V: schemas.Version, Query: text, Filter: o.Filter, Limit: size, Cursor: cursor,
			Wait: schemas.Duration(o.Wait),
		}
		page, err := call(ctx, c, q, req,
			func(a *ops.QueryResponse) *schemas.Error { return a.Error })
		if err != nil {
			return nil, "", err
		}
		if o.Index != nil {
			o.Index(page.Index)
		}
		return page.Runs, page.Cursor, nil
	}
	return pages(q, o.Limit, fetch)
}

// Groups counts the runs that a query looks for, by what its GROUP BY names; without one there is
// one group. Of o all but Limit counts. Errors are as those of [Client.Query].
func (c *Client) Groups(
	ctx context.Context, text string, o *QueryOptions,
) (*ops.GroupsResponse, error) {
	if o == nil {
		o = &QueryOptions{}
	}
	req := &ops.GroupsRequest{
		V: schemas.Version, Query: text, Filter: o.Filter, Wait: schemas.Duration(o.Wait),
	}
	a, err := call(ctx, c, query{verb: "groups", hold: o.Wait}, req,
		func(a *ops.GroupsResponse) *schemas.Error { return a.Error })
	if err != nil {
		return nil, err
	}
	if o.Index != nil {
		o.Index(a.Index)
	}
	return a, nil
}
