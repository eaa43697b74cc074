package runs

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/schemas"
)

// place is a record of a run: where it stands in the stream, and the id of its last event.
type place struct {
	sequence uint64
	event    int64
}

// placeOf reads the place of a record off its headers.
func placeOf(m *natsconn.Stored) (p place, ok bool) {
	words := strings.Split(m.Header.Get(schemas.StatusHeader), " ")
	if len(words) != 4 {
		return p, false
	}
	id, err := strconv.ParseInt(words[1], 10, 64)
	return place{m.Seq, id}, err == nil
}

const (
	// seekAfter is from which event on a record is sought; what is before it is read.
	seekAfter = 256
	// seekNear is how many events before the one that is sought are read rather than sought.
	seekNear = 32
)

// seek finds from where the records of a run are read to come to an event: none before has it, and
// few of those after it do not. end is the last record, or any that has the event; without one the
// last record is asked for.
//
// Headers tell the last event of a record, so it takes a few reads of single records: events lie
// about evenly in the stream, and every third read halves what is left.
func (r *Reader) seek(
	ctx context.Context, partition int, subj string, event int64, end place,
) (from uint64, err error) {
	if event <= seekAfter {
		return 1, nil
	}
	stream := r.Namespace.StreamHistory(partition)
	if end.sequence == 0 {
		last, err := r.Conn.LastBySubjectDirect(ctx, stream, subj)
		if err != nil {
			return 1, unlessNotFound(subj, err)
		}
		end, _ = placeOf(last)
	}
	if end.event < event {
		return end.sequence + 1, nil
	}
	first, err := r.Conn.NextBySubjectDirect(ctx, stream, subj, 1)
	if err != nil {
		return 1, unlessNotFound(subj, err)
	}
	low, ok := placeOf(first)
	top := end.sequence // nothing of the run stands from there to the end
	for n := 0; ok && low.event < event-seekNear && low.sequence+1 < top; n++ {
		at := low.sequence + 1 + (top-low.sequence-1)/2
		if n%3 < 2 {
			share := float64(event-seekNear/2-low.event) / float64(end.event-low.event)
			guess := low.sequence + uint64(share*float64(end.sequence-low.sequence))
			at = min(max(guess, low.sequence+1), top-1)
		}
		m, err := r.Conn.NextBySubjectDirect(ctx, stream, subj, at)
		switch {
		case errors.Is(err, natsconn.ErrNotFound): // a replica that lags
			top = at
			continue
		case err != nil:
			return 0, fmt.Errorf("read %s: %w", subj, err)
		case m.Seq >= top:
			top = at
			continue
		}
		var p place
		if p, ok = placeOf(m); !ok {
			break // somebody else's
		}
		if p.event < event {
			low = p
		} else {
			end, top = p, at
		}
	}
	if low.event >= event {
		return low.sequence, nil
	}
	return low.sequence + 1, nil
}

// unlessNotFound is nil for what a replica that lags does not have.
func unlessNotFound(subj string, err error) error {
	if errors.Is(err, natsconn.ErrNotFound) {
		return nil
	}
	return fmt.Errorf("read %s: %w", subj, err)
}
