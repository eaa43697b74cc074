package bucket

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/internal/sleep"
)

// leaderLook is between two looks at the leader while a watch begins.
const leaderLook = 100 * time.Millisecond

// Table is what a broker keeps of a bucket. The entries of a key are ordered by revision within an
// epoch, so it does not matter which way they come.
type Table interface {
	// Begin starts an epoch; End drops what the epoch has not met. Between the two the old entries
	// count.
	Begin()
	End()
	// Take puts what the watch brings into the table.
	Take(key string, value []byte, rev uint64, deleted bool)
	// Reached tells whether the watch has brought a revision of this epoch.
	Reached(rev uint64) bool
}

// Watch fills a table with its bucket, to the end that the leader proves, and follows the bucket
// from then on. A bucket that is made anew begins its revisions anew, which is a new epoch of the
// table.
type Watch struct {
	Conn   *natsconn.Conn // to read by
	Bucket string
	Holds  string // what is in it, for a warning
	Table  Table
	Log    logrus.FieldLogger
}

// Start fills the table. A broker does so before it serves. The caller then runs follow, which
// returns once its context ends.
func (w *Watch) Start(ctx context.Context) (follow func(context.Context), err error) {
	r, err := natsconn.Retry(ctx, w.Log, w.watch)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) { w.follow(ctx, r) }, nil
}

// watch begins to watch the bucket and returns when the watch has brought what the leader had at
// that time.
func (w *Watch) watch(ctx context.Context) (*natsconn.Reader, error) {
	w.Table.Begin()
	r, err := w.Conn.KVWatch(ctx, w.Bucket, w.Table.Take)
	if err != nil {
		return nil, fmt.Errorf("bucket %s: %w", w.Bucket, err)
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
		last, err := Last(ctx, w.Conn, w.Bucket, ">")
		if err == nil && !w.Table.Reached(last.Seq) && ctx.Err() == nil && r.Err() == nil {
			continue
		}
		if err == nil || errors.Is(err, natsconn.ErrNotFound) {
			err = errors.Join(ctx.Err(), r.Err())
		}
		if err != nil {
			r.Close()
			return nil, fmt.Errorf("bucket %s: %w", w.Bucket, err)
		}
		w.Table.End()
		return r, nil
	}
}

// Last reads the last message of a key, or with ">" of the bucket, from the leader; a deletion is
// one too. The bucket is a stream, see package natsconn.
func Last(ctx context.Context, conn *natsconn.Conn, bucket, key string) (*natsconn.Stored, error) {
	return conn.LastBySubject(ctx, "KV_"+bucket, "$KV."+bucket+"."+key)
}

// follow watches again when the bucket was made anew.
func (w *Watch) follow(ctx context.Context, r *natsconn.Reader) {
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
			w.Log.WithError(err).Warnf("the %s cannot be followed now; trying again", w.Holds)
		}
	}
}
