// Package ops keeps a namespace in order: it runs what only one node may run at a time.
//
// Every server runs a [Master]. One of them holds the claim "master" and does the health task; the others wait to take
// its place. The command line's server starts it; nothing else depends on it, because every owner of a claim also
// protects itself.
//
// The health task removes claims that have expired and that the NATS server has not removed by itself. Before it
// removes the claim of a partition it has a fence written into that partition's history, so that a late write of the
// former owner is refused (PROTOCOL.md, P-16).
package ops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/droverhq/drover/broker/claims"
	"github.com/sirupsen/logrus"
)

// ErrInvalidOptions reports options that leave their bounds. The text names the field and the way out.
var ErrInvalidOptions = errors.New("invalid options")

const minInterval = 100 * time.Millisecond

// MasterOptions of [NewMaster].
type MasterOptions struct {
	// Claims of the namespace. Required.
	Claims *claims.Claims
	// Fence writes a fence with a claim number into the history of a partition, unless a fence of the same or a higher
	// number is there. The number is above that of the expired claim, and below that of whoever takes the partition
	// next. Without it, expired claims of partitions are left to those who take them over, who write a fence anyway.
	// Defaults to none.
	Fence func(ctx context.Context, partition int, claim uint64) error
	// Interval is the time between two sweeps, at least 100 ms. Defaults to half the TTL of Claims.
	Interval time.Duration
	// Observer is told of each sweep, by the goroutine that does it. Defaults to none.
	Observer func(Sweep)
	// Logger is told when this node becomes master and of what goes wrong. Defaults to none.
	Logger logrus.FieldLogger
}

// Sweep is one run of the health task.
type Sweep struct {
	Number  uint64        // claim number of the master
	Seen    int           // claims that were looked at
	Removed []claims.Info // claims that were removed
	Err     error         // what went wrong, joined; the next sweep tries again
}

// Master competes for the claim "master" and runs the health task while it has it.
type Master struct {
	opts  MasterOptions
	lease atomic.Pointer[claims.Lease]
}

// NewMaster checks the options.
func NewMaster(o MasterOptions) (*Master, error) {
	if o.Claims == nil {
		return nil, fmt.Errorf("ops: %w: Claims is nil: open those of the namespace", ErrInvalidOptions)
	}
	o.Interval = cmp.Or(o.Interval, o.Claims.TTL()/2)
	if o.Interval < minInterval {
		return nil, fmt.Errorf("ops: %w: Interval is %v: use at least %v, or 0 for half the TTL of Claims", ErrInvalidOptions, o.Interval, minInterval)
	}
	if o.Logger == nil {
		silent := logrus.New()
		silent.SetOutput(io.Discard)
		silent.SetLevel(logrus.PanicLevel)
		o.Logger = silent
	}
	return &Master{opts: o}, nil
}

// Leading tells whether this node is the master at this moment.
func (m *Master) Leading() bool {
	l := m.lease.Load()
	return l != nil && l.Valid()
}

// Run competes until ctx ends, gives the claim back, and returns nil.
func (m *Master) Run(ctx context.Context) error {
	return m.opts.Claims.Hold(ctx, claims.Master, claims.HoldOptions{}, m.lead)
}

// lead sweeps until ctx ends, which it does with the lease.
func (m *Master) lead(ctx context.Context, l *claims.Lease) error {
	m.lease.Store(l)
	m.opts.Logger.WithField("number", l.Number()).Info("this node is the master")
	tick := time.NewTicker(m.opts.Interval)
	defer tick.Stop()
	for {
		s := m.sweep(ctx, l)
		if ctx.Err() != nil {
			return nil // what it cut short is no failure
		}
		if s.Err != nil {
			m.opts.Logger.WithField("err", s.Err).Warn("health task failed, trying again")
		}
		if m.opts.Observer != nil {
			m.opts.Observer(s)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// sweep removes expired claims.
func (m *Master) sweep(ctx context.Context, l *claims.Lease) Sweep {
	s := Sweep{Number: l.Number()}
	list, err := m.opts.Claims.List(ctx)
	if err != nil {
		s.Err = err
		return s
	}
	var errs []error
	for _, i := range list {
		if ctx.Err() != nil || !l.Valid() {
			break
		}
		s.Seen++
		if !i.Expired || i.Key == claims.Master {
			continue
		}
		switch removed, err := m.remove(ctx, l, i); {
		case errors.Is(err, claims.ErrHeld): // somebody has taken it over, which is as good
		case err != nil:
			errs = append(errs, err)
		case removed:
			s.Removed = append(s.Removed, i)
		}
	}
	s.Err = errors.Join(errs...)
	return s
}

// remove removes one expired claim, a partition's after a fence.
func (m *Master) remove(ctx context.Context, l *claims.Lease, i claims.Info) (removed bool, err error) {
	if p, ok := claims.ParsePartition(i.Key); ok {
		// The revision of our own last renewal is a good number for the fence: revisions are those of the whole bucket,
		// so it is above the expired claim's if it came later. And the claim still stands at the leader after it was
		// read, so whoever takes the partition next gets a higher one.
		number := l.Revision()
		if m.opts.Fence == nil || number <= i.Revision {
			return false, nil // without a renewal since then: the next sweep does it
		}
		if err := m.opts.Claims.Confirm(ctx, i); err != nil {
			return false, err
		}
		if !l.Valid() {
			return false, nil
		}
		if err := m.opts.Fence(ctx, p, number); err != nil {
			return false, fmt.Errorf("ops: fence for partition %d: %w", p, err)
		}
	}
	return true, m.opts.Claims.Evict(ctx, i)
}
