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
	"github.com/droverhq/drover/broker/partition/ahead"
	"github.com/droverhq/drover/broker/partition/alarms"
	"github.com/droverhq/drover/broker/partition/deadlines"
	"github.com/droverhq/drover/broker/partition/decisions"
	"github.com/droverhq/drover/broker/partition/dispatch"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/partition/exchange"
	"github.com/droverhq/drover/broker/partition/handover"
	"github.com/droverhq/drover/broker/partition/inspect"
	"github.com/droverhq/drover/broker/partition/intake"
	"github.com/droverhq/drover/broker/partition/large"
	"github.com/droverhq/drover/broker/partition/locking"
	"github.com/droverhq/drover/broker/partition/loop"
	"github.com/droverhq/drover/broker/partition/probes"
	"github.com/droverhq/drover/broker/partition/repeats"
	"github.com/droverhq/drover/broker/partition/replays"
	"github.com/droverhq/drover/schemas"
)

// Partition is one term of ownership: from a fence record to the first refusal, or to the loss of
// the claim. It is never reused; after a refusal the next term begins with nothing in memory.
type Partition struct {
	b     *env.Env
	n     int
	lease *claims.Lease
	log   logrus.FieldLogger
	loop  *loop.Loop
	stop  context.CancelCauseFunc

	last    uint64 // predicted last sequence of the history stream
	history *natsconn.Outbox
	outside *natsconn.Outbox // tasks, alarms, dead letters

	runs    map[string]*actor.Run
	dirty   []*actor.Run
	clean   []*actor.Run // what dirty was in the round before: its memory
	groups  groupPool
	head    natsconn.Header // of the record that is being sent
	closed  []*actor.Run    // the latest closed runs, the oldest first
	letters explain.Letters

	intake    intake.Intake[*actor.Message]
	deadlines deadlines.Deadlines[*actor.Run]

	readers       []*natsconn.Reader      // of the logs
	subscriptions []natsconn.Subscription // to what may be left unheard while the owner changes
	requests      requests
	commits       int           // on their way
	owing         int           // messages, as in run
	leaving       *leaving      // once the end is planned
	departed      chan struct{} // closed when the partition may be handed over

	feed     closedFeed
	dispatch *dispatch.Dispatch
	reports  map[string]struct{} // outcomes that were sent here, by where their answers go
	replies  string              // prefix of the subjects that deciders answer to

	keys      *locking.Keys
	alarms    *alarms.Alarms
	repeats   *repeats.Repeats
	replays   *replays.Replays
	large     *large.Large
	inspector *inspect.Inspector
	decisions *decisions.Decisions
	handover  *handover.Handover
	exchange  *exchange.Exchange
	ahead     *ahead.Ahead
	probes    *probes.Probes

	quota env.Quota

	unwanted int // ticks since another broker became the preferred one
}

var (
	ErrRefused   = errors.New("a write was refused")
	ErrElsewhere = errors.New("another broker is preferred")
)

func New(b *env.Env, n int, lease *claims.Lease) *Partition {
	p := &Partition{
		b: b, n: n, lease: lease, loop: loop.New(), log: b.Options.Logger.WithField("partition", n),
		runs: make(map[string]*actor.Run), deadlines: deadlines.New[*actor.Run](),
		reports: make(map[string]struct{}), departed: make(chan struct{}),
		head: make(natsconn.Header, 6),
	}
	p.dispatch = dispatch.New(host{p}, p.owner())
	p.exchange = exchange.New(host{p}, p.owner(), p.dispatch)
	p.alarms = alarms.New(host{p}, p.owner(), &p.deadlines)
	p.replays = replays.New(host{p}, p.owner())
	p.large = large.New(host{p}, p.owner())
	p.inspector = inspect.New(host{p}, p.owner())
	p.keys, p.decisions = locking.New(host{p}, p.owner()), decisions.New(host{p}, p.owner())
	p.repeats = repeats.New(host{p}, p.owner())
	p.ahead = ahead.New(host{p}, p.owner(), p.decisions, p.dispatch)
	p.probes = probes.New(host{p}, p.owner(), p.decisions, p.dispatch, p.ahead)
	p.handover = handover.New(host{p}, p.owner(), handover.Parts{
		Lease: lease, Intake: &p.intake, Deadlines: &p.deadlines, Decisions: p.decisions,
		Dispatch: p.dispatch, Alarms: p.alarms,
	})
	return p
}

