// Package ops keeps a namespace in order: it runs what only one node may run at a time.
//
// Every server runs a [Master]. One of them holds the claim "master" and does the health task; the
// others wait to take its place. The command line's server starts it; nothing else depends on it,
// because every owner of a claim also protects itself.
//
// The health task has three steps, in this order: it marks nodes that have been silent for too
// long; it removes claims that have expired and that the NATS server has not removed by itself; it
// looks after tasks whose worker was lost. Before it removes the claim of a partition it has a
// fence written into that partition's history, so that a late write of the former owner is refused
// (P-16).
//
// [Master.Recover] does the same once, before the roles of a node begin. Nothing waits for a
// recovery that must succeed: whatever a crash leaves can be claimed, and what an earlier start of
// the same store held is taken at once.
package ops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/nodes"
	"github.com/droverhq/drover/internal/logx"
	"github.com/droverhq/drover/internal/safecall"
	"github.com/droverhq/drover/internal/sleep"
)

// ErrInvalidOptions reports options that leave their bounds. The text names the field and the way
// out.
var ErrInvalidOptions = errors.New("invalid options")

const minInterval = 100 * time.Millisecond

// MasterOptions of [NewMaster].
type MasterOptions struct {
	// Claims of the namespace. Required.
	Claims *claims.Claims
	// Fence writes a fence with a claim number into the history of a partition, unless a fence of
	// the same or a higher number is there. The number is above that of the expired claim, and
	// below that of whoever takes the partition next. Without it, expired claims of partitions are
	// left to those who take them over, who write a fence anyway. Defaults to none.
	Fence func(ctx context.Context, partition int, claim uint64) error
	// Nodes is the register whose silent nodes are marked, and whose old records are removed. Give
	// it to the master of one namespace. Defaults to none.
	Nodes *nodes.Registry
	// Self is this node's record, which [Master.Recover] makes Ready. Defaults to none.
	Self *nodes.Member
	// Home is the namespace whose nodes [Master.Recover] makes Ready. Defaults to none.
	Home string
	// Revert looks after tasks whose worker was lost, and tells how many will run again and how
	// many have failed for good. It is called in each sweep, after the claims. Defaults to none.
	Revert func(ctx context.Context) (reverted, failed int, err error)
	// Tasks run beside the sweeps while this node is the master, each in a goroutine of its own.
	// Their ctx ends with the claim. One that returns is called again after an Interval; an error
	// is logged. Default to none.
	Tasks []func(ctx context.Context) error
	// Interval is the time between two sweeps, at least 100 ms. Defaults to half the TTL of Claims.
	Interval time.Duration
	// Observer is told of each sweep, by the goroutine that does it. Its panics are logged.
	// Defaults to none.
	Observer func(Sweep)
	// Logger is told when this node becomes master and of what goes wrong. Defaults to none.
	Logger logrus.FieldLogger
}

// Master competes for the claim "master" and runs the health task while it has it.
type Master struct {
	opts  MasterOptions
	lease atomic.Pointer[claims.Lease]
	swept time.Time // when Recover did the health task; before Run
}

// NewMaster checks the options.
func NewMaster(o MasterOptions) (*Master, error) {
	if o.Claims == nil {
		return nil, fmt.Errorf("ops: %w: Claims is nil: open those of the namespace",
			ErrInvalidOptions)
	}
	o.Interval = cmp.Or(o.Interval, o.Claims.TTL()/2)
	if o.Interval < minInterval {
		return nil, fmt.Errorf(
			"ops: %w: Interval is %v: use at least %v, or 0 for half the TTL of Claims",
			ErrInvalidOptions, o.Interval, minInterval)
	}
	o.Logger = logx.Or(o.Logger)
	return &Master{opts: o}, nil
}

// Run competes until ctx ends, gives the claim back, and returns nil.
func (m *Master) Run(ctx context.Context) error {
	return m.opts.Claims.Hold(ctx, claims.Master, claims.HoldOptions{}, m.lead)
}

// Leads tells whether this node is the master.
func (m *Master) Leads() bool {
	l := m.lease.Load()
	return l != nil && l.Valid()
}

// lead sweeps until ctx ends, which it does with the lease.
func (m *Master) lead(ctx context.Context, l *claims.Lease) error {
	m.lease.Store(l)
	m.opts.Logger.WithField("number", l.Number()).Info("this node is the master")
	var wg sync.WaitGroup
	defer wg.Wait()
	for _, task := range m.opts.Tasks {
		wg.Go(func() { m.beside(ctx, task) })
	}
	tick := time.NewTicker(m.opts.Interval)
	defer tick.Stop()
	for {
		// Right after a recovery there is nothing new, and what comes back with the roles gets its
		// time.
		if m.swept.IsZero() || time.Since(m.swept) >= m.opts.Interval {
			s := m.sweep(ctx, l)
			if ctx.Err() != nil {
				return nil // what it cut short is no failure
			}
			m.report(s)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// beside runs a task again and again until ctx ends.
func (m *Master) beside(ctx context.Context, task func(context.Context) error) {
	for ctx.Err() == nil {
		if err := task(ctx); err != nil && ctx.Err() == nil {
			m.opts.Logger.WithField("err", err).Warn("a task of the master failed, trying again")
		}
		sleep.For(ctx, m.opts.Interval)
	}
}

func (m *Master) report(s Sweep) {
	if s.Err != nil {
		m.opts.Logger.WithField("err", s.Err).Warn("health task failed, trying again")
	}
	safecall.Tell(m.opts.Logger, m.opts.Observer, s)
}
