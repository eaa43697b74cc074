package claims

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/internal/sleep"
)

const (
	// A key that is held is looked at again when it may have expired, and every maxPoll in case the
	// watch has missed a deletion. Looking costs the server 50 µs, so nine waiters at minPoll would
	// keep 1 % of a core busy.
	minPoll        = 200 * time.Millisecond
	maxPoll        = time.Second
	defaultBackoff = time.Second
	releaseTimeout = 5 * time.Second
)

// HoldOptions of [Claims.Hold]. The zero value is good.
type HoldOptions struct {
	// Backoff is how long a free key is left to others: after fn has returned of its own accord,
	// and while Prefer says no. Defaults to 1 s.
	Backoff time.Duration
	// Prefer tells whether this node should be the one that holds the key. It is asked while Hold
	// waits, once a second or more often, and must be quick. A key that nobody else takes is taken
	// all the same. To give a key up to a better node, fn returns. Defaults to always.
	Prefer func() bool
	// Conn is the connection that does what the claim is for. The lease ends when it is lost, and
	// others need not wait then (gone.go). Defaults to that of the Claims.
	Conn *natsconn.Conn
}

// Hold waits until the key is free, takes it, and calls fn with its lease; when fn returns, the
// claim is released and all begins again, until ctx ends. Then Hold returns nil.
//
// fn's context ends when the lease does, with a cause that wraps [ErrLost], and when ctx ends, with
// ctx's cause; the lease is then still valid, so fn can finish and hand over. An error of fn is
// logged.
//
// A holder's deletion of its key is seen in milliseconds, an expiry within half a second.
func (c *Claims) Hold(
	ctx context.Context, key string, o HoldOptions, fn func(context.Context, *Lease) error,
) error {
	o.Backoff = cmp.Or(o.Backoff, defaultBackoff)
	o.Conn = cmp.Or(o.Conn, c.conn)
	if o.Backoff < 0 {
		return fmt.Errorf("claims: %w: HoldOptions.Backoff is %v: use more than 0, or 0 for %v",
			ErrInvalidOptions, o.Backoff, defaultBackoff)
	}
	freed, leave := c.watch.enter(key)
	defer leave()
	w := &waiter{claims: c, key: key, opts: o, freed: freed}
	for {
		l := w.wait(ctx)
		if l == nil {
			return nil
		}
		lost := c.run(ctx, l, fn)
		if !lost && sleep.For(ctx, o.Backoff) != nil {
			return nil
		}
	}
}

// run calls fn and releases the lease. It tells whether the lease was lost meanwhile.
func (c *Claims) run(
	ctx context.Context, l *Lease, fn func(context.Context, *Lease) error,
) (lost bool) {
	held, cancel := context.WithCancelCause(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-l.Done():
			cancel(l.Err())
		case <-held.Done():
		}
	}()
	defer func() {
		cancel(nil)
		<-watched
		lost = errors.Is(l.Err(), ErrLost)
		free, stop := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
		defer stop()
		switch err := l.Release(free); {
		case errors.Is(err, natsconn.ErrNoStream):
			c.log.WithField("claim", l.key).
				Debug("the bucket of the claim is gone, and the claim with it")
		case err != nil:
			c.log.WithFields(logrus.Fields{"claim": l.key, "err": err}).
				Warn("claim not given back, it will expire")
		}
	}()
	if err := fn(held, l); err != nil && held.Err() == nil {
		c.log.WithFields(logrus.Fields{"claim": l.key, "err": err}).
			Warn("the work under a claim failed, trying again")
	}
	return lost
}

// waiter is one call of Hold while it holds nothing.
type waiter struct {
	claims *Claims
	key    string
	opts   HoldOptions
	freed  <-chan struct{} // gets a value when the key was deleted
	said   string          // the last error that was logged
}

// wait returns a lease, or nil when ctx ends.
func (w *waiter) wait(ctx context.Context) *Lease {
	var freeSince time.Time
	for ctx.Err() == nil {
		yield := w.opts.Prefer != nil && !w.opts.Prefer()
		if yield && freeSince.IsZero() || yield && time.Since(freeSince) < w.opts.Backoff {
			err := w.free(ctx)
			switch {
			case err != nil:
				freeSince = time.Time{}
			case freeSince.IsZero():
				freeSince = time.Now()
			}
			w.sleep(ctx, w.lookAgain(err))
			continue
		}
		l, err := w.claims.tryAcquire(ctx, w.key, w.opts.Conn)
		if err == nil {
			w.said = ""
			return l
		}
		w.report(ctx, err)
		freeSince = time.Time{}
		w.sleep(ctx, w.lookAgain(err))
	}
	return nil
}

// free returns nil if the key could be taken.
func (w *waiter) free(ctx context.Context) error {
	e, err := w.claims.read(ctx, w.key)
	if err == nil {
		err = w.claims.mayTake(ctx, e)
	}
	w.report(ctx, err)
	return err
}

// report logs what keeps the waiter from looking, once for each kind.
func (w *waiter) report(ctx context.Context, err error) {
	if err == nil || errors.Is(err, ErrHeld) || ctx.Err() != nil {
		w.said = ""
		return
	}
	if text := err.Error(); text != w.said {
		w.said = text
		w.claims.log.WithFields(logrus.Fields{"claim": w.key, "err": err}).
			Warn("claim not taken, trying again")
	}
}

// lookAgain is how long to sleep after a key was not taken: it is held, or free and left to others,
// or cannot be looked at.
func (w *waiter) lookAgain(err error) time.Duration {
	held, ok := errors.AsType[*HeldError](err)
	if !ok {
		return minPoll
	}
	left := held.Until.Sub(w.claims.estimate(time.Now())) + margin
	return min(max(left, minPoll), maxPoll)
}

// sleep waits for the next look.
func (w *waiter) sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-w.freed:
	case <-t.C:
	case <-ctx.Done():
	}
}
