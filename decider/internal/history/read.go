package history

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/sleep"
	"github.com/droverhq/drover/schemas"
)

const (
	// A page that is not answered is asked for again: the run's partition may be changing its
	// owner.
	pageTimeout  = 3 * time.Second
	minPagePause = 20 * time.Millisecond
	maxPagePause = time.Second
)

// Pager reads a page of at most limit events after after. It returns at least one event, or
// more=false, or an error. size is that of the page on the wire, bytes.
type Pager func(
	ctx context.Context, t *schemas.DecisionTask, after int64, limit int,
) (events []schemas.Event, more bool, size int, err error)

// FromAPI reads pages through api.history, so that a decider needs no right to any stream.
func FromAPI(conn *natsconn.Conn, ns subject.Namespace) Pager {
	to := ns.API("history")
	header := natsconn.Header{schemas.ContentTypeHeader: []string{schemas.ContentTypeMsgpack}}
	return func(
		ctx context.Context, t *schemas.DecisionTask, after int64, limit int,
	) ([]schemas.Event, bool, int, error) {
		body, err := schemas.Marshal(&schemas.HistoryRequest{
			WorkflowID: t.WorkflowID, Run: t.Run, After: after, Limit: limit,
		})
		if err != nil {
			return nil, false, 0, err
		}
		var page schemas.HistoryResponse
		var size int
		for wait := minPagePause; ; wait = min(2*wait, maxPagePause) {
			page, size, err = requestPage(ctx, conn, to, header, body)
			if err == nil {
				return page.Events, page.More, size, nil
			}
			if !transient(err) || sleep.For(ctx, wait) != nil {
				break
			}
		}
		if cause := context.Cause(ctx); cause != nil {
			err = errors.Join(cause, err)
		}
		return nil, false, 0, fmt.Errorf("%w: %s run %s after event %d: %w",
			Err, t.WorkflowID, t.Run, after, err)
	}
}

func requestPage(
	ctx context.Context, conn *natsconn.Conn, to string, h natsconn.Header, body []byte,
) (page schemas.HistoryResponse, size int, err error) {
	ctx, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	m, err := conn.Request(ctx, to, h, body)
	if err != nil {
		return page, 0, err
	}
	if err := schemas.Unmarshal(m.Data, &page); err != nil {
		return page, 0, err
	}
	if page.Error != nil {
		return page, 0, page.Error
	}
	return page, len(m.Data), nil
}

// transient tells whether the same request may succeed a little later.
func transient(err error) bool {
	if e, ok := errors.AsType[*schemas.Error](err); ok {
		return e.Code == schemas.CodeUnavailable || e.Code == schemas.CodeTimeout
	}
	return (errors.Is(err, natsconn.ErrNoResponders) || errors.Is(err, natsconn.ErrTimeout) ||
		errors.Is(err, natsconn.ErrDisconnected)) && !errors.Is(err, natsconn.ErrPermission)
}
