package claims

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/internal/sleep"
	"github.com/droverhq/drover/schemas"
)

// instant is one moment by two clocks. The monotonic one cannot be set, but stands still while the
// machine is suspended; the wall clock runs through that, but can be set.
type instant struct {
	mono time.Time // with a monotonic reading
	wall time.Time // without
}

func now() instant {
	t := time.Now()
	return instant{mono: t, wall: t.Round(0)}
}

// since is the time from earlier to i by the clock that saw more of it.
func (i instant) since(earlier instant) time.Duration {
	return max(i.mono.Sub(earlier.mono), i.wall.Sub(earlier.wall))
}

// Lease is the right that a claim gives, as long as it is valid. It renews itself until it is
// released or lost. All methods may be called by several goroutines.
type Lease struct {
	claims *Claims
	key    string
	nonce  string
	number uint64
	taken  time.Time      // by the server's clock
	lasts  time.Duration  // from the start of a term
	by     *natsconn.Conn // that does the work
	dials  uint64         // of it: with another connection the lease has ended
	done   chan struct{}  // closed when the lease has ended
	stop   context.CancelFunc
	idle   chan struct{} // closed when nothing renews any more

	term     atomic.Pointer[instant] // from when the present term counts
	revision atomic.Uint64           // of the last write that is known to be stored

	mu  sync.Mutex
	err error // set before done is closed
}

func (c *Claims) lease(key, nonce string, rev uint64, from instant, taken time.Time) *Lease {
	l := &Lease{
		claims: c, by: c.conn, key: key, nonce: nonce, number: rev, taken: taken,
		lasts: c.opts.TTL - c.opts.TTL/driftShare,
		done:  make(chan struct{}), idle: make(chan struct{}),
	}
	l.term.Store(&from)
	l.revision.Store(rev)
	return l
}

// begin starts the renewals. They outlive the context of the call that took the key; Release stops
// them.
func (l *Lease) begin() {
	ctx, stop := context.WithCancel(context.Background())
	l.stop = stop
	unhook := l.by.OnReconnect(func() { l.Valid() })
	go func() {
		defer unhook()
		l.keep(ctx)
	}()
}

// Key is what is claimed.
func (l *Lease) Key() string { return l.key }

// Number is the claim number: higher than that of every earlier holder of the key, and the same as
// long as the lease lives.
func (l *Lease) Number() uint64 { return l.number }

// Revision is the key's revision at the last acknowledged renewal: at least Number, and below the
// number of every later holder of any key of the bucket.
func (l *Lease) Revision() uint64 { return l.revision.Load() }

// Valid tells whether this process may write at this moment. Ask before each write; it takes less
// than a microsecond and no lock. Once false it stays false.
func (l *Lease) Valid() bool {
	if l.ended() {
		return false
	}
	if l.by.Dials() != l.dials {
		l.end(ErrReconnected)
		return false
	}
	if now().since(*l.term.Load()) < l.lasts {
		return true
	}
	l.end(ErrExpired)
	return false
}

func (l *Lease) ended() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

// Deadline is when the lease ends unless it is renewed, by the local clock.
func (l *Lease) Deadline() time.Time { return l.term.Load().mono.Add(l.lasts) }

// Done is closed when the lease has ended.
func (l *Lease) Done() <-chan struct{} { return l.done }

// Err says why the lease has ended: an error that wraps [ErrLost], [ErrExpired] or [ErrReleased];
// nil while it lives.
func (l *Lease) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// end ends the lease, once.
func (l *Lease) end(cause error) {
	l.mu.Lock()
	if l.err != nil {
		l.mu.Unlock()
		return
	}
	l.err = fmt.Errorf("claim %s (number %d): %w", l.key, l.number, cause)
	close(l.done)
	l.mu.Unlock()
	l.claims.forget(l)
	log := l.claims.log.WithFields(logrus.Fields{"claim": l.key, "number": l.number})
	if errors.Is(cause, ErrReconnected) {
		log.Info("claim given up: the connection was lost")
	} else if errors.Is(cause, ErrLost) {
		l.claims.lost.Add(1)
		log.WithField("err", cause).Warn("claim lost")
	} else {
		log.Debug("claim given back")
	}
}

