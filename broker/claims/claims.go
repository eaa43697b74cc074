// Package claims gives one process at a time the right to do something: to write a partition, to ring its alarms, to
// be the master. A claim is a key in a bucket of the namespace; who holds it has a [Lease] and renews it.
//
// Brokers, timer workers and the master use it. Whoever writes under a lease asks [Lease.Valid] before each write.
//
// Invariants:
//   - A lease ends by its holder's own clocks before anybody else may take the key. Its time counts from before the
//     write that took or renewed it was sent, while others count from when the server stored that write, which is
//     later (PROTOCOL.md, P-16). It lasts only while the monotonic clock and the wall clock both say so: the one
//     stands still while the machine is suspended, the other may be set back.
//   - A lease that has ended stays ended, even if a late acknowledgement says that the key was renewed.
//   - Everything is decided by the outcome of a compare-and-set on the key's revision, never by a read.
//   - [Lease.Number] grows from holder to holder of a key, and is never used twice: it is the revision of the write
//     that took the key, and serves as the fence of what is written under the lease.
//   - Expiry is judged by the server's timestamps alone. The deadline in the value is what the holder expects; it is
//     for people who read the bucket. The server removes expired keys by itself, but may show one for a moment after a
//     restart, or keep one whose TTL somebody removed.
//
// A lease alone does not make a write safe: a write may be on its way when the lease ends, and whoever may write the
// bucket may delete a key. Numbers in the records do. A key that is deleted under its holder is noticed at the next
// renewal, a third of the TTL later at most.
//
// A key may be taken when it is absent or deleted; when it has expired; when this [Claims] itself wrote it and has no
// lease on it (an acknowledgement was lost); and when it was written by an earlier start of the same embedded store,
// which is dead because the store's file lock is ours.
package claims

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/droverhq/drover/broker/clock"
	"github.com/droverhq/drover/broker/post"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
	"github.com/sirupsen/logrus"
)

const (
	defaultTTL = 10 * time.Second
	minTTL     = time.Second // the server's shortest
	maxTTL     = time.Hour
	// driftShare is the share of a TTL that a lease is shorter for its holder: clocks differ by far less.
	driftShare = 100
	// margin is what others wait beyond an expiry that the server has not acted upon. It covers leaders whose clocks
	// differ a little.
	margin = 250 * time.Millisecond
	// Between two questions for the server's time its clock is counted locally.
	askClockEvery = time.Minute
	shortPause    = 5 * time.Millisecond
	attempts      = 5
)

// Reasons for which a key is not taken, or a lease has ended. Compare with errors.Is.
var (
	// ErrInvalidOptions reports options that leave their bounds.
	ErrInvalidOptions = errors.New("invalid options")
	// ErrHeld is wrapped by every [*HeldError].
	ErrHeld = errors.New("claim is held")
	// ErrLost ends a lease that somebody else has taken or deleted.
	ErrLost = errors.New("claim lost")
	// ErrExpired ends a lease that could not be renewed in time; it wraps ErrLost.
	ErrExpired = fmt.Errorf("%w: it expired before a renewal was acknowledged", ErrLost)
	// ErrReleased ends a lease that its holder has given back.
	ErrReleased = errors.New("claim released")
)

// HeldError says who holds a key; it wraps [ErrHeld].
type HeldError struct {
	Key    string
	Holder string    // its node; "" if the value cannot be read
	Number uint64    // the holder's claim number
	Until  time.Time // when it expires unless it is renewed, by the server's clock; zero while this process takes it
}

// Error names the holder.
func (e *HeldError) Error() string {
	holder := cmp.Or(e.Holder, "an unknown node")
	if e.Until.IsZero() {
		return fmt.Sprintf("claim %s is being taken by %s", e.Key, holder)
	}
	return fmt.Sprintf("claim %s is held by %s until %s unless it is renewed", e.Key, holder, e.Until.UTC().Format(time.RFC3339Nano))
}

// Unwrap returns [ErrHeld].
func (e *HeldError) Unwrap() error { return ErrHeld }

// Master is the key of the node that runs the health task.
const Master = "master"

const partitionPrefix = "partition."

// Partition is the key of a partition's owner.
func Partition(p int) string { return partitionPrefix + strconv.Itoa(p) }

// Alarms is the key of the timer worker of a partition.
func Alarms(p int) string { return "alarms." + strconv.Itoa(p) }

// ParsePartition reads a key that [Partition] wrote.
func ParsePartition(key string) (p int, ok bool) {
	num, ok := strings.CutPrefix(key, partitionPrefix)
	p, err := strconv.Atoi(num)
	return p, ok && err == nil && p >= 0 && num == strconv.Itoa(p)
}

// Options of [Open].
type Options struct {
	// Node is the name of this node, shown to others. Required.
	Node string
	// TTL is how long a claim outlives its holder, 1 s to 1 h. It is renewed every third of it. Defaults to 10 s.
	TTL time.Duration
	// StoreID and Boot are those of the embedded server of this process. Claims of another boot of the same store are
	// taken over at once. Both or none. Default to none.
	StoreID, Boot string
	// Logger is told of claims taken, lost and released. Defaults to none.
	Logger logrus.FieldLogger
}

// withDefaults fills in what was left out.
func (o Options) withDefaults() Options {
	o.TTL = cmp.Or(o.TTL, defaultTTL)
	if o.Logger == nil {
		silent := logrus.New()
		silent.SetOutput(io.Discard)
		silent.SetLevel(logrus.PanicLevel)
		o.Logger = silent
	}
	return o
}

