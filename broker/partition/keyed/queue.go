package keyed

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/schemas"
)

const (
	// conflictPause is the least pause after a write that came too late.
	conflictPause = 5 * time.Millisecond
	// failurePause is the pause after the first try that the server did not carry out.
	failurePause = 200 * time.Millisecond
	// MendPause is how often a key that holds no record is read again. It is also the longest
	// pause.
	MendPause = 5 * time.Second
)

// Host is the owner that a queue works for.
type Host interface {
	// CanWrite tells whether the owner's claim allows a write (P-16).
	CanWrite() bool
	// Work runs work on a goroutine of its own, and then done on the owner's loop.
	Work(work func(context.Context) error, done func(error))
	// After runs f on the owner's loop when d has passed, unless it is canceled.
	After(d time.Duration, f func()) (cancel func())
	// Fenced fails if a later owner has fenced the partition.
	Fenced(ctx context.Context) error
	// Ended tells whether err says that a later owner has fenced the partition; then it ends this
	// owner.
	Ended(key string, err error) bool
	Warn(key string, err error, text string)
}

// Entry is a key as it was read from its leader or written.
type Entry[R any] struct {
	Record   *R     // nil: absent
	Revision uint64 // of the key's last message; a deletion is one too
	Last     uint64 // if absent, the last revision of the bucket, where it matters
	Size     int    // of the stored record, bytes
}

// Bucket is what the keys mean. An Op is what a run wants of a key, an R the record of one.
type Bucket[Op, R any] interface {
	// Name is a word for one key: "lock".
	Name() string
	// Read reads a key from its leader, and whatever else the ops need.
	Read(ctx context.Context, key string, ops []Op) (Entry[R], error)
	// Advice says what to do about a key that holds no record, "" about any other error of Read.
	Advice(err error) string
	// Apply carries out the ops, in their order, on a record of which it may change nothing that
	// others see. It returns the record to write, and whether there is anything to write.
	Apply(key string, ops []Op, got Entry[R]) (next *R, changed bool)
	// Empty tells whether a record is worth no key.
	Empty(r *R) bool
	// Write stores a key that is still at a revision, or deletes it if body is nil. It returns the
	// new revision.
	Write(ctx context.Context, key string, body []byte, revision uint64) (uint64, error)
	// Done tells the runs what became of their ops. The entry is the key as it stands now; stored
	// says that this try has written it. It returns the ops that are to be tried again after a
	// pause.
	Done(key string, ops []Op, e Entry[R], stored bool) (again []Op)
	// Pending tells whether there is something to apply although no run waits.
	Pending(key string) bool
}

// Queue holds the keys that one owner is changing.
type Queue[Op, R any] struct {
	host   Host
	bucket Bucket[Op, R]
	keys   map[string]*change[Op]
}

// change is a key that is being changed.
type change[Op any] struct {
	key     string
	queue   []Op
	at      []Op // what is being applied
	careful bool // the next try must find the fence unchanged
	tries   int  // that failed in a row
}

// New returns an empty queue.
func New[Op, R any](host Host, bucket Bucket[Op, R]) *Queue[Op, R] {
	return &Queue[Op, R]{host: host, bucket: bucket, keys: make(map[string]*change[Op])}
}

// Add queues an op. Careful says that nobody has just decided it: a former owner may be at work.
func (q *Queue[Op, R]) Add(key string, op Op, careful bool) {
	c, idle := q.of(key)
	c.queue, c.careful = append(c.queue, op), c.careful || careful
	if idle {
		q.try(c)
	}
}

// Look makes a try because of what the bucket has pending.
func (q *Queue[Op, R]) Look(key string) {
	if c, idle := q.of(key); idle {
		q.try(c)
	}
}

// Busy tells whether a key is being changed.
func (q *Queue[Op, R]) Busy() bool { return len(q.keys) > 0 }

