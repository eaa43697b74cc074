// Package claims gives one process at a time the right to do something: to write a partition, to
// ring its alarms, to be the master. A claim is a key in a bucket of the namespace; who holds it
// has a [Lease] and renews it.
//
// Brokers, timer workers and the master use it. Whoever writes under a lease asks [Lease.Valid]
// before each write.
//
// Invariants:
//   - A lease ends by its holder's own clocks before anybody else may take the key. Its time counts
//     from before the write that took or renewed it was sent, while others count from when the
//     server stored that write, which is later (P-16). It lasts only while the monotonic clock and
//     the wall clock both say so: the one stands still while the machine is suspended, the other
//     may be set back.
//   - A lease ends with the connection that does its work ([HoldOptions].Conn), before another one
//     is made. The claims of a connection that is gone are free at once for those who are connected
//     to the same NATS server: see gone.go.
//   - A lease that has ended stays ended, even if a late acknowledgement says that the key was
//     renewed.
//   - Everything is decided by the outcome of a compare-and-set on the key's revision, never by a
//     read.
//   - [Lease.Number] grows from holder to holder of a key, and is never used twice: it is the
//     revision of the write that took the key, and serves as the fence of what is written under the
//     lease.
//   - A claim is written over a mark of deletion only, or where nothing was. A key that is there,
//     and may be taken, is deleted first: see free.
//   - Expiry is judged by the server's timestamps, and by how long somebody has seen the same
//     write: see unchanged.go. The deadline in the value is what the holder expects; it is for
//     people who read the bucket. The server removes expired keys by itself, but may show one for a
//     moment after a restart, or keep one whose TTL somebody removed.
//
// A lease alone does not make a write safe: a write may be on its way when the lease ends, and
// whoever may write the bucket may delete a key. Numbers in the records do. A key that is deleted
// under its holder is noticed at the next renewal, a third of the TTL later at most.
//
// A key may be taken when it is absent or deleted; when it has expired; when the connection of its
// holder is gone; when this [Claims] itself wrote it and has no lease on it (an acknowledgement was
// lost); and when it was written by an earlier start of the same embedded store, which is dead
// because the store's file lock is ours.
package claims

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/broker/clock"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/internal/sleep"
	"github.com/droverhq/drover/schemas"
)

const (
	// driftShare is the share of a TTL that a lease is shorter for its holder: clocks differ by far
	// less.
	driftShare = 100
	// margin is what others wait beyond an expiry that the server has not acted upon. It covers
	// leaders whose clocks differ a little.
	margin = 250 * time.Millisecond
	// Between two questions for the server's time its clock is counted locally.
	askClockEvery = time.Minute
	shortPause    = 5 * time.Millisecond
	attempts      = 5
)

// Claims takes and holds claims of one bucket. All methods may be called by several goroutines. It
// has no goroutine of its own while no lease is held and no [Claims.Hold] runs, so there is nothing
// to close.
type Claims struct {
	conn     *natsconn.Conn
	bucket   string
	opts     Options
	instance string // begins each nonce of this Claims
	log      logrus.FieldLogger
	clock    clock.Server
	askedAt  atomic.Pointer[time.Time] // when the server was last asked for its time
	watch    watch

	looking chan struct{} // holds a value while recent reads
	seen    []Info        // what it read
	seenAt  time.Time

	lost atomic.Int64 // leases that ended by themselves

	mu         sync.Mutex
	count      uint64               // of nonces
	leases     map[string]*Lease    // by key; nil while it is being taken
	firstLooks map[string]firstLook // by key
}

// Open prepares claims in a bucket that broker/topology has made. It does not talk to the server.
func Open(conn *natsconn.Conn, bucket string, o Options) (*Claims, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("claims: %w", err)
	}
	c := &Claims{
		conn: conn, bucket: bucket, opts: o, instance: rand.Text(), log: o.Logger,
		leases: map[string]*Lease{}, firstLooks: map[string]firstLook{},
		looking: make(chan struct{}, 1),
	}
	c.watch.claims = c
	c.watch.others.come = make(chan struct{}, 1)
	return c, nil
}