// Number is which of the namespace's partitions it is, from 0.
func (p *Partition) Number() int { return p.n }

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
	if p.history, err = p.b.Conn.NewOutbox(p.b.Grouping(p.n)); err != nil {
		return err
	}
	defer p.history.Close()
	if p.outside, err = p.b.Conn.NewOutbox(natsconn.OutboxOptions{}); err != nil {
		return err
	}
	defer p.outside.Close()
	if err := p.handover.TakeOver(outer); err != nil {
		return fmt.Errorf("partition %d: take-over: %w", p.n, err)
	}
	p.last = p.handover.Fence
	// the fence is told of with the records after it, so that nobody reads it
	p.feed.from, p.feed.to = p.last, p.last
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
		return fmt.Errorf("partition %d: %w", p.n, err)
	}
	p.log.WithFields(logrus.Fields{
		"fence": p.handover.Fence, "took": time.Since(began).Round(time.Millisecond),
		"recovered": len(p.handover.Recovered),
	}).Info("partition owned")
	defer own(p)()
	p.tellOwned()
	p.loop.After(p.b.Options.CheckpointEvery, p.tick)
	if p.singleReplica() {
		p.repeats.List()
	}
	defer context.AfterFunc(outer,
		func() { p.loop.Post(func() { p.leave(context.Cause(outer)) }) })()
	looped := make(chan struct{})
	p.b.Work.Go(func() {
		defer close(looped)
		p.loop.Run(ctx, p.flush)
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
	p.log.WithField("took", time.Since(l.began).Round(time.Millisecond)).
		Info("partition handed over")
	if passes = l.passes; passes {
		stop := context.AfterFunc(p.b.Background, func() { p.stop(errLeft) })
		p.b.Passing.Go(func() {
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
	p.log.WithError(err).Warn("partition starts anew")
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
func (p *Partition) now() schemas.Timestamp { return p.b.Now() }

// flush publishes what a batch of the loop has caused: one record for each run that has something
// and none in flight.
func (p *Partition) flush() {
	for p.rehydrateAll(); len(p.dirty) > 0; p.rehydrateAll() {
		// what is settled may ask for others, and some of them may be ready at once
		dirty := p.dirty
		p.dirty, p.clean = p.clean[:0], nil
		if p.sealed() {
			break
		}
		for i, r := range dirty {
			r.Marked = false
			p.settle(r)
			dirty[i] = nil
		}
		p.clean = dirty
	}
	p.quota.Promised = 0
	p.evict()
	switch {
	case p.leaving != nil:
		p.part()
	case p.deadlines.Usage.Due():
		p.passivateIdle()
	}
}

// touch marks a run as used.
func (p *Partition) touch(r *actor.Run) { p.deadlines.Usage.Touch(r, &r.Use) }

// evict forgets the longest unused runs above the bound, eight at most for each that was used. It
// is called when no run is marked, and none is in the middle of a step: such a one looks idle, and
// would live on beside its successor.
func (p *Partition) evict() {
	tooMany := func() bool { return len(p.runs) > p.b.Options.CachedRuns }
	p.deadlines.Usage.Evict(tooMany, func(r *actor.Run) bool {
		if !r.Idle() {
			return false
		}
		p.forget(r)
		return true
	})
}

// keptClosed is how many closed runs are kept in memory for those who ask how they ended.
const keptClosed = 256

// retire makes room: of the closed runs only the latest stay.
func (p *Partition) retire(r *actor.Run) {
	if !r.Live() || r.Ended || !r.Idle() {
		return
	}
	r.Ended = true
	p.closed = append(p.closed, r)
	for len(p.closed) > keptClosed {
		oldest := p.closed[0]
		p.closed[0] = nil
		p.closed = p.closed[1:]
		if oldest.Ended && p.runs[oldest.WorkflowID] == oldest {
			if oldest.Ended = false; oldest.Idle() && !oldest.Open() {
				p.forget(oldest)
			}
		}
	}
}

func (p *Partition) forget(r *actor.Run) {
	p.passivate(r)
	p.decisions.EndRecall(r)
	p.deadlines.Usage.Remove(&r.Use)
	delete(p.runs, r.WorkflowID)
}

// OwnLocks lets the requests about locks in this process look at those of this owner, until
// DisownLocks.
func (p *Partition) OwnLocks() { p.keys.Own() }

// DisownLocks undoes OwnLocks.
func (p *Partition) DisownLocks() { p.keys.Disown() }
