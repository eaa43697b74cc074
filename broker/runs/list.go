package runs

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/droverhq/drover/schemas"
)

const (
	defaultList = 100
	maxList     = 1000
)

// listFor bounds how much a page of a list reads: after that time it ends, however few runs it has,
// with a cursor. It is shorter than the turn of a request that waits, see [Scans].
const listFor = time.Second

// Limit is how many entries a page of a list has at most: as many as are asked for, within bounds.
func Limit(asked int) int {
	if asked <= 0 {
		return defaultList
	}
	return min(asked, maxList)
}

// List returns a page of the runs that match, partition by partition, in the order of their last
// records, from where the cursor stands. It costs the headers of all records: good for a person's
// question, not for a dashboard over millions.
func (r *Reader) List(ctx context.Context, q *schemas.ListRequest) (*schemas.ListResponse, error) {
	return r.list(ctx, q, time.Now().Add(listFor))
}

// list is [Reader.List] that reads until some time.
func (r *Reader) list(
	ctx context.Context, q *schemas.ListRequest, until time.Time,
) (*schemas.ListResponse, error) {
	if err := validateStatus(q.Status); err != nil {
		return nil, err
	}
	partition, from, err := parseCursor(q.Cursor)
	if err == nil && partition >= r.Partitions {
		err = badCursor(q.Cursor)
	}
	if err != nil {
		return nil, err
	}
	limit, quota := Limit(q.Limit), r.BodyLimit()/2
	a := &schemas.ListResponse{V: schemas.Version, Executions: []schemas.ExecutionInfo{}}
	err = r.walk(
		ctx,
		q,
		partition,
		from,
		func(partition int, seq uint64, i *schemas.ExecutionInfo) error {
			if i == nil && time.Now().Before(until) {
				return nil
			}
			if i != nil {
				line, err := schemas.MarshalJSON(i)
				if err != nil {
					return err
				}
				quota -= len(line)
			}
			if i == nil || len(a.Executions) == limit || quota < 0 && len(a.Executions) > 0 {
				a.Cursor = strconv.Itoa(partition) + "." + strconv.FormatUint(seq, 10)
				return errPageFull
			}
			a.Executions = append(a.Executions, *i)
			return nil
		},
	)
	if err != nil && a.Cursor == "" {
		return nil, err
	}
	return a, nil
}

// errPageFull ends a walk.
var errPageFull = errors.New("the page is full")

// matches tells whether a run is one that is asked for.
func matches(q *schemas.ListRequest, i *schemas.ExecutionInfo) bool {
	return (q.Status == "" || q.Status == i.Status ||
		q.Status == schemas.StatusClosed && i.Status.Closed()) &&
		(q.Type == "" || q.Type == i.Type) &&
		(q.Prefix == "" || strings.HasPrefix(i.WorkflowID, q.Prefix)) &&
		(q.Tag == "" || slices.Contains(i.Tags, q.Tag)) &&
		(q.Parent == "" || i.Parent != nil && i.Parent.WorkflowID == q.Parent) &&
		!(q.TopLevel && i.Parent != nil) && (q.After == 0 || i.StartedAt > q.After) &&
		(q.Before == 0 || i.StartedAt < q.Before) &&
		(q.ClosedAfter == 0 || i.ClosedAt > q.ClosedAfter) &&
		(q.ClosedBefore == 0 || i.ClosedAt != 0 && i.ClosedAt < q.ClosedBefore)
}

func parseCursor(c string) (partition int, from uint64, err error) {
	if c == "" {
		return 0, 1, nil
	}
	p, s, ok := strings.Cut(c, ".")
	partition, err = strconv.Atoi(p)
	if err == nil {
		from, err = strconv.ParseUint(s, 10, 64)
	}
	if !ok || err != nil || partition < 0 {
		return 0, 0, badCursor(c)
	}
	return partition, from, nil
}

func badCursor(c string) error {
	return schemas.Errorf(schemas.CodeInvalid, "the cursor %q is none that a list has returned", c).
		InField("cursor").
		WithHint("begin again without one")
}

// validateStatus refuses a word that no execution has for its status: the list would be empty,
// which looks like an answer.
func validateStatus(s schemas.Status) error {
	all := []schemas.Status{
		schemas.StatusOpen, schemas.StatusPaused, schemas.StatusCompleted, schemas.StatusFailed,
		schemas.StatusCanceled, schemas.StatusTerminated,
		schemas.StatusTimedOut, schemas.StatusContinuedAsNew, schemas.StatusClosed,
	}
	if s == "" || slices.Contains(all, s) {
		return nil
	}
	return schemas.Errorf(schemas.CodeInvalid, "status is %q", s).
		InField("status").
		WithHint("use one of %v, or leave it out for all", all)
}