// TTL is how long a claim outlives its holder.
func (c *Claims) TTL() time.Duration { return c.opts.TTL }

// LookEvery is how often a [Share] looks who else is alive.
func (c *Claims) LookEvery() time.Duration { return c.opts.LookEvery }

// Node is the name that others see.
func (c *Claims) Node() string { return c.opts.Node }

// Clock is the estimate of the server's clock that claims are judged by. It is kept up to date
// while somebody waits for a claim.
func (c *Claims) Clock() *clock.Server { return &c.clock }

// TryAcquire takes a key if it may be taken now. Otherwise the error is a [*HeldError], or what
// kept the server from answering. Whoever gets a lease must call [Lease.Release] when its work is
// done.
func (c *Claims) TryAcquire(ctx context.Context, key string) (*Lease, error) {
	return c.tryAcquire(ctx, key, c.conn)
}

// tryAcquire is TryAcquire for work that is done by a connection.
func (c *Claims) tryAcquire(ctx context.Context, key string, by *natsconn.Conn) (*Lease, error) {
	if err := c.reserve(key); err != nil {
		return nil, err
	}
	l, err := c.acquire(ctx, key, by)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		delete(c.leases, key)
		return nil, fmt.Errorf("claims: %w", err)
	}
	c.leases[key] = l
	l.begin() // after it is registered, because its end removes it
	return l, nil
}

// reserve keeps two callers in this process from taking the same key, which would look to each like
// its own.
func (c *Claims) reserve(key string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	l, taken := c.leases[key]
	switch {
	case !taken, l != nil && l.ended(): // it may not have been forgotten yet
		c.leases[key] = nil
		return nil
	case l == nil:
		return fmt.Errorf("claims: %w", &HeldError{Key: key, Holder: c.opts.Node})
	default:
		return fmt.Errorf("claims: %w", &HeldError{
			Key: key, Holder: c.opts.Node, Number: l.number, Until: c.estimate(l.Deadline()),
		})
	}
}

// forget is called once, when a lease has ended.
func (c *Claims) forget(l *Lease) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.leases[l.key] == l {
		delete(c.leases, l.key)
	}
}

// acquire looks at a key and takes one step: it frees a key that may be taken, or takes one that is
// free. Then it looks again.
func (c *Claims) acquire(ctx context.Context, key string, by *natsconn.Conn) (*Lease, error) {
	lastErr := natsconn.ErrWrongSequence // a key that is there again each time
	for range 2 * attempts {
		e, err := c.read(ctx, key)
		if err != nil {
			return nil, err
		}
		if err := c.mayTake(ctx, e); err != nil {
			return nil, err
		}
		var l *Lease
		if e.absent {
			l, err = c.take(ctx, e, by)
		} else {
			err = c.free(ctx, e)
		}
		switch {
		case errors.Is(err, natsconn.ErrInFlight), errors.Is(err, natsconn.ErrWrongSequence):
			lastErr = err // somebody writes at the same time
			sleep.For(ctx, shortPause)
		case err != nil || l != nil:
			return l, err
		}
	}
	return nil, fmt.Errorf("claim %s changes too fast, try again: %w", key, lastErr)
}

// mayTake returns nil when a key may be taken, or a [*HeldError].
func (c *Claims) mayTake(ctx context.Context, e *entry) error {
	unchanged := c.unchanged(e)
	switch {
	case e.absent, strings.HasPrefix(e.Nonce, c.instance):
		return nil
	case e.StoreID != "" && e.StoreID == c.opts.StoreID && e.Boot != "" && e.Boot != c.opts.Boot:
		return nil
	case unchanged, e.expired(c.now(ctx)) && e.expired(c.askNow(ctx)):
		return nil
	}
	return &HeldError{Key: e.key, Holder: e.Node, Number: e.number(), Until: e.expires}
}

