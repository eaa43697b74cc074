package runs

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/schemas"
)

// Asked for the records of a subject, the server finds the first by its index, and looks at each
// message after it for the next. After a backlog of 50,000 starts that were 12,500 messages between
// the two records of each run, a third of the machine's CPU. By its sequence a record is found at
// once, and each record says where the one before it stands.

// MostRecords bounds the records of a run that are read one by one. Who has more is read by its
// subject.
const MostRecords = 16

// FarApart is how many messages lie at least between records that are read one by one, where that
// is known: they cost the server more than a question of its own does. Tests read everything so.
var FarApart uint64 = 128

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

// placed is a record and the message that holds it.
type placed struct {
	*natsconn.Stored
	record *schemas.Record
}

// since are the records of a run from the latest one that begins suits up to the last one, which is
// newest; nil if reading backwards does not lead there.
func (r *Reader) since(
	ctx context.Context, partition int, last *natsconn.Stored, newest *schemas.Record,
	begins func(*schemas.Record) bool,
) (all []placed) {
	for s, record := range r.Backwards(ctx, partition, last, newest) {
		all = append(all, placed{s, record})
		if begins(record) {
			slices.Reverse(all)
			return all
		}
	}
	return nil
}

// foldBack folds the records of a run up to the last one, which is newest; nil if that is not to be
// done: they are many, or near to each other, or do not follow each other.
func (r *Reader) foldBack(
	ctx context.Context, partition int, last *natsconn.Stored, newest *schemas.Record,
) *Run {
	if s := newest.SnapshotSequence; s != 0 && last.Seq-s <= FarApart {
		return nil
	}
	all := r.since(ctx, partition, last, newest, func(record *schemas.Record) bool {
		return record.First == 1 || len(record.Snapshot) > 0
	})
	if all == nil {
		return nil
	}
	l := &Run{}
	for _, p := range all {
		if l.addRecord(p.record, p.Stored) != nil {
			return nil
		}
	}
	return l
}

// pageBack is [Reader.Events] for a run whose last record stands at a sequence. It tells whether
// the page could be read: what a replica that lags does not have, and what has many records, is
// read by the subject.
func (r *Reader) pageBack(
	ctx context.Context, partition int, subj string, seq uint64, g *eventPage,
) (ok bool) {
	last, err := r.messageAt(ctx, partition, subj, seq)
	if err != nil || !IsRecord(last) {
		return false
	}
	newest, err := recordIn(last)
	if err != nil {
		return false
	}
	all := r.since(ctx, partition, last, newest,
		func(record *schemas.Record) bool { return record.First <= g.after+1 })
	for _, p := range all {
		if full, err := g.take(p.Stored); full || err != nil {
			return err == nil
		}
	}
	return all != nil
}
