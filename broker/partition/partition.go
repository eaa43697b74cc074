package partition

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/explain"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/deadlines"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/partition/intake"
	"github.com/droverhq/drover/broker/partition/loop"
	"github.com/droverhq/drover/schemas"
)

// Partition is one term of ownership: from a fence record to the first refusal, or to the loss of
// the claim. It is never reused; after a refusal the next term begins with nothing in memory.
type Partition struct {
	env.Owner
	parts
	lease *claims.Lease
	stop  context.CancelCauseFunc

	outside   *natsconn.Outbox // tasks, alarms, dead letters
	letters   explain.Letters
	intake    intake.Intake[*actor.Message]
	deadlines deadlines.Deadlines[*actor.Run]
	inputs    inputs
	marks     marks
	owing     int                 // messages, as in run
	reports   map[string]struct{} // outcomes that were sent here, by where their answers go

	leaving  *leaving      // once the end is planned
	departed chan struct{} // closed when the partition may be handed over
	unwanted int           // ticks since another broker became the preferred one
}

var (
	ErrRefused   = errors.New("a write was refused")
	ErrElsewhere = errors.New("another broker is preferred")
)

func New(b *env.Env, n int, lease *claims.Lease) *Partition {
	p := &Partition{
		Owner: env.Owner{
			Env: b, Partition: n, Loop: loop.New(),
			Log: b.Options.Logger.WithField("partition", n),
		},
		lease: lease, deadlines: deadlines.New[*actor.Run](),
		reports: make(map[string]struct{}), departed: make(chan struct{}),
	}
	p.parts = newParts(p)
	return p
}

// Number is which of the namespace's partitions it is, from 0.
func (p *Partition) Number() int { return p.Partition }

// Run owns the partition until outer is done, the claim is lost or a write is refused; the last is
// an error that wraps errRefused and calls for a new term. own is called once the partition can
// take requests. When run returns, the partition can be given to another.
func (p *Partition) Run(outer context.Context, own func(*Partition) (disown func())) (err error) {
	var ctx context.Context
	ctx, p.stop = context.WithCancelCause(context.WithoutCancel(outer))
	passes := false
	defer func() {
		if !passes {
			p.stop(nil)
		}
	}()
	began := time.Now()
	if err = p.writer.Open(); err != nil {
		return err
	}
	defer p.writer.Close()
	if p.outside, err = p.Env.Conn.NewOutbox(natsconn.OutboxOptions{}); err != nil {
		return err
	}
	defer p.outside.Close()
	if err := p.handover.TakeOver(outer); err != nil {
		return fmt.Errorf("partition %d: take-over: %w", p.Partition, err)
	}
	p.writer.Follow(p.handover.Fence)
	closers, err := p.listen(ctx)
	hangUp := func() {
		for _, c := range closers {
			c()
		}
	}
	defer func() {
		if !passes {
			hangUp()
		}
	}()
	if err != nil {
		return fmt.Errorf("partition %d: %w", p.Partition, err)
	}
	p.Log.WithFields(logrus.Fields{
		"fence": p.handover.Fence, "took": time.Since(began).Round(time.Millisecond),
		"recovered": len(p.handover.Recovered),
	}).Info("partition owned")
	defer own(p)()
	took := time.Since(began)
	defer p.counted(took)()
	p.tellOwned()
	p.Loop.After(p.Env.Options.CheckpointEvery, p.tick)
	if p.singleReplica() {
		p.repeats.List()
	}
	defer context.AfterFunc(outer,
		func() { p.Loop.Post(func() { p.leave(context.Cause(outer)) }) })()
	looped := make(chan struct{})
	p.Env.Work.Go(func() {
		defer close(looped)
		p.Loop.Run(ctx, p.flush)
	})
	select {
	case <-looped: // out of order: what is in memory may be ahead of the history
		p.refuseReports()
		p.alarms.Refuse()
		p.handover.WriteLast(context.WithoutCancel(ctx), p.handover.Positions())
		if cause := context.Cause(ctx); errors.Is(cause, ErrRefused) ||
			errors.Is(cause, ErrElsewhere) {
			return cause
		}
		return ctx.Err()
	case <-p.departed:
	}
	l := p.leaving
	p.handover.WriteLast(context.WithoutCancel(ctx), l.checkpoint)
	p.Log.WithField("took", time.Since(l.began).Round(time.Millisecond)).
		Info("partition handed over")
	if passes = l.passes; passes {
		stop := context.AfterFunc(p.Env.Background, func() { p.stop(errLeft) })
		p.Env.Passing.Go(func() {
			<-looped
			stop()
			hangUp()
		})
	} else {
		p.stop(errLeft)
		<-looped
	}
	return l.cause
}

// fail ends the term. Everything in memory may be ahead of the history, so nothing of it is used
// again.
func (p *Partition) fail(format string, args ...any) {
	if p.sealed() {
		return
	}
	err := fmt.Errorf("%w: %w", ErrRefused, fmt.Errorf(format, args...))
	p.Log.WithError(err).Warn("partition starts anew")
	p.stop(err)
}

// canWrite tells whether a write may still be sent (P-16).
func (p *Partition) canWrite() bool {
	if p.sealed() {
		return false
	}
	if p.lease.Valid() {
		return true
	}
	p.stop(claims.ErrLost)
	return false
}

// now is the corrected clock: never ahead of the server's (P-15).
func (p *Partition) now() schemas.Timestamp { return p.Env.Now() }

// flush publishes what a batch of the loop has caused: one record for each run that has something
// and none in flight.
func (p *Partition) flush() {
	for p.cache.RehydrateAll(); p.marks.any(); p.cache.RehydrateAll() {
		// what is settled may ask for others, and some of them may be ready at once
		if !p.marks.each(p.sealed, p.settle) {
			break
		}
	}
	p.writer.Flushed()
	p.cache.Evict()
	switch {
	case p.leaving != nil:
		p.part()
	case p.deadlines.Usage.Due():
		p.cache.PassivateIdle()
	}
}

// OwnLocks lets the requests about locks in this process look at those of this owner, until
// DisownLocks.
func (p *Partition) OwnLocks() { p.keys.Own() }

// DisownLocks undoes OwnLocks.
func (p *Partition) DisownLocks() { p.keys.Disown() }

// singleReplica tells whether the history has one copy. It is asked before each read: a server that
// was no part of a cluster may become one, and only then can there be others.
func (p *Partition) singleReplica() bool {
	return !p.handover.Replicated && p.Env.Reads.NATS().ConnectedClusterName() == ""
}
