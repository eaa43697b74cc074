package broker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/internal/sleep"
)

// leaderLook is between two looks at the leader while a watch begins.
const leaderLook = 100 * time.Millisecond

// bucketTable is what a broker keeps of a bucket: [typeTable], [keyed.Table]. The entries of a key are ordered by revision within an epoch, so
// it does not matter which way they come.
type bucketTable interface {
	// Begin starts an epoch; End drops what the epoch has not met. Between the two the old entries count.
	Begin()
	End()
	// Take puts what the watch brings into the table.
	Take(key string, value []byte, rev uint64, deleted bool)
	// Reached tells whether the watch has brought a revision of this epoch.
	Reached(rev uint64) bool
}

// bucketWatch fills a table with its bucket, to the end that the leader proves, and follows the bucket from then on. A bucket that is made
// anew begins its revisions anew, which is a new epoch of the table.
type bucketWatch struct {
	b      *Broker
	bucket string
	holds  string // what is in it, for a warning
	table  bucketTable
}

// start fills the table and follows the bucket until the broker ends. A broker does so before it serves.
func (w *bucketWatch) start(ctx context.Context) error {
	r, err := retry(ctx, w.b.o.Logger, w.watch)
	if err != nil {
		return err
	}
	w.b.wg.Go(func() { w.follow(w.b.ctx, r) })
	return nil
}

// watch begins to watch the bucket and returns when the watch has brought what the leader had at that time.
func (w *bucketWatch) watch(ctx context.Context) (*natsconn.Reader, error) {
	w.table.Begin()
	r, err := w.b.reads.KVWatch(ctx, w.bucket, w.table.Take)
	if err != nil {
		return nil, fmt.Errorf("bucket %s: %w", w.bucket, err)
	}
	caughtUp := r.CaughtUp() // a replica's word: a hint when to ask the leader
	for {
		select {
		case <-caughtUp:
			caughtUp = nil
		case <-time.After(leaderLook):
		case <-ctx.Done():
		case <-r.Done():
		}
		// The message may be replaced before it comes; then one with a higher sequence comes.
		last, err := w.b.lastOf(ctx, w.bucket, ">")
		if err == nil && !w.table.Reached(last.Seq) && ctx.Err() == nil && r.Err() == nil {
			continue
		}
		if err == nil || errors.Is(err, natsconn.ErrNotFound) {
			err = errors.Join(ctx.Err(), r.Err())
		}
		if err != nil {
			r.Close()
			return nil, fmt.Errorf("bucket %s: %w", w.bucket, err)
		}
		w.table.End()
		return r, nil
	}
}

// lastOf reads the last message of a key, or with ">" of the bucket, from the leader; a deletion is one too. The bucket is a stream, see
// broker/natsconn.
func (b *Broker) lastOf(ctx context.Context, bucket, key string) (*natsconn.Stored, error) {
	return b.reads.LastBySubject(ctx, "KV_"+bucket, "$KV."+bucket+"."+key)
}

// follow watches again when the bucket was made anew.
func (w *bucketWatch) follow(ctx context.Context, r *natsconn.Reader) {
	for {
		select {
		case <-ctx.Done():
			r.Close()
			<-r.Done()
			return
		case <-r.Done():
		}
		var err error
		for r, err = w.watch(ctx); err != nil; r, err = w.watch(ctx) {
			if sleep.For(ctx, time.Second) != nil {
				return
			}
			w.b.o.Logger.WithError(err).Warnf("the %s cannot be followed now; trying again", w.holds)
		}
	}
}
