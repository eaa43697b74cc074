package topology

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
	"github.com/nats-io/nats.go/jetstream"
)

// Remake says how streams and buckets of a namespace that are gone are made anew.
func Remake(ns subject.Namespace) string {
	return fmt.Sprintf(
		"\"drover namespace create %s\" makes anew what is missing, and so does the next start of a server",
		ns)
}

// aboveFences has the buckets whose revisions are fences begin above those that were given, where
// they are made anew over histories which are there.
//
// The number of a claim is its revision in the bucket, and a fence is written above a lower number
// only (P-2): in a bucket that began at 1 again nobody could fence a partition before the bucket
// had seen as many writes as the one that was lost, which takes days. A claim of the lost bucket
// that was not used for a fence yet may have a number above that. It fences the new owner off once
// at most, which then takes a higher number.
//
// The fences of a lock come from the sequence of the bucket as well (locks.Fresh), and systems
// outside refuse what is below one that they have seen. Which were given stands in LockAcquired
// somewhere in the histories, too many to read. But what changes a lock is in the history too, so
// their lengths tell how long the bucket can have been at most.
func (w *work) aboveFences(
	ctx context.Context, conn *natsconn.Conn, ns *Namespace, buckets []wanted,
) error {
	claims, err := w.absent(ctx, buckets, ns.Name.BucketClaims())
	if err != nil {
		return err
	}
	locks, err := w.absent(ctx, buckets, ns.Name.BucketLocks())
	if err != nil || claims == nil && locks == nil {
		return err
	}
	belongs, err := w.belongings(ctx, ns.Name)
	if err != nil {
		return err
	}
	there := make(map[string]jetstream.StreamState, len(belongs))
	for _, s := range belongs {
		there[s.Config.Name] = s.State
	}
	var records, highest uint64
	for p := range ns.Partitions {
		history := there[ns.Name.StreamHistory(p)]
		records += history.LastSeq
		if claims == nil || history.Msgs == 0 {
			continue
		}
		number, err := w.fenced(ctx, conn, ns.Name, p)
		if err != nil {
			return err
		}
		highest = max(highest, number)
	}
	if claims != nil && highest > 0 {
		claims.FirstSeq = highest + 1
	}
	if locks != nil && records > 0 {
		locks.FirstSeq = records*lockChanges + 1
	}
	return nil
}

// lockChanges is more than the changes of locks that there are for each record of the histories,
// over the life of a namespace. It is one change for every two records where runs ask for one lock
// at a time, and some 25 where each asks for 200 at once.
const lockChanges = 64

// absent is the bucket of a name if it has yet to be made.
func (w *work) absent(
	ctx context.Context, buckets []wanted, bucket string,
) (*jetstream.StreamConfig, error) {
	i := slices.IndexFunc(buckets, func(b wanted) bool { return b.Name == bucketPrefix+bucket })
	_, err := w.info(ctx, buckets[i].Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return &buckets[i].StreamConfig, nil
	}
	return nil, err
}

// fenced is the number of the claim that has fenced a partition last, 0 for none.
func (w *work) fenced(
	ctx context.Context, conn *natsconn.Conn, ns subject.Namespace, partition int,
) (uint64, error) {
	var last *natsconn.Stored
	err := w.retry(ctx, func(ctx context.Context) (err error) {
		last, err = conn.LastBySubject(ctx, ns.StreamHistory(partition), ns.Fence(partition))
		return err
	})
	if errors.Is(err, natsconn.ErrNotFound) {
		return 0, nil
	}
	var f schemas.Fence
	if err == nil {
		err = schemas.Unmarshal(last.Data, &f)
	}
	if err != nil {
		return 0, fmt.Errorf("read the fence of partition %d, above which the claims begin: %w",
			partition, err)
	}
	return f.Claim, nil
}
