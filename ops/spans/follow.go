package spans

import (
	"cmp"
	"context"
	"errors"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
)

// ErrShorter says that a stream has fewer records than were read of it.
var ErrShorter = errors.New("the stream has lost its end; it is read anew")

// Follower follows the histories of a namespace. Partitions may be followed by several goroutines
// at once, each of them by one.
type Follower struct {
	Conn      *natsconn.Conn
	Namespace subject.Namespace
	Queue     *Queue
	// Next is, of each partition, the first sequence that was neither read nor heard of.
	Next []uint64
	// Told takes a change that was told of, Read a record that was read, with its headers alone,
	// whatever it is. An error ends the call, and the change or the record comes again.
	Told func(ctx context.Context, p int, c *broker.Change) error
	Read func(ctx context.Context, p int, m natsconn.Stored) error
	// BytesPerSecond bounds what is read of a partition. Defaults to
	// [natsconn.LeisurelyHeaders].
	BytesPerSecond int64
}

// Forget begins a partition anew, with nothing read or heard.
func (f *Follower) Forget(p int) {
	f.Next[p] = 1
	f.Queue.Forget(p)
}

// Hear goes by what was told of a partition, up to the first record that has to be read, which may
// be one that is not written yet; before is then where the next span begins, 0 if there is none.
// After an error the rest of the span has to be read.
func (f *Follower) Hear(ctx context.Context, p int) (before uint64, err error) {
	for {
		s, whole := f.Queue.Take(p, f.Next[p])
		if !whole {
			return s.From, nil
		}
		for i := range s.Changed {
			c := &s.Changed[i]
			if c.Sequence < f.Next[p] {
				continue
			}
			if err := f.Told(ctx, p, c); err != nil {
				return 0, err
			}
			f.Next[p] = c.Sequence + 1
		}
		f.Next[p] = s.To + 1
	}
}

// HearOn goes by what was told of a partition, and reads what is missing before it if those are at
// most so many records: a fence, or some records of the owner before.
func (f *Follower) HearOn(ctx context.Context, p int, most uint64) error {
	before, err := f.Hear(ctx, p)
	if err != nil || before == 0 || before-f.Next[p] > most {
		return err
	}
	return f.catch(ctx, p, before-1)
}

// Follow goes on to the end that the stream of a partition has at the call, or further. The error
// is [ErrShorter] if that end was passed already.
func (f *Follower) Follow(ctx context.Context, p int) error {
	last, err := f.Conn.StreamLastSeq(ctx, f.Namespace.StreamHistory(p))
	switch {
	case err != nil:
		return err
	case last+1 < f.Next[p]:
		return ErrShorter
	}
	return f.catch(ctx, p, last)
}

// catch goes by what was told of a partition up to a record that is there, and further if more was
// told, and reads the rest.
func (f *Follower) catch(ctx context.Context, p int, last uint64) error {
	for {
		before, err := f.Hear(ctx, p)
		if err != nil || f.Next[p] > last {
			return err
		}
		end := last
		if before > 0 {
			end = min(end, before-1)
		}
		if err := f.read(ctx, p, end); err != nil {
			return err
		}
	}
}

// read reads the records of a partition up to one that is there.
func (f *Follower) read(ctx context.Context, p int, end uint64) error {
	o := natsconn.ReadOptions{
		StartSeq: f.Next[p], EndSeq: end, HeadersOnly: true,
		BytesPerSecond: cmp.Or(f.BytesPerSecond, natsconn.LeisurelyHeaders),
	}
	err := f.Conn.Scan(ctx, f.Namespace.StreamHistory(p), o, func(m natsconn.Stored) error {
		if err := f.Read(ctx, p, m); err != nil {
			return err
		}
		f.Next[p] = m.Seq + 1
		return nil
	})
	if err != nil {
		return err
	}
	f.Next[p] = max(f.Next[p], end+1) // the last of them may be gone
	return nil
}
