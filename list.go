package drover

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/schemas"
)

// pageSize is how many lines of a list one request asks for. Large, because the server reads its
// index anew for each page; a page that does not fit one message is asked for again with half of
// it.
const pageSize = 1000

// ListOptions filter [Client.List]. Empty fields match all.
type ListOptions struct {
	// Status is one of those of an execution, or [schemas.StatusClosed] for all that have ended.
	Status schemas.Status
	Type   string
	// WorkflowID lists the runs of one workflow id, Prefix those of all ids that begin with it.
	WorkflowID string
	Prefix     string
	// Tag lists the executions that bear it; Parent the children of one workflow id.
	Tag, Parent string
	// TopLevel leaves out children, the inner parts of flows among them.
	TopLevel bool
	// StartedAfter and StartedBefore bound the time of the start.
	StartedAfter, StartedBefore time.Time
	// ClosedAfter and ClosedBefore bound the time of the end; executions that are open are left
	// out.
	ClosedAfter, ClosedBefore time.Time
	// Limit ends the list after so many lines. Defaults to 0, all of them.
	Limit int
}

// List yields executions in the server's order. A run that is started meanwhile may or may not be
// seen, and one that changes meanwhile may be seen twice, with its new status. The sequence ends
// with the list, or with an error, which is its last value.
func (c *Client) List(ctx context.Context, o ListOptions) iter.Seq2[schemas.ExecutionInfo, error] {
	req := o.request()
	q := query{verb: "list", id: o.WorkflowID}
	fetch := func(cursor string, size int) ([]schemas.ExecutionInfo, string, error) {
		ask := req
		ask.Cursor, ask.Limit = cursor, size
		page, err := call(ctx, c, q, &ask,
			func(a *schemas.ListResponse) *schemas.Error { return a.Error })
		if err != nil {
			return nil, "", err
		}
		return page.Executions, page.Cursor, nil
	}
	return pages(q, o.Limit, fetch)
}

// request holds the filters as they travel.
func (o ListOptions) request() schemas.ListRequest {
	return schemas.ListRequest{
		V: schemas.Version, Status: o.Status, Type: o.Type, WorkflowID: o.WorkflowID,
		Prefix: o.Prefix, Tag: o.Tag, Parent: o.Parent, After: schemas.At(o.StartedAfter),
		Before: schemas.At(o.StartedBefore), ClosedAfter: schemas.At(o.ClosedAfter),
		ClosedBefore: schemas.At(o.ClosedBefore), TopLevel: o.TopLevel,
	}
}

// DeadOptions filter [Client.DeadLetters].
type DeadOptions struct {
	// Reason lists only letters of one reason, such as "unknown-workflow". Defaults to all.
	Reason string
	// After skips the letters up to this sequence. Defaults to 0.
	After uint64
	// Limit ends the list after so many letters. Defaults to 0, all of them.
	Limit int
}

// DeadLetters yields the messages that could not be applied, the oldest first. The sequence ends
// with the last letter, or with an error, which is its last value.
func (c *Client) DeadLetters(
	ctx context.Context, o DeadOptions,
) iter.Seq2[schemas.DeadEntry, error] {
	q := query{verb: "dead"}
	fetch := func(after uint64, size int) ([]schemas.DeadEntry, uint64, error) {
		req := &schemas.DeadRequest{
			V: schemas.Version, Reason: o.Reason, Limit: size, After: max(after, o.After),
		}
		page, err := call(ctx, c, q, req,
			func(a *schemas.DeadResponse) *schemas.Error { return a.Error })
		if err != nil {
			return nil, 0, err
		}
		return page.Letters, page.After, nil
	}
	return pages(q, o.Limit, fetch)
}

// pages walks a list page by page until its cursor is the zero value or limit lines were yielded.
func pages[Line any, Cursor comparable](
	q query, limit int, fetch func(at Cursor, size int) ([]Line, Cursor, error),
) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		var zero Line
		var at, end Cursor
		if limit < 0 {
			yield(zero, newError(q,
				fmt.Errorf("%w: Limit is %d, want 0 for all or more", natsconn.ErrInvalid, limit)))
			return
		}
		for sent, most := 0, pageSize; ; {
			size := most
			if limit > 0 {
				size = min(size, limit-sent)
			}
			lines, next, err := fetch(at, size)
			if errors.Is(err, ErrTooLarge) && size > 1 {
				most = size / 2
				continue
			}
			if err != nil {
				yield(zero, err)
				return
			}
			for _, line := range lines {
				if !yield(line, nil) {
					return
				}
				if sent++; sent == limit {
					return
				}
			}
			switch {
			case next == end:
				return
			case next == at:
				yield(zero, newError(q, fmt.Errorf(
					"the list does not go on after %v: the server repeats its page", at)))
				return
			}
			at = next
		}
	}
}
