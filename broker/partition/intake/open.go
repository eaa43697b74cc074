package intake

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/schemas"
)

// Streams is what Open reads.
type Streams interface {
	// StreamState returns the first and the last sequence of a stream.
	StreamState(ctx context.Context, stream string) (first, last uint64, err error)
	// GetSeq returns a message; the error wraps [natsconn.ErrNotFound] if it is not there.
	GetSeq(ctx context.Context, stream string, seq uint64) (*natsconn.Stored, error)
}

// Place is what is known of a log before it is opened.
type Place struct {
	Number     int
	Stream     string
	Filter     string
	Checkpoint schemas.Position
	// Witness is the highest position that is known to be consumed. If the message there is not the
	// one that was consumed, the stream has lost a tail and a new incarnation begins.
	Witness schemas.Position
}

// Open decides where to read a log from. lost is the number of the incarnation that begins since
// the stream has lost messages; 0 if it has lost none.
func Open(ctx context.Context, streams Streams, at Place) (l *Log, lost uint32, err error) {
	l = &Log{
		Number: at.Number, Stream: at.Stream, Filter: at.Filter,
		incarnation: at.Witness.Incarnation, From: at.Checkpoint.Sequence + 1, tidied: time.Now(),
	}
	l.Done.StartAt(at.Checkpoint)
	first, last, err := streams.StreamState(ctx, at.Stream)
	if err != nil {
		return nil, 0, fmt.Errorf("stream %s: %w", at.Stream, err)
	}
	l.End = last
	tail, err := lostTail(ctx, streams, &at, first, last)
	if err != nil {
		return nil, 0, fmt.Errorf("stream %s: %w", at.Stream, err)
	}
	switch {
	case tail:
		l.incarnation, l.since, l.From = at.Witness.Incarnation+1, at.Witness.Time, 1
		lost = l.incarnation
	case at.Witness.Incarnation != at.Checkpoint.Incarnation:
		// Whoever began it has left no checkpoint of it: the number of ours says nothing.
		l.since, l.From = at.Checkpoint.Time, 1
	}
	l.read, l.at = at.Checkpoint, l.From-1
	return l, lost, nil
}

func lostTail(ctx context.Context, s Streams, at *Place, first, last uint64) (bool, error) {
	if at.Witness.Sequence == 0 {
		return false, nil
	}
	if last < at.Witness.Sequence {
		return true, nil
	}
	if at.Witness.Sequence < first {
		return false, nil // purged since; the purge line is below every checkpoint's witness
	}
	m, err := s.GetSeq(ctx, at.Stream, at.Witness.Sequence)
	switch {
	case errors.Is(err, natsconn.ErrNotFound):
		// Purged in the middle: only the signals stream is purged by subject, and never at a
		// witness.
		return at.Number == Inbox, nil
	case err != nil:
		return false, err
	}
	return schemas.At(m.Time) != at.Witness.Time, nil
}
