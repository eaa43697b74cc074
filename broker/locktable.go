package broker

import (
	"context"
	"errors"

	"github.com/droverhq/drover/broker/bucket"
	"github.com/droverhq/drover/broker/partition/keyed"
	"github.com/droverhq/drover/schemas"
)

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
