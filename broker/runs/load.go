package runs

import (
	"context"
	"errors"
	"fmt"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
)

// LastRecord reads the last record of a subject. Whether there is none is decided by the leader of
// the stream, since a follower may not know of a record yet (P-2); alone says that the stream has
// no follower, and then a direct get asks the leader for less than half the price.
func (r *Reader) LastRecord(
	ctx context.Context, partition int, subj string, alone bool,
) (*natsconn.Stored, error) {
	if alone {
		return r.Conn.LastBySubjectDirect(ctx, r.Namespace.StreamHistory(partition), subj)
	}
	return r.Conn.LastBySubject(ctx, r.Namespace.StreamHistory(partition), subj)
}

// Newest is [Reader.LastRecord], and what it says; nil if there is none, or it is no record.
func (r *Reader) Newest(
	ctx context.Context, partition int, subj string, alone bool,
) (*natsconn.Stored, *schemas.Record, error) {
	last, err := r.LastRecord(ctx, partition, subj, alone)
	switch {
	case errors.Is(err, natsconn.ErrNotFound):
		return nil, nil, nil
	case err != nil || !IsRecord(last):
		return nil, nil, err
	}
	record, err := recordIn(last)
	return last, record, err
}

// Latest reads the latest run of a workflow id; nil if it never had one. alone is as for
// [Reader.LastRecord].
func (r *Reader) Latest(ctx context.Context, partition int, wid string, alone bool) (*Run, error) {
	last, err := r.LastRecord(ctx, partition, r.Namespace.HistoryOfWorkflow(partition, wid), alone)
	switch {
	case errors.Is(err, natsconn.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	case !IsRecord(last):
		return r.past(ctx, partition, wid, last)
	}
	return r.fold(ctx, partition, last)
}

// Load reads one run of a workflow id; nil if there is none. alone is as for [Reader.LastRecord].
func (r *Reader) Load(
	ctx context.Context, partition int, wid, id string, alone bool,
) (*Run, error) {
	last, err := r.LastRecord(ctx, partition, r.Namespace.History(partition, wid, id), alone)
	switch {
	case errors.Is(err, natsconn.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return r.fold(ctx, partition, last)
}

// LoadKnown reads a run of which it is known where its last record stands, from any replica. An
// answer that does not reach that record is refused (P-2).
func (r *Reader) LoadKnown(
	ctx context.Context, partition int, wid, id string, last uint64,
) (*Run, error) {
	s, err := r.messageAt(ctx, partition, r.Namespace.History(partition, wid, id), last)
	switch {
	case errors.Is(err, natsconn.ErrNotFound):
		return nil, fmt.Errorf("%w: record %d of workflow %q is missing", ErrDamaged, last, wid)
	case err != nil:
		return nil, err
	}
	return r.fold(ctx, partition, s)
}

// past reads the latest run of a workflow id where the latest message is no record.
func (r *Reader) past(
	ctx context.Context, partition int, wid string, foreign *natsconn.Stored,
) (*Run, error) {
	latest := ""
	for from, more := uint64(1), true; more; {
		var page []natsconn.Stored
		var err error
		if page, more, err = r.Conn.BatchGet(ctx, r.Namespace.StreamHistory(partition),
			r.Namespace.HistoryOfWorkflow(partition, wid), from, pageRecords); err != nil {
			return nil, fmt.Errorf("read after a message that is no record: %w", err)
		}
		for i := range page {
			from = page[i].Seq + 1
			if IsRecord(&page[i]) {
				latest = page[i].Subject
			}
		}
		more = more && len(page) > 0
		if !more && from <= foreign.Seq {
			return nil, fmt.Errorf(
				"%w: a replica shows workflow %q up to record %d only, and its leader %d",
				natsconn.ErrTimeout,
				wid,
				from-1,
				foreign.Seq,
			)
		}
	}
	r.Log.WithField("workflow", wid).
		Warnf("message %d on %s is no record: somebody has published it; it is passed over",
			foreign.Seq, foreign.Subject)
	if latest == "" {
		return nil, nil
	}
	_, _, run, err := subject.ParseHistory(latest)
	if err != nil {
		return nil, err
	}
	return r.Load(ctx, partition, wid, run, false)
}

// Unread reads the signals that a run is still to have from the one that it continues: its owner
// has died between the two records.
func (r *Reader) Unread(
	ctx context.Context, partition int, s *execution.State, alone bool,
) ([]schemas.Event, error) {
	wid, before := s.WorkflowID, s.Start.ContinuedExecutionRun
	l, err := r.Load(ctx, partition, wid, before, alone)
	if err != nil {
		return nil, err
	}
	var unread []schemas.Event
	if l != nil {
		last := l.State.LastID
		events, _, err := r.Events(
			ctx,
			partition,
			wid,
			before,
			Span{After: l.State.Decision.Previous, UpTo: last, Least: last},
		)
		if err != nil {
			return nil, err
		}
		unread = l.State.Unread(events)
	}
	if len(unread) != s.Start.UnreadSignals {
		return nil, fmt.Errorf(
			"%w: run %s of workflow %q is to begin with %d signals of run %s, which has %d",
			ErrDamaged,
			s.Run,
			wid,
			s.Start.UnreadSignals,
			before,
			len(unread),
		)
	}
	return unread[s.Copied:], nil
}
