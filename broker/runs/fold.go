package runs

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/schemas"
)

// Run is a run as it stands in its history.
type Run struct {
	State *execution.State
	// Window are the events after WindowFrom, those that no decider has seen among them.
	Window     []schemas.Event
	WindowFrom int64
	// Positions are those of the inbox and of the signals, up to which messages are in the history.
	Positions [2]schemas.Position
	End
	// Unread are the signals of the run before that this one is still to begin with.
	Unread []schemas.Event

	strange *schemas.Event // the first of a type that this version does not know
}

// pageRecords is how many records one read of a history asks for, and firstRecords the first one
// for a page of it. Elsewhere than at its beginning each read costs the server as much as some
// hundred records, since it counts those that follow: there the first one asks for windowRecords.
const (
	pageRecords   = 256
	firstRecords  = 8
	windowRecords = 64
)

// fold rebuilds a run from its last snapshot on. last is its last record as the leader has it: a
// shorter answer comes from a follower that lags, and is not used.
func (r *Reader) fold(ctx context.Context, partition int, last *natsconn.Stored) (*Run, error) {
	from := uint64(1)
	if IsRecord(last) { // else the latest snapshot is not known
		newest, err := recordIn(last)
		if err != nil {
			return nil, err
		}
		if newest.First == 1 || len(newest.Snapshot) > 0 {
			l := &Run{}
			if err := l.addRecord(newest, last); err != nil {
				return nil, err
			}
			return l.understood()
		}
		if l := r.foldBack(ctx, partition, last, newest); l != nil {
			return l.understood()
		}
		from = max(newest.SnapshotSequence, 1)
	}
	return r.foldUpTo(ctx, partition, last.Subject, from, last.Seq)
}

// foldUpTo folds the records of a run's subject from one sequence to another.
func (r *Reader) foldUpTo(
	ctx context.Context, partition int, subj string, from, last uint64,
) (*Run, error) {
	l := &Run{}
	for {
		page, _, err := r.Conn.BatchGet(
			ctx,
			r.Namespace.StreamHistory(partition),
			subj,
			from,
			pageRecords,
		)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", subj, err)
		}
		for i := range page {
			if page[i].Seq > last {
				return l.understood()
			}
			if err := l.add(&page[i]); err != nil {
				return nil, err
			}
		}
		switch {
		case l.Sequence == last:
			return l.understood()
		case len(page) == 0:
			return nil, fmt.Errorf(
				"%w: read %s: record %d is missing after %d",
				ErrDamaged,
				subj,
				last,
				l.Sequence,
			)
		}
		from = page[len(page)-1].Seq + 1
	}
}

// add folds one record.
func (l *Run) add(s *natsconn.Stored) error {
	if !IsRecord(s) {
		l.Sequence = s.Seq // the next record is written after it
		return nil
	}
	record, err := recordIn(s)
	if err != nil {
		return err
	}
	return l.addRecord(record, s)
}

// recordIn decodes a record that nobody else has.
func recordIn(s *natsconn.Stored) (*schemas.Record, error) {
	r := &schemas.Record{}
	if err := Decode(s.Data, r); err != nil {
		return nil, fmt.Errorf("%w: record %d of %s: %w", damagedBy(err), s.Seq, s.Subject, err)
	}
	return r, nil
}

// addRecord folds one record, which s holds.
func (l *Run) addRecord(record *schemas.Record, s *natsconn.Stored) error {
	hash := sha256.Sum256(s.Data)
	if err := l.record(record, hash[:], s.Seq, schemas.At(s.Time)); err != nil {
		return fmt.Errorf("record %d of %s: %w", s.Seq, s.Subject, err)
	}
	return nil
}

// record folds one record: its hash, its sequence, and the time that its events count from.
func (l *Run) record(record *schemas.Record, hash []byte, seq uint64, at schemas.Timestamp) error {
	if l.Hash != nil && !bytes.Equal(record.Previous, l.Hash) {
		return fmt.Errorf("%w: it does not follow record %d", ErrDamaged, l.Sequence)
	}
	if len(record.Snapshot) > 0 && l.State == nil && record.First != 1 {
		state, err := execution.Restore(record.Snapshot)
		if err != nil {
			return fmt.Errorf("%w: its snapshot: %w", damagedBy(err), err)
		}
		state.Rebase(record.First, at)
		l.State, l.WindowFrom, l.Window = state, record.First-1, append(l.Window, record.Events...)
	} else {
		if l.State == nil {
			l.State = execution.New(record.WorkflowID, record.Run)
			l.WindowFrom = record.First - 1
		}
		if record.First != l.State.LastID+1 {
			return fmt.Errorf("%w: it begins with event %d, want %d", ErrDamaged, record.First, l.State.LastID+1)
		}
		for _, e := range record.Events {
			l.State.Apply(e)
		}
		l.State.Rebase(record.First, at)
		l.Window = append(l.Window, record.Events...)
	}
	for i := range record.Events {
		if _, ok := record.Events[i].Attributes.(*schemas.Unknown); ok && l.strange == nil {
			l.strange = &record.Events[i]
		}
	}
	l.End.Append(seq, hash, at, record.First, len(record.Events), len(record.Snapshot) > 0)
	if len(record.Snapshot) == 0 && record.SnapshotSequence > 0 {
		l.Snapshot = record.SnapshotSequence
	}
	l.Window, l.WindowFrom = Trim(l.Window, l.WindowFrom, l.State.Decision.Previous)
	l.Positions = [2]schemas.Position{record.Inbox, record.Signals}
	return nil
}

// understood is what was folded; nil if there was nothing but messages that are no records. An open
// run with events that this version does not know is refused: they may mean that it waits for
// something, or has ended. One that has closed has nothing more to decide.
func (l *Run) understood() (*Run, error) {
	if l.State == nil {
		return nil, nil
	}
	if e := l.strange; e != nil && !l.State.Closed() {
		return nil, fmt.Errorf(
			"%w: event %d of workflow %q, run %s, is of the type %q, which this version does not know",
			ErrLater,
			e.ID,
			l.State.WorkflowID,
			l.State.Run,
			e.Type(),
		)
	}
	return l, nil
}

// Trim drops the events up to previous: every decider has seen them.
func Trim(window []schemas.Event, from, previous int64) ([]schemas.Event, int64) {
	if previous <= from {
		return window, from
	}
	n := min(int(previous-from), len(window))
	return append(window[:0:0], window[n:]...), from + int64(n)
}

// FromRecord is a run by its last record, which says everything: body is the record at the
// sequence, hash its SHA-256, at its time. It is an error if the record is of another run.
func FromRecord(
	wid, run string, body, hash []byte, seq uint64, at schemas.Timestamp,
) (*Run, error) {
	var record schemas.Record
	err := Decode(body, &record)
	if err == nil && (record.WorkflowID != wid || record.Run != run) {
		err = fmt.Errorf("it is of workflow %q, run %s", record.WorkflowID, record.Run)
	}
	if err != nil {
		return nil, fmt.Errorf(
			"%w: record %d of workflow %q, run %s: %w",
			damagedBy(err),
			seq,
			wid,
			run,
			err,
		)
	}
	l := &Run{}
	if err := l.record(&record, hash, seq, at); err != nil {
		return nil, fmt.Errorf("record %d of workflow %q, run %s: %w", seq, wid, run, err)
	}
	return l.understood()
}
