package locking

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/partition/keyed"
	"github.com/droverhq/drover/schemas"
)

// Host is the partition as this package needs it. Its methods are called on the loop.
type Host interface {
	Now() schemas.Timestamp
	CanWrite() bool
	// Leaving tells whether the owner is about to give the partition away.
	Leaving() bool
	// Fence is the sequence of the owner's fence record.
	Fence() uint64
	Fail(format string, args ...any)

	// Get returns the run of a workflow id, loading it if need be; InMemory is nil if it is not there.
	Get(wid string) *actor.Run
	InMemory(wid string) *actor.Run
	// WhenKnown calls f once the run is loaded, or broken if its history cannot be followed. WhenKept
	// waits for that, unless the run is set aside.
	WhenKnown(r *actor.Run, f, broken func())
	WhenKept(r *actor.Run, f, aside func())
	// AfterPending calls f once all that is in memory of the run is in the history.
	AfterPending(r *actor.Run, f func())
	Deliver(r *actor.Run, e *actor.Message)
	// Tell sends a message of a kind to another workflow.
	Tell(wid, kind string, v any)
}

// Keys are the locks and state keys that the runs of a partition use.
type Keys struct {
	env.Owner
	host   Host
	locks  *lockKeys
	states *stateKeys
}

// New returns the keys of a new owner, which knows nothing of them yet.
func New(host Host, o env.Owner) *Keys {
	ks := &Keys{host: host, Owner: o}
	ks.locks, ks.states = newLockKeys(ks), newStateKeys(ks)
	return ks
}

// Busy tells whether a key is being changed.
func (ks *Keys) Busy() bool { return ks.locks.queue.Busy() || ks.states.queue.Busy() }

// keyHost is what package keyed sees of them.
type keyHost struct{ p *Keys }

// CanWrite is part of [keyed.Host].
func (h keyHost) CanWrite() bool { return h.p.host.CanWrite() }

// Work is part of [keyed.Host].
func (h keyHost) Work(work func(context.Context) error, done func(error)) {
	env.WriteAsync(h.p.Env, h.p.Loop, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, work(ctx)
	}, func(_ struct{}, err error) { done(err) })
}

// After is part of [keyed.Host] and [keyed.ViewHost].
func (h keyHost) After(d time.Duration, f func()) (cancel func()) {
	t := h.p.Loop.After(d, f)
	return func() { h.p.Loop.Cancel(t) }
}

// Now is part of [keyed.ViewHost].
func (h keyHost) Now() schemas.Timestamp { return h.p.host.Now() }

// Ours is part of [keyed.ViewHost].
func (h keyHost) Ours(wid string) bool { return h.p.Env.PartitionOf(wid) == h.p.Partition }

// Compare is part of [keyed.ViewHost].
func (h keyHost) Compare(key string, at keyed.Place) { h.p.judgeLock(key, at) }

// Ended is part of [keyed.Host].
func (h keyHost) Ended(key string, err error) bool {
	if !errors.Is(err, env.ErrNewerFence) {
		return false
	}
	h.p.host.Fail("change the key %q: %w", key, err)
	return true
}

// Warn is part of [keyed.Host].
func (h keyHost) Warn(key string, err error, text string) {
	h.p.Log.WithError(err).WithField("key", key).Warn(text)
}

// Fenced fails with [env.ErrNewerFence] if somebody has fenced the partition after us.
func (h keyHost) Fenced(ctx context.Context) error {
	ks := h.p
	last, err := ks.Env.Reads.LastBySubject(
		ctx,
		ks.Env.NS.StreamHistory(ks.Partition),
		ks.Env.NS.Fence(ks.Partition),
	)
	if err != nil {
		return fmt.Errorf("read the fence: %w", err)
	}
	if last.Seq != ks.host.Fence() {
		return fmt.Errorf("%w: it is message %d, ours is %d",
			env.ErrNewerFence, last.Seq, ks.host.Fence())
	}
	return nil
}
