package visibility

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/droverhq/drover/ops/index"
	"github.com/droverhq/drover/ops/query"
	"github.com/droverhq/drover/ops/service"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

const (
	// queueGroup is that of the nodes that have the index.
	queueGroup  = "index"
	defaultPage = 100
	maxPage     = 1000
	// mostGroups is how many groups an answer has at most.
	mostGroups = 1000
	// maxWait bounds how long a request waits for the index.
	maxWait = 10 * time.Second
	// foundEmpty is about how many bytes a run takes in an answer beside its texts.
	foundEmpty = 200
	// groupEmpty is that of a group.
	groupEmpty = 40
)

func (x *Index) verbs() []service.Verb {
	return []service.Verb{
		{
			Name:  "query",
			About: "the runs that a query looks for, from the index: QueryRequest → QueryResponse",
			Serve: service.Answer(
				x.Query,
				func(_ *ops.QueryRequest, e *schemas.Error) *ops.QueryResponse {
					return &ops.QueryResponse{V: schemas.Version, Runs: []ops.FoundRun{}, Error: e}
				},
			),
		},
		{
			Name:  "groups",
			About: "how many runs a query looks for, from the index: GroupsRequest → GroupsResponse",
			Serve: service.Answer(
				x.Groups,
				func(_ *ops.GroupsRequest, e *schemas.Error) *ops.GroupsResponse {
					return &ops.GroupsResponse{
						V:      schemas.Version,
						Groups: []ops.RunGroup{},
						Error:  e,
					}
				},
			),
		},
	}
}

// Query finds a page of runs. An error is a [*schemas.Error].
func (x *Index) Query(ctx context.Context, q *ops.QueryRequest) (*ops.QueryResponse, error) {
	asked, err := read(q.Query, q.Filter)
	switch {
	case err != nil:
		return nil, err
	case len(asked.Group) > 0:
		return nil, schemas.Errorf(schemas.CodeInvalid, "query: GROUP BY counts runs").
			InField("query").WithHint("leave it out, or ask the verb groups: drover count")
	case q.Limit < 0:
		return nil, schemas.Errorf(schemas.CodeInvalid, "limit: %d is less than 0", q.Limit).
			InField("limit").WithHint("leave it out, or say how many")
	}
	before, cursor, err := readCursor(q.Cursor)
	if err != nil {
		return nil, err
	}
	size := min(cmp.Or(q.Limit, defaultPage), maxPage)
	total := asked.Limit
	if total > 0 {
		size = min(size, max(total-before, 0))
	}
	a := &ops.QueryResponse{V: schemas.Version, Runs: []ops.FoundRun{}}
	x.await(ctx, min(q.Wait.Std(), maxWait))
	positions := x.positions()
	for room := int(x.conn.MaxPayload() / 2); size > 0; size /= 2 {
		asked.Limit = size
		page, err := index.Search(x.stores(), asked, cursor)
		if err != nil {
			return nil, badCursor(q.Cursor)
		}
		if sizeOf(page.Rows) > room && size > 1 {
			continue
		}
		for i := range page.Rows {
			a.Runs = append(a.Runs, found(&page.Rows[i]))
		}
		if shown := before + len(a.Runs); page.Next != "" && (total == 0 || shown < total) {
			a.Cursor = strconv.Itoa(shown) + "." + page.Next
		}
		break
	}
	a.Index = x.state(ctx, positions)
	return a, nil
}

// Groups counts runs. An error is a [*schemas.Error].
func (x *Index) Groups(ctx context.Context, q *ops.GroupsRequest) (*ops.GroupsResponse, error) {
	asked, err := read(q.Query, q.Filter)
	if err != nil {
		return nil, err
	}
	if asked.Limit == 0 || asked.Limit > mostGroups {
		asked.Limit = mostGroups
	}
	x.await(ctx, min(q.Wait.Std(), maxWait))
	positions, stores := x.positions(), x.stores()
	a := &ops.GroupsResponse{V: schemas.Version, Groups: []ops.RunGroup{}}
	if len(asked.Group) == 0 {
		a.Total, a.All = int64(index.Count(stores, asked)), 1
		a.Groups = append(a.Groups, ops.RunGroup{Count: a.Total})
	} else {
		groups, all, err := index.Groups(stores, asked)
		if err != nil {
			return nil, schemas.Errorf(schemas.CodeInvalid, "query: %v", err).InField("query")
		}
		a.Total, a.All = int64(all.Rows), int64(all.Groups)
		for _, g := range asked.Group {
			a.Columns = append(a.Columns, g.String())
		}
		room := int(x.conn.MaxPayload() / 2)
		for _, g := range groups {
			for _, v := range g.Keys {
				room -= len(v) + 4
			}
			if room -= groupEmpty; room < 0 {
				break
			}
			a.Groups = append(a.Groups, ops.RunGroup{Values: g.Keys, Count: int64(g.Rows)})
		}
	}
	a.Index = x.state(ctx, positions)
	return a, nil
}

