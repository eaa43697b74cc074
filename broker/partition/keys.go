package partition

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/partition/keyed"
	"github.com/droverhq/drover/schemas"
)

// keys are the keys of buckets that the runs of a partition use.
type keys struct {
	locks  *lockKeys
	states *stateKeys
}

// newKeys returns those of a new owner. The queues call back the partition.
func newKeys(p *Partition) keys { return keys{locks: newLockKeys(p), states: newStateKeys(p)} }

// busy tells whether a key is being changed.
func (k *keys) busy() bool { return k.locks.queue.Busy() || k.states.queue.Busy() }

// keyHost is the partition as package keyed sees it.
type keyHost struct{ p *Partition }

// CanWrite is part of [keyed.Host].
func (h keyHost) CanWrite() bool { return h.p.canWrite() }

// Work is part of [keyed.Host].
func (h keyHost) Work(work func(context.Context) error, done func(error)) {
	env.WriteAsync(h.p.b, h.p.loop, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, work(ctx)
	}, func(_ struct{}, err error) { done(err) })
}

// After is part of [keyed.Host] and [keyed.ViewHost].
func (h keyHost) After(d time.Duration, f func()) (cancel func()) {
	t := h.p.loop.After(d, f)
	return func() { h.p.loop.Cancel(t) }
}

// Now is part of [keyed.ViewHost].
func (h keyHost) Now() schemas.Timestamp { return h.p.now() }

// Ours is part of [keyed.ViewHost].
func (h keyHost) Ours(wid string) bool { return h.p.b.PartitionOf(wid) == h.p.n }

// Compare is part of [keyed.ViewHost].
func (h keyHost) Compare(key string, at keyed.Place) { h.p.judgeLock(key, at) }

// Ended is part of [keyed.Host].
func (h keyHost) Ended(key string, err error) bool {
	if !errors.Is(err, ErrNewerFence) {
		return false
	}
	h.p.fail("change the key %q: %w", key, err)
	return true
}

// Warn is part of [keyed.Host].
func (h keyHost) Warn(key string, err error, text string) {
	h.p.log.WithError(err).WithField("key", key).Warn(text)
}

// Fenced fails with [ErrNewerFence] if somebody has fenced the partition after us.
func (h keyHost) Fenced(ctx context.Context) error {
	p := h.p
	last, err := p.b.Reads.LastBySubject(ctx, p.b.NS.StreamHistory(p.n), p.b.NS.Fence(p.n))
	if err != nil {
		return fmt.Errorf("read the fence: %w", err)
	}
	if last.Seq != p.fence {
		return fmt.Errorf("%w: it is message %d, ours is %d", ErrNewerFence, last.Seq, p.fence)
	}
	return nil
}