// Release gives the claim back, so that another can take it at once. The lease is no longer valid
// when the key is freed. An error means that the key stays until it expires; the lease has ended
// all the same. It is also right to release a lease that was lost.
func (l *Lease) Release(ctx context.Context) error {
	l.end(ErrReleased)
	l.stop()
	select {
	case <-l.idle: // a renewal under way would change the revision
	case <-ctx.Done():
		return fmt.Errorf("claims: release of %s: %w", l.key, ctx.Err())
	}
	rev := l.revision.Load()
	var err error
	for range attempts {
		err = l.claims.conn.KVDelete(ctx, l.claims.bucket, l.key, rev)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, natsconn.ErrInFlight):
			sleep.For(ctx, shortPause)
		case errors.Is(err, natsconn.ErrWrongSequence), unknown(err):
			// A renewal or this very deletion may have been stored without our knowing.
			e, readErr := l.claims.reread(ctx, l.key)
			if readErr == nil && e.Nonce != l.nonce {
				return nil
			}
			if readErr == nil {
				rev = e.revision
			}
		default:
			return fmt.Errorf("claims: release of %s: %w", l.key, err)
		}
	}
	return fmt.Errorf("claims: release of %s: %w", l.key, err)
}

// keep renews the lease every third of the TTL, and ends it when its time is over. It looks at the
// clocks that often at least, so a suspended machine ends its leases soon after it wakes.
func (l *Lease) keep(ctx context.Context) {
	defer close(l.idle)
	interval := l.claims.opts.TTL / 3
	next := l.term.Load().mono.Add(interval)
	for {
		timer := time.NewTimer(min(time.Until(next), time.Until(l.Deadline())))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		case <-l.done:
			timer.Stop()
			return
		}
		if !l.Valid() {
			return
		}
		if time.Now().Before(next) {
			continue
		}
		retry, err := l.renew(ctx)
		switch {
		case err == nil:
			next = l.term.Load().mono.Add(interval)
		case ctx.Err() != nil || !l.Valid():
			return
		default:
			next = time.Now().Add(retry)
		}
	}
}

// renew writes the key again. On success a new term has begun, at the moment before the write was
// sent. On an error it says when to try again; the lease goes on until its time is over, unless the
// key is proven to be another's.
func (l *Lease) renew(ctx context.Context) (retry time.Duration, err error) {
	c := l.claims
	from := now()
	ctx, cancel := context.WithDeadline(ctx, earlier(from.mono.Add(c.opts.TTL/3), l.Deadline()))
	defer cancel()
	rev, err := c.write(ctx, l.key,
		value{Nonce: l.nonce, Number: l.number, Since: schemas.At(l.taken)}, l.revision.Load(),
		l.by)
	switch {
	case err == nil:
		l.revision.Store(rev)
		l.extend(from)
		return 0, nil
	case errors.Is(err, natsconn.ErrInFlight):
		return shortPause, err
	case errors.Is(err, natsconn.ErrWrongSequence):
		e, readErr := c.reread(ctx, l.key)
		switch {
		case readErr != nil:
			return c.opts.TTL / 30, readErr
		case e.Nonce == l.nonce:
			// An earlier renewal was stored and its acknowledgement lost. When it was sent is not
			// known any more, so it begins no term; the next one does.
			l.revision.Store(e.revision)
			return 0, err
		default:
			l.end(lostTo(e))
			return 0, err
		}
	default:
		c.log.WithFields(logrus.Fields{"claim": l.key, "err": err}).
			Debug("claim not renewed, trying again")
		return c.opts.TTL / 30, err
	}
}

// extend begins a new term, unless the lease ended while the renewal was on its way.
func (l *Lease) extend(from instant) {
	if l.Valid() {
		l.term.Store(&from)
	}
}

func lostTo(e *entry) error {
	switch {
	case e.absent:
		return fmt.Errorf("%w: its key was deleted", ErrLost)
	case e.malformed:
		return fmt.Errorf("%w: its key was overwritten by something else", ErrLost)
	default:
		return fmt.Errorf("%w: node %s took it (number %d)", ErrLost, e.Node, e.number())
	}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