// read reads a query, and a condition that must hold as well.
func read(text, filter string) (*query.Query, error) {
	now := time.Now()
	q, err := query.Parse(text, now)
	if err != nil {
		return nil, schemas.Errorf(schemas.CodeInvalid, "query: %v", err).InField("query")
	}
	also, err := query.Parse(filter, now)
	if err != nil {
		return nil, schemas.Errorf(schemas.CodeInvalid, "filter: %v", err).InField("filter")
	}
	if len(also.Group) > 0 || len(also.Order) > 0 || also.Limit > 0 {
		return nil, schemas.Errorf(schemas.CodeInvalid, "filter: it is more than a condition").
			InField("filter").WithHint("say GROUP BY, ORDER BY and LIMIT in query")
	}
	q.Where = both(q.Where, also.Where)
	return q, nil
}

// both is that two conditions hold, either of which may be missing.
func both(a, b query.Expr) query.Expr {
	var all query.And
	for _, e := range []query.Expr{a, b} {
		switch e := e.(type) {
		case nil:
		case query.And:
			all = append(all, e...)
		default:
			all = append(all, e)
		}
	}
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	return all
}

// A cursor is how many runs the pages before have, and where the index goes on: "200.…".
func readCursor(c string) (before int, cursor string, err error) {
	if c == "" {
		return 0, "", nil
	}
	n, cursor, ok := strings.Cut(c, ".")
	before, err = strconv.Atoi(n)
	if !ok || err != nil || before < 0 || cursor == "" {
		return 0, "", badCursor(c)
	}
	return before, cursor, nil
}

func badCursor(c string) error {
	return schemas.Errorf(schemas.CodeInvalid,
		"cursor: %q is none that this query has returned", c).
		InField("cursor").WithHint("begin again without one")
}

// state says what an answer rests on whose rows were read after the positions were noted.
func (x *Index) state(ctx context.Context, positions []uint64) ops.IndexState {
	i := ops.IndexState{Node: x.o.Node, Lag: x.lag(ctx, positions)}
	if built := x.built(); built < 1 {
		i.Building = built
	}
	for _, s := range x.stores() {
		i.Gone += s.Stats().Dropped
	}
	return i
}

// found is a row as it travels.
func found(r *query.Row) ops.FoundRun {
	f := ops.FoundRun{
		ExecutionInfo: schemas.ExecutionInfo{
			WorkflowID: r.WorkflowID, Run: r.Run, Type: r.Type, TypeVersion: r.Version,
			Status: r.Status, StartedAt: r.Started, ClosedAt: r.Closed, Events: r.Events,
			Tags: r.Tags, Attributes: r.Attributes, StartMode: schemas.StartMode(r.StartMode),
		},
		FirstRun: r.First, Reason: r.Reason,
	}
	if r.Parent != "" {
		f.Parent = &schemas.Execution{WorkflowID: r.Parent}
	}
	return f
}

// sizeOf is about how many bytes rows take in an answer.
func sizeOf(rows []query.Row) (n int) {
	for i := range rows {
		r := &rows[i]
		n += foundEmpty + len(r.WorkflowID) + len(r.Run) + len(r.Type) + len(r.Version) +
			len(r.Parent) + len(r.First) + len(r.Reason)
		for _, tag := range r.Tags {
			n += len(tag) + 4
		}
		for name, v := range r.Attributes {
			n += len(name) + len(v) + 8
		}
	}
	return n
}