// free deletes a key that may be taken, and that the server has not removed. Nothing but the mark
// of a deletion is ever written over: the server removes an expired key by a mark of its own, which
// it prepares while the key is the last message of its subject and stores after whatever came
// meanwhile. Such a mark, which expects nothing, wipes out a claim that was written over the
// expired one, and another node takes the key beside its holder. After a deletion it only makes the
// next take fail. A renewal needs no such care: it begins no term unless it is acknowledged before
// what it replaces can expire.
func (c *Claims) free(ctx context.Context, e *entry) error {
	ctx, cancel := context.WithTimeout(ctx, c.opts.TTL/3)
	defer cancel()
	if err := c.conn.KVDelete(ctx, c.bucket, e.key, e.revision); err != nil {
		return fmt.Errorf("claim %s: %w", e.key, err)
	}
	return nil
}

// take writes the key over the mark of a deletion, or where there is none.
func (c *Claims) take(ctx context.Context, e *entry, by *natsconn.Conn) (*Lease, error) {
	// then it is read back, while the lease is still worth something
	ctx, cancel := context.WithTimeout(ctx, c.opts.TTL/3)
	defer cancel()
	nonce := c.nonce()
	dials := by.Dials()
	if !by.Connected() {
		return nil, fmt.Errorf("claim %s: %w: the connection that would do the work is lost",
			e.key, natsconn.ErrDisconnected)
	}
	from := now()
	since := c.estimate(from.mono)
	rev, err := c.write(ctx, e.key, value{Nonce: nonce, Since: schemas.At(since)}, e.revision, by)
	if unknown(err) {
		got, readErr := c.reread(ctx, e.key)
		if readErr != nil || got.Nonce != nonce {
			return nil, err
		}
		rev, err = got.revision, nil
	}
	if err != nil {
		return nil, err
	}
	l := c.lease(e.key, nonce, rev, from, since)
	l.by, l.dials = by, dials
	if !l.Valid() {
		return nil, fmt.Errorf("claim %s: the acknowledgement took longer than the claim lasts: %w",
			e.key, ErrExpired)
	}
	c.log.WithFields(logrus.Fields{"claim": e.key, "number": rev}).Debug("claim taken")
	return l, nil
}

func (c *Claims) nonce() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count++
	return c.instance + "-" + strconv.FormatUint(c.count, 10)
}

// estimate gives the server's time for people to read: the local time until the server's is known.
func (c *Claims) estimate(local time.Time) time.Time {
	if t := c.clock.Now(local); !t.IsZero() {
		return t
	}
	return local.Round(0)
}

// now gives the server's time, or an earlier one. It asks the server now and then.
func (c *Claims) now(ctx context.Context) time.Time {
	if at := c.askedAt.Load(); at == nil || time.Since(*at) >= askClockEvery {
		return c.askNow(ctx)
	}
	return c.clock.Now(time.Now())
}

// askNow is now by an answer of the server to this question. Whoever would call the claim of
// another expired asks it: if the server's clock was set back, or its leader is another one with a
// slower clock, the estimate is ahead until then, and every live claim would seem to be over.
func (c *Claims) askNow(ctx context.Context) time.Time {
	asked := time.Now()
	at, err := c.conn.StreamTime(ctx, streamOf(c.bucket))
	answered := time.Now()
	if err != nil {
		c.log.WithField("err", err).Debug("the server did not tell its time")
	} else {
		c.clock.ObserveExchange(asked, at, answered)
		c.askedAt.Store(&answered)
	}
	return c.clock.Now(answered)
}

// unknown says that a write may have been stored although it was not acknowledged.
func unknown(err error) bool {
	return errors.Is(err, natsconn.ErrTimeout) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, context.Canceled)
}
