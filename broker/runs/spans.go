package runs

import (
	"context"
	"errors"
	"fmt"

	"github.com/droverhq/drover/broker/explain"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// Spans reads a page of a run's spans, without an id of a run those of the latest. If there is no
// such run the error is [ErrNoRun].
func (r *Reader) Spans(ctx context.Context, q *ops.SpansRequest) (*ops.SpansResponse, error) {
	p := subject.Partition(q.WorkflowID, r.Partitions)
	of, base, err := r.spansOf(ctx, p, q)
	if err != nil {
		return nil, err
	}
	page, err := r.Page(ctx, p, &schemas.HistoryRequest{
		WorkflowID: q.WorkflowID, Run: of.Run, After: q.After, Limit: maxPage,
	}, of)
	if err != nil {
		return nil, err
	}
	a := &ops.SpansResponse{
		V: schemas.Version, Run: of.Run, Base: base, Spans: explain.Spans(page.Events, base),
		Next: q.After, More: page.More, Closed: page.Closed,
	}
	if n := len(page.Events); n > 0 {
		a.Next = page.Events[n-1].ID
	}
	return a, nil
}

// spansOf tells which run is meant, where it ends, and when it began.
func (r *Reader) spansOf(
	ctx context.Context, partition int, q *ops.SpansRequest,
) (of PageOf, base schemas.Timestamp, err error) {
	subj := r.Namespace.HistoryOfWorkflow(partition, q.WorkflowID)
	if q.Run != "" {
		subj = r.Namespace.History(partition, q.WorkflowID, q.Run)
	}
	last, err := r.LastRecord(ctx, partition, subj, false)
	if errors.Is(err, natsconn.ErrNotFound) {
		return r.softSpansOf(ctx, partition, q)
	}
	if err != nil {
		return of, 0, err
	}
	info, err := InfoFrom(*last)
	if err != nil { // somebody has published on the subject of the run
		return of, 0, fmt.Errorf(
			"%w: message %d of %s: %w",
			ErrDamaged,
			last.Seq,
			last.Subject,
			err,
		)
	}
	return PageOf{
		Run: info.Run, Least: info.Events, Closed: info.Status.Closed(), Last: last.Seq,
	}, info.StartedAt, nil
}

// softSpansOf is spansOf for a run that the master may remember.
func (r *Reader) softSpansOf(
	ctx context.Context, partition int, q *ops.SpansRequest,
) (of PageOf, base schemas.Timestamp, err error) {
	l, err := r.Soft(ctx, partition, q.WorkflowID, q.Run)
	switch {
	case err != nil:
		return of, 0, err
	case l == nil:
		return of, 0, ErrNoRun
	}
	return PageOf{Run: l.State.Run, Closed: true}, l.State.StartedAt, nil
}
