package schedules

import (
	"context"
	"strings"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
)

// markerFor is how long it is to be seen in the bucket that a key was deleted.
const markerFor = 24 * time.Hour

// bucket is what a scheduler needs of the bucket of schedules.
type bucket interface {
	// States calls fn for each state that there is.
	States(ctx context.Context, fn func(key string, value []byte, rev uint64)) error
	// Follow calls fn for each schedule and each state that there is, and from then on for each
	// change, until stop is called. Present is closed once fn was called for all that there were.
	Follow(
		ctx context.Context,
		fn func(key string, value []byte, rev uint64, deleted bool),
	) (present <-chan struct{}, stop func(), err error)
	// Get reads a key; revision 0 says that there is none.
	Get(ctx context.Context, key string) (value []byte, rev uint64, err error)
	// Put writes a key if it has the revision; 0 if there is none. The error wraps
	// [natsconn.ErrWrongSequence] if it has not.
	Put(ctx context.Context, key string, value []byte, rev uint64) (uint64, error)
	// Delete deletes a key if it has the revision.
	Delete(ctx context.Context, key string, rev uint64) error
	// Time is that of the NATS server.
	Time(ctx context.Context) (time.Time, error)
}

// kv is the bucket of a NATS server.
type kv struct {
	conn *natsconn.Conn
	ns   subject.Namespace
}

func (k kv) stream() string { return "KV_" + k.ns.BucketSchedules() }
func (k kv) prefix() string { return "$KV." + k.ns.BucketSchedules() + "." }

func (k kv) States(ctx context.Context, fn func(string, []byte, uint64)) error {
	o := natsconn.ReadOptions{
		FilterSubjects: []string{k.prefix() + keyPrefix + "*" + stateSuffix}, LastPerSubject: true,
	}
	return k.conn.Scan(ctx, k.stream(), o, func(s natsconn.Stored) error {
		if !gone(s) {
			fn(strings.TrimPrefix(s.Subject, k.prefix()), s.Data, s.Seq)
		}
		return nil
	})
}

// gone tells whether a message says that its key was deleted: no value of ours is empty.
func gone(s natsconn.Stored) bool { return len(s.Data) == 0 }

func (k kv) Follow(
	ctx context.Context, fn func(string, []byte, uint64, bool),
) (<-chan struct{}, func(), error) {
	o := natsconn.ReadOptions{
		FilterSubjects: []string{
			k.prefix() + keyPrefix + "*", k.prefix() + keyPrefix + "*" + stateSuffix,
		},
		LastPerSubject: true,
	}
	r, err := k.conn.Read(ctx, k.stream(), o, func(s natsconn.Stored) {
		fn(strings.TrimPrefix(s.Subject, k.prefix()), s.Data, s.Seq, gone(s))
	})
	if err != nil {
		return nil, nil, err
	}
	return r.CaughtUp(), func() { r.Close(); <-r.Done() }, nil
}

func (k kv) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	value, rev, err := k.conn.KVLast(ctx, k.ns.BucketSchedules(), key)
	if value == nil {
		rev = 0
	}
	return value, rev, err
}

func (k kv) Put(ctx context.Context, key string, value []byte, rev uint64) (uint64, error) {
	if rev == 0 {
		return k.conn.KVCreate(ctx, k.ns.BucketSchedules(), key, value, 0)
	}
	return k.conn.KVUpdate(ctx, k.ns.BucketSchedules(), key, value, rev, 0)
}

func (k kv) Delete(ctx context.Context, key string, rev uint64) error {
	_, err := k.conn.KVExpunge(ctx, k.ns.BucketSchedules(), key, rev, markerFor)
	return err
}

// Time asks the stream that brokers and timer workers ask too.
func (k kv) Time(ctx context.Context) (time.Time, error) {
	return k.conn.StreamTime(ctx, k.ns.StreamHistory(0))
}
