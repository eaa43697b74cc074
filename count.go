package drover

import (
	"context"

	"github.com/droverhq/drover/schemas"
)

// Count counts the executions that a list with the same options has, without its Limit. The server
// counts for up to 5 s; if there are more than it meets in that time, truncated says so and the
// count is a lower bound.
func (c *Client) Count(
	ctx context.Context, o ListOptions,
) (count int64, truncated bool, err error) {
	l := o.request()
	q := query{verb: "count", hold: hold}
	req := &schemas.CountRequest{
		V: schemas.Version, Status: l.Status, Type: l.Type, WorkflowID: l.WorkflowID,
		Prefix: l.Prefix, Tag: l.Tag, Parent: l.Parent,
		After: l.After, Before: l.Before, ClosedAfter: l.ClosedAfter, ClosedBefore: l.ClosedBefore,
		TopLevel: l.TopLevel, Wait: schemas.Duration(hold),
	}
	out, err := call(ctx, c, q, req,
		func(a *schemas.CountResponse) *schemas.Error { return a.Error })
	if err != nil {
		return 0, false, err
	}
	return out.Count, out.Truncated, nil
}

// TaskLists tells, in the order of their names, how the task lists of the namespace stand: tasks
// that wait, tasks that are being worked on, workers that wait. It is a snapshot of each list, not
// of all of them at one time.
func (c *Client) TaskLists(ctx context.Context) ([]schemas.TaskListInfo, error) {
	req := &schemas.TaskListsRequest{V: schemas.Version}
	out, err := call(ctx, c, query{verb: "lists"}, req,
		func(a *schemas.TaskListsResponse) *schemas.Error { return a.Error })
	if err != nil {
		return nil, err
	}
	return out.Lists, nil
}

// CountDeadLetters tells, in the order of the reasons, how many dead letters there are for each. Of
// o only Reason and After matter.
func (c *Client) CountDeadLetters(ctx context.Context, o DeadOptions) ([]schemas.DeadCount, error) {
	req := &schemas.DeadRequest{V: schemas.Version, Reason: o.Reason, After: o.After, Count: true}
	out, err := call(ctx, c, query{verb: "dead"}, req,
		func(a *schemas.DeadResponse) *schemas.Error { return a.Error })
	if err != nil {
		return nil, err
	}
	return out.Counts, nil
}
