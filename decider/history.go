package decider

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
	// pageEvents is how many events are asked for at once. The broker may answer with fewer.
	pageEvents = 500
	// A page that is not answered is asked for again: the run's partition may be changing its
	// owner.
	pageTimeout  = 3 * time.Second
	minPagePause = 20 * time.Millisecond
	maxPagePause = time.Second
)

// pager reads a page of at most limit events after after. It returns at least one event, or
// more=false, or an error. size is that of the page on the wire.
type pager func(ctx context.Context, t *schemas.DecisionTask, after int64,
	limit int) (events []schemas.Event, more bool, size int, err error)

// readPast reads the next page before the window.
func (t *Task) readPast(ctx context.Context) error {
	known, want := int64(len(t.past)), t.task.PreviousStartedID
	events, _, size, err := t.page(ctx, known, want)
	if err != nil {
		return err
	}
	if len(events) == 0 {
		return fmt.Errorf(
			"%w: it ends at event %d, before the window of this task, which begins after %d",
			ErrHistory,
			known,
			want,
		)
	}
	t.past = append(t.past, events...)
	t.pastBytes += size
	return nil
}

// ended yields the history of a run that has ended, page by page.
func (t *Task) ended(ctx context.Context, yield func(schemas.Event, error) bool) {
	for after, more := int64(0), true; more; {
		var events []schemas.Event
		var err error
		if events, more, _, err = t.page(ctx, after, after+pageEvents); err != nil {
			yield(schemas.Event{}, err)
			return
		}
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
			after = e.ID
		}
		more = more && len(events) > 0
	}
}

// windowEnd is the last event that the window holds.
func (t *Task) windowEnd() int64 { return t.task.PreviousStartedID + int64(len(t.task.Events)) }

// lacking tells whether events of the window are missing. The DeciderStarted at its end is allowed
// to: the broker writes it with the answer at the latest.
func (t *Task) lacking() bool {
	end := t.windowEnd()
	return end < t.task.StartedID-1 || end < t.task.StartedID && t.task.More
}

// fillWindow reads what the window lacks.
func (t *Task) fillWindow(ctx context.Context) error {
	for t.lacking() {
		end := t.windowEnd()
		events, more, size, err := t.page(ctx, end, t.task.StartedID)
		if err != nil {
			return err
		}
		if len(events) == 0 && end < t.task.StartedID-1 {
			return fmt.Errorf(
				"%w: it ends at event %d, within the window of this task, which ends at %d",
				ErrHistory,
				end,
				t.task.StartedID,
			)
		}
		t.task.Events = append(t.task.Events, events...)
		t.windowBytes += size
		t.task.More = more && len(events) > 0
	}
	t.task.More = false
	return nil
}

// page reads events after after and up to last. Both history before the window and a window that
// did not fit come through here, so nothing after the task's DeciderStarted can.
func (t *Task) page(ctx context.Context, after, last int64) ([]schemas.Event, bool, int, error) {
	if t.pages == nil {
		return nil, false, 0, fmt.Errorf(
			"%w: the task has no worker and holds no event after %d: make it with a window from event 1",
			ErrHistory,
			after,
		)
	}
	t.reads.Add(1)
	events, more, size, err := t.pages(ctx, &t.task, after, int(min(last-after, pageEvents)))
	if err != nil {
		return nil, false, 0, err
	}
	got := contiguous(events, after, last)
	if len(got) == 0 && len(events) > 0 && events[0].ID <= last {
		return nil, false, 0, fmt.Errorf(
			"%w: a page after event %d begins with %d",
			ErrHistory,
			after,
			events[0].ID,
		)
	}
	return got, more, size, nil
}

// apiPager pages through api.history, so that a decider needs no right to any stream.
func apiPager(conn *natsconn.Conn, ns subject.Namespace) pager {
	to := ns.API("history")
	header := natsconn.Header{schemas.ContentTypeHeader: []string{schemas.ContentTypeMsgpack}}
	return func(ctx context.Context, t *schemas.DecisionTask, after int64,
		limit int,
	) ([]schemas.Event, bool, int, error) {
		body, err := schemas.Marshal(
			&schemas.HistoryRequest{
				WorkflowID: t.WorkflowID,
				Run:        t.Run,
				After:      after,
				Limit:      limit,
			},
		)
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
		return nil, false, 0, fmt.Errorf(
			"%w: %s run %s after event %d: %w",
			ErrHistory,
			t.WorkflowID,
			t.Run,
			after,
			err,
		)
	}
}

func requestPage(
	ctx context.Context,
	conn *natsconn.Conn,
	to string,
	h natsconn.Header,
	body []byte,
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
		errors.Is(err, natsconn.ErrDisconnected)) &&
		!errors.Is(err, natsconn.ErrPermission)
}