// validate judges options that have their defaults.
func (o Options) validate() error {
	switch {
	case subject.ValidateID("Node", o.Node) != nil:
		return fmt.Errorf("%w: %w", ErrInvalidOptions, subject.ValidateID("Node", o.Node))
	case o.TTL < minTTL || o.TTL > maxTTL:
		return fmt.Errorf("%w: TTL is %v: use %v to %v, or 0 for %v", ErrInvalidOptions, o.TTL, minTTL, maxTTL, defaultTTL)
	case (o.StoreID == "") != (o.Boot == ""):
		return fmt.Errorf("%w: StoreID is %q and Boot is %q: give both, those of the embedded server, or none", ErrInvalidOptions, o.StoreID, o.Boot)
	}
	return nil
}

// Claims takes and holds claims of one bucket. All methods may be called by several goroutines. It has no goroutine of
// its own while no lease is held and no [Claims.Hold] runs, so there is nothing to close.
type Claims struct {
	conn     *post.Conn
	bucket   string
	opts     Options
	instance string // begins each nonce of this Claims
	log      logrus.FieldLogger
	clock    clock.Server
	askedAt  atomic.Pointer[time.Time] // when the server was last asked for its time
	watch    watch

	mu     sync.Mutex
	count  uint64            // of nonces
	leases map[string]*Lease // by key; nil while it is being taken
}

// Open prepares claims in a bucket of [topology.Ensure]. It does not talk to the server.
//
// [topology.Ensure]: https://pkg.go.dev/github.com/droverhq/drover/broker/topology#Ensure
func Open(conn *post.Conn, bucket string, o Options) (*Claims, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("claims: %w", err)
	}
	c := &Claims{conn: conn, bucket: bucket, opts: o, instance: rand.Text(), log: o.Logger, leases: map[string]*Lease{}}
	c.watch.claims = c
	return c, nil
}

// TTL is how long a claim outlives its holder.
func (c *Claims) TTL() time.Duration { return c.opts.TTL }

// Node is the name that others see.
func (c *Claims) Node() string { return c.opts.Node }

// Clock is the estimate of the server's clock that claims are judged by. It is kept up to date while somebody waits
// for a claim.
func (c *Claims) Clock() *clock.Server { return &c.clock }

// TryAcquire takes a key if it may be taken now. Otherwise the error is a [*HeldError], or what kept the server from
// answering. Whoever gets a lease must call [Lease.Release] when its work is done.
func (c *Claims) TryAcquire(ctx context.Context, key string) (*Lease, error) {
	if err := c.reserve(key); err != nil {
		return nil, err
	}
	l, err := c.acquire(ctx, key)
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

// reserve keeps two callers in this process from taking the same key, which would look to each like its own.
func (c *Claims) reserve(key string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	l, taken := c.leases[key]
	switch {
	case !taken:
		c.leases[key] = nil
		return nil
	case l == nil:
		return fmt.Errorf("claims: %w", &HeldError{Key: key, Holder: c.opts.Node})
	default:
		return fmt.Errorf("claims: %w", &HeldError{Key: key, Holder: c.opts.Node, Number: l.number, Until: c.estimate(l.Deadline())})
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

func (c *Claims) acquire(ctx context.Context, key string) (*Lease, error) {
	var lastErr error
	for range attempts {
		e, err := c.read(ctx, key)
		if err != nil {
			return nil, err
		}
		if err := c.mayTake(ctx, e); err != nil {
			return nil, err
		}
		l, err := c.take(ctx, e)
		switch {
		case errors.Is(err, post.ErrInFlight), errors.Is(err, post.ErrWrongSequence):
			lastErr = err // somebody writes at the same time: look again
			pause(ctx, shortPause)
		default:
			return l, err
		}
	}
	return nil, fmt.Errorf("claim %s changes too fast, try again: %w", key, lastErr)
}

// mayTake returns nil when a key may be taken, or a [*HeldError].
func (c *Claims) mayTake(ctx context.Context, e *entry) error {
	switch {
	case e.absent, strings.HasPrefix(e.Nonce, c.instance):
		return nil
	case e.StoreID != "" && e.StoreID == c.opts.StoreID && e.Boot != "" && e.Boot != c.opts.Boot:
		return nil
	case e.expired(c.now(ctx)):
		return nil
	}
	return &HeldError{Key: e.key, Holder: e.Node, Number: e.number(), Until: e.expires}
}

// take writes the key over what was read.
func (c *Claims) take(ctx context.Context, e *entry) (*Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, c.opts.TTL) // later than that the answer is worth nothing
	defer cancel()
	nonce := c.nonce()
	from := now()
	since := c.estimate(from.mono)
	rev, err := c.write(ctx, e.key, value{Nonce: nonce, Since: schemas.At(since)}, e.revision)
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
	if !l.Valid() {
		return nil, fmt.Errorf("claim %s: the acknowledgement took longer than the claim lasts: %w", e.key, ErrExpired)
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
		s, err := c.conn.JetStream().Stream(ctx, streamOf(c.bucket))
		received := time.Now()
		if err != nil {
			c.log.WithField("err", err).Debug("the server did not tell its time")
		} else {
			c.clock.Observe(s.CachedInfo().TimeStamp, received)
			c.askedAt.Store(&received)
		}
	}
	return c.clock.Now(time.Now())
}

// unknown says that a write may have been stored although it was not acknowledged.
func unknown(err error) bool {
	return errors.Is(err, post.ErrTimeout) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// pause waits; it reports false when ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