// All returns the ops that are not done, with their keys.
func (q *Queue[Op, R]) All() iter.Seq2[string, Op] {
	return func(yield func(string, Op) bool) {
		for key, c := range q.keys {
			for _, ops := range [][]Op{c.at, c.queue} {
				for _, op := range ops {
					if !yield(key, op) {
						return
					}
				}
			}
		}
	}
}

// of returns the change of a key, and whether it has just begun.
func (q *Queue[Op, R]) of(key string) (c *change[Op], idle bool) {
	if c = q.keys[key]; c != nil {
		return c, false
	}
	c = &change[Op]{key: key}
	q.keys[key] = c
	return c, true
}

// try reads the key, and the fence if that is called for.
func (q *Queue[Op, R]) try(c *change[Op]) {
	if !q.host.CanWrite() {
		return
	}
	careful := c.careful || c.tries > 0 || q.bucket.Pending(c.key)
	c.at, c.queue, c.careful = append(c.at, c.queue...), nil, false
	ops := c.at
	var got Entry[R]
	q.host.Work(func(ctx context.Context) (err error) {
		if got, err = q.bucket.Read(ctx, c.key, ops); err == nil && careful {
			err = q.host.Fenced(ctx)
		}
		return err
	}, func(err error) {
		if err != nil {
			q.unread(c, err)
			return
		}
		q.write(c, got)
	})
}

// unread ends a try that could not read the key or the fence.
func (q *Queue[Op, R]) unread(c *change[Op], err error) {
	if q.host.Ended(c.key, err) {
		return
	}
	if advice := q.bucket.Advice(err); advice != "" {
		q.host.Warn(c.key, err, advice)
		q.again(c, MendPause)
		return
	}
	q.host.Warn(c.key, err, "a "+q.bucket.Name()+" cannot be read; trying again")
	q.again(c, patience(c.tries))
}

// write applies the ops to what was read, and writes it if that is still what the key holds.
func (q *Queue[Op, R]) write(c *change[Op], got Entry[R]) {
	if !q.host.CanWrite() {
		return
	}
	next, changed := q.bucket.Apply(c.key, c.at, got)
	e := Entry[R]{Record: next, Revision: got.Revision, Size: got.Size}
	if !changed {
		q.done(c, e, false)
		return
	}
	q.host.Work(func(ctx context.Context) (err error) {
		var body []byte
		if !q.bucket.Empty(next) {
			if body, err = schemas.MarshalJSON(next); err != nil {
				return err
			}
		}
		e.Size = len(body)
		e.Revision, err = q.bucket.Write(ctx, c.key, body, got.Revision)
		return err
	}, func(err error) {
		switch {
		case err == nil:
			q.done(c, e, true)
		case errors.Is(err, natsconn.ErrWrongSequence), errors.Is(err, natsconn.ErrInFlight):
			q.again(c, conflictPause+rand.N(conflictPause))
		default:
			q.host.Warn(c.key, err, "a "+q.bucket.Name()+" cannot be written; trying again")
			q.again(c, patience(c.tries))
		}
	})
}

// done ends a try that was carried out, and goes on with what has come meanwhile.
func (q *Queue[Op, R]) done(c *change[Op], e Entry[R], stored bool) {
	ops := c.at
	c.at, c.tries = nil, 0
	again := q.bucket.Done(c.key, ops, e, stored)
	switch {
	case len(again) > 0:
		c.queue = append(c.queue, again...)
		q.again(c, patience(c.tries))
	case len(c.queue) > 0 || q.bucket.Pending(c.key):
		q.try(c)
	default:
		delete(q.keys, c.key)
	}
}

func (q *Queue[Op, R]) again(c *change[Op], d time.Duration) {
	c.tries++
	q.host.After(d, func() { q.try(c) })
}

// patience is the pause after so many tries in a row, of which the server did not carry out the
// last one. A conflict has a shorter pause.
func patience(tries int) time.Duration {
	return min(failurePause*time.Duration(tries+1), MendPause)
}
