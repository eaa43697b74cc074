package ops

import (
	"context"
	"errors"
	"time"

	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/internal/sleep"
	"github.com/droverhq/drover/schemas"
)

// recoverPoll is how often a node looks whether the master has recovered.
const recoverPoll = 20 * time.Millisecond

// releaseTimeout bounds giving the claim back after a recovery.
const releaseTimeout = 5 * time.Second

// Recover is what a node does before its roles begin: it becomes the master, does the health task
// once, makes every node of its home namespace Ready that is Recovering, itself among them, and
// gives the claim back. It tells whether it did.
//
// While another node is doing that, Recover waits until it is done or dead. If there is a master
// already, or one that has died and whose claim has not run out, this node is Ready without a
// recovery: the health task does the same again and again, and nothing that it does must come
// before the roles. So a failure is logged, and keeps nobody from beginning.
//
// It needs Nodes and Self, and returns an error only when ctx ends.
func (m *Master) Recover(ctx context.Context) (led bool, err error) {
	for ctx.Err() == nil {
		l, err := m.opts.Claims.TryAcquire(ctx, claims.Master)
		if err == nil {
			led := m.recover(ctx, l)
			return led, ctx.Err()
		}
		if ctx.Err() != nil {
			return false, ctx.Err() // nothing has failed: this node is told to stop
		}
		held, ok := errors.AsType[*claims.HeldError](err)
		if !ok {
			m.opts.Logger.WithField("err", err).Warn("no recovery now: the health task will do it")
		}
		if !ok || !m.recovering(ctx, held.Holder) {
			m.ready(ctx)
			return false, ctx.Err()
		}
		if s, err := m.opts.Self.Refresh(ctx); err == nil && s == schemas.NodeReady {
			return false, nil // by the master's hand
		}
		sleep.For(ctx, recoverPoll)
	}
	return false, ctx.Err()
}

// recover recovers under the claim of the master, unless an earlier master has just done so for
// this node too.
func (m *Master) recover(ctx context.Context, l *claims.Lease) (led bool) {
	m.lease.Store(l)
	defer func() {
		free, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
		defer cancel()
		if err := l.Release(free); err != nil {
			m.opts.Logger.WithField("err", err).
				Warn("the master's claim is not given back, it will expire")
		}
	}()
	if s, err := m.opts.Self.Refresh(ctx); err == nil && s == schemas.NodeReady {
		return false
	}
	s := m.sweep(ctx, l)
	if ctx.Err() != nil {
		return false
	}
	m.report(s)
	m.swept = time.Now()
	names, err := m.opts.Nodes.Admit(ctx, m.opts.Home, m.opts.Self.Boot())
	if err != nil && ctx.Err() == nil {
		m.opts.Logger.WithField("err", err).
			Warn("the other nodes are not made ready; they do that themselves")
	}
	m.ready(ctx)
	m.opts.Logger.WithField("nodes", len(names)+1).Debug("recovered; the nodes are ready")
	return true
}

// recovering tells whether the node that holds the master's claim is another, alive, and in its
// recovery.
func (m *Master) recovering(ctx context.Context, holder string) bool {
	if holder == m.opts.Self.Name() {
		return false // an earlier self, whose claim will run out
	}
	i, err := m.opts.Nodes.Find(ctx, holder)
	return err == nil && i.Status == schemas.NodeRecovering &&
		m.opts.Nodes.Alive(i, m.opts.Nodes.Now(ctx))
}

// ready makes this node Ready.
func (m *Master) ready(ctx context.Context) {
	if err := m.opts.Self.Set(ctx, schemas.NodeReady); err != nil && ctx.Err() == nil {
		m.opts.Logger.WithField("err", err).
			Warn("this node's status is not written now; a heartbeat will do it")
	}
}
