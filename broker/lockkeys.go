package broker

import (
	"context"
	"errors"
	"time"

	"github.com/droverhq/drover/broker/bucket"
	"github.com/droverhq/drover/broker/partition/keyed"
	"github.com/droverhq/drover/schemas"
)

// readLock reads a key from its leader.
func (b *env) readLock(ctx context.Context, key string) (got keyed.Lock, err error) {
	bucket := b.ns.BucketLocks()
	for range 2 {
		var value []byte
		if value, got.Revision, err = b.reads.KVLast(ctx, bucket, key); err != nil {
			return got, err
		}
		if value != nil {
			got.Size = len(value)
			got.Record, err = schemas.ParseLock(key, value)
			b.locks.Put(key, got)
			return got, err
		}
		if got.Last != 0 { // absent, and it was so when the bucket ended at last
			b.locks.Put(key, keyed.Lock{Revision: got.Last})
			return got, nil
		}
		if _, got.Last, err = b.reads.StreamState(ctx, "KV_"+bucket); err != nil {
			return got, err
		}
		if got.Last == 0 || b.locks.Get(key) == nil {
			return got, nil
		}
	}
	return got, nil
}

// keyMarkerTTL is how long the marker of a deleted key stays. Other owners must have seen it by
// then. A write that is on its way for so long would not see that the key was there meanwhile.
const keyMarkerTTL = time.Hour

// writeKey stores a key that is still at a revision, or deletes it if body is nil.
func (b *env) writeKey(
	ctx context.Context, bucket, key string, body []byte, rev uint64,
) (uint64, error) {
	if body == nil {
		return b.conn.KVExpunge(ctx, bucket, key, rev, keyMarkerTTL)
	}
	return b.conn.KVUpdate(ctx, bucket, key, body, rev, 0)
}

// beginLocks reads the bucket of locks to its end and follows it until the broker ends.
func (b *env) beginLocks(ctx context.Context) (*keyed.Table, error) {
	t := keyed.NewTable(b.partitionOf, func(key string, err error) {
		b.o.Logger.WithError(err).WithField("key", key).Warn(noLock(err))
	})
	w := &bucket.Watch{
		Conn: b.reads, Bucket: b.ns.BucketLocks(), Holds: "locks", Table: t, Log: b.o.Logger,
	}
	follow, err := w.Start(ctx)
	if err != nil {
		return nil, err
	}
	b.wg.Go(func() { follow(b.ctx) })
	return t, nil
}

// noLock says what to do about a key that holds no lock. One of a later version may be held:
// whoever deletes it lets others in.
func noLock(err error) string {
	if errors.Is(err, schemas.ErrVersion) {
		return "a key of the bucket of locks is of another version; those who want the lock " +
			"wait until this server is updated"
	}
	return "a key of the bucket of locks holds no lock; delete it, and those who want it enter anew"
}
