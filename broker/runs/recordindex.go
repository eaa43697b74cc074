package runs

import (
	"context"
	"fmt"
	"iter"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/schemas"
)

// RecordIndex is where the records of a run stand in the history: from the last one that says
// everything, the first or one with a snapshot, up to the last. It is empty if that is not known.
//
// Asked for the records of a subject, the server finds the first by its index, and looks at each
// message after it for the next. After a backlog of 50,000 starts that were 12,500 messages between
// the two records of each run, a third of the machine's CPU. By its sequence a record is found at
// once.
type RecordIndex []uint64

// MostRecords bounds the memory. Who has more records is read by its subject until the next
// snapshot.
const MostRecords = 16

// FarApart is how many messages between two records cost the server more than a question of their
// own does. Tests read everything so.
var FarApart uint64 = 128

// With is the record index with another record; whole says that it says everything.
func (t RecordIndex) With(seq uint64, full bool) RecordIndex {
	switch {
	case full:
		return append(t[:0], seq)
	case len(t) == 0 || len(t) == MostRecords:
		return nil
	}
	return append(t, seq)
}

// LeadsTo tells whether the record index is known up to a record.
func (t RecordIndex) LeadsTo(seq uint64) bool { return len(t) > 0 && t[len(t)-1] == seq }

// Far tells whether the records are better read one by one.
func (t RecordIndex) Far() bool {
	return len(t) > 1 && t[len(t)-1]-t[0] > uint64(len(t)-1)*FarApart
}

// messageAt reads what stands at a sequence of the history, from any replica, if that is of the
// subject.
func (r *Reader) messageAt(
	ctx context.Context, partition int, subj string, seq uint64,
) (*natsconn.Stored, error) {
	s, err := r.Conn.GetSeqDirect(ctx, r.Namespace.StreamHistory(partition), seq)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", subj, err)
	}
	if s.Subject != subj {
		return nil, fmt.Errorf("%w: read %s: message %d is of %s", ErrDamaged, subj, seq, s.Subject)
	}
	return s, nil
}

// foldRecordIndex folds the records of a run's subject that stand where the record index says.
func (r *Reader) foldRecordIndex(
	ctx context.Context, partition int, subj string, t RecordIndex,
) (*Run, error) {
	l := &Run{}
	for _, seq := range t {
		s, err := r.messageAt(ctx, partition, subj, seq)
		if err != nil {
			return nil, err
		}
		if err := l.add(s); err != nil {
			return nil, err
		}
	}
	return l.understood()
}

// foldBack folds the records of a run up to the last one, which is newest, by where each says that
// the one before it stands; nil if that is not to be done: they are many, or near to each other, or
// one says nothing, or somebody has written between them.
func (r *Reader) foldBack(
	ctx context.Context, partition int, last *natsconn.Stored, newest *schemas.Record,
) *Run {
	if s := newest.SnapshotSequence; s != 0 && last.Seq-s <= FarApart {
		return nil
	}
	var back []*natsconn.Stored
	var records []*schemas.Record
	full := false
	for s, record := range r.Backwards(ctx, partition, last, newest) {
		back, records = append(back, s), append(records, record)
		if full = record.First == 1 || len(record.Snapshot) > 0; full {
			break
		}
	}
	if !full {
		return nil
	}
	l := &Run{}
	for i := len(back) - 1; i >= 0; i-- {
		if l.addRecord(records[i], back[i]) != nil {
			return nil
		}
	}
	return l
}

// Backwards are the records of a run from the last one, which is newest, by where each says that
// the one before it stands. There are at most MostRecords, and fewer if one says nothing, or
// somebody has written between them.
func (r *Reader) Backwards(
	ctx context.Context, partition int, last *natsconn.Stored, newest *schemas.Record,
) iter.Seq2[*natsconn.Stored, *schemas.Record] {
	return func(yield func(*natsconn.Stored, *schemas.Record) bool) {
		s, record := last, newest
		for n := 1; yield(s, record) && n < MostRecords; n++ {
			before := natsconn.ExpectedLastSubjectSeq(s.Header)
			if before == 0 || before >= s.Seq {
				return
			}
			var err error
			if s, err = r.messageAt(ctx, partition, last.Subject, before); err != nil ||
				!IsRecord(s) {
				return
			}
			if record, err = recordIn(s); err != nil {
				return
			}
		}
	}
}

// pageAlong is [Reader.Events] for a run whose records are all on a record index. It tells whether
// that could be read: what a replica that lags does not have, or what stands elsewhere by now, is
// read by the subject.
func (r *Reader) pageAlong(
	ctx context.Context, partition int, subj string, t RecordIndex, p *eventPage,
) (ok bool) {
	begin := *p
	for _, seq := range t {
		if seq < p.from {
			continue
		}
		s, err := r.messageAt(ctx, partition, subj, seq)
		if err != nil {
			return false
		}
		full, err := p.take(s)
		if len(p.events) > 0 && p.events[0].ID != p.after+1 { // something is missing before it
			*p = begin
			return false
		}
		if full || err != nil {
			return err == nil
		}
	}
	return true
}
