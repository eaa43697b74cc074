package env

import (
	"context"
	"errors"
	"time"

	"github.com/droverhq/drover/broker/bucket"
	"github.com/droverhq/drover/broker/partition/keyed"
	"github.com/droverhq/drover/schemas"
)

// ReadLock reads a key from its leader.
func (e *Env) ReadLock(ctx context.Context, key string) (got keyed.Lock, err error) {
	bucket := e.NS.BucketLocks()
	for range 2 {
		var value []byte
		if value, got.Revision, err = e.Reads.KVLast(ctx, bucket, key); err != nil {
			return got, err
		}
		if value != nil {
			got.Size = len(value)
			got.Record, err = schemas.ParseLock(key, value)
			e.Locks.Put(key, got)
			return got, err
		}
		if got.Last != 0 { // absent, and it was so when the bucket ended at last
			e.Locks.Put(key, keyed.Lock{Revision: got.Last})
			return got, nil
		}
		if _, got.Last, err = e.Reads.StreamState(ctx, "KV_"+bucket); err != nil {
			return got, err
		}
		if got.Last == 0 || e.Locks.Get(key) == nil {
			return got, nil
		}
	}
	return got, nil
}

// keyMarkerTTL is how long the marker of a deleted key stays. Other owners must have seen it by
// then. A write that is on its way for so long would not see that the key was there meanwhile.
const keyMarkerTTL = time.Hour

// WriteKey stores a key that is still at a revision, or deletes it if body is nil.
func (e *Env) WriteKey(
	ctx context.Context, bucket, key string, body []byte, rev uint64,
) (uint64, error) {
	if body == nil {
		return e.Conn.KVExpunge(ctx, bucket, key, rev, keyMarkerTTL)
	}
	return e.Conn.KVUpdate(ctx, bucket, key, body, rev, 0)
}

// BeginLocks reads the bucket of locks to its end and follows it until the broker ends.
func (e *Env) BeginLocks(ctx context.Context) (*keyed.Table, error) {
	t := keyed.NewTable(e.PartitionOf, func(key string, err error) {
		e.Options.Logger.WithError(err).WithField("key", key).Warn(NoLock(err))
	})
	w := &bucket.Watch{
		Conn: e.Reads, Bucket: e.NS.BucketLocks(), Holds: "locks", Table: t, Log: e.Options.Logger,
	}
	follow, err := w.Start(ctx)
	if err != nil {
		return nil, err
	}
	e.Work.Go(func() { follow(e.Background) })
	return t, nil
}

// NoLock says what to do about a key that holds no lock. One of a later version may be held:
// whoever deletes it lets others in.
func NoLock(err error) string {
	if errors.Is(err, schemas.ErrVersion) {
		return "a key of the bucket of locks is of another version; those who want the lock " +
			"wait until this server is updated"
	}
	return "a key of the bucket of locks holds no lock; delete it, and those who want it enter anew"
}
