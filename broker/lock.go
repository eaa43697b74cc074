package broker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/locks"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/watermark"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/schemas"
)

// A lock is one key of a bucket, and is changed by compare-and-set alone: the owner of the run that asks, or lets go, reads it
// from the leader, changes the record (package locks), and writes it if nobody has done so meanwhile. Whoever comes next is let
// in by the same write; its owner sees that in the bucket and tells its run (lockview.go).
//
// An owner that was suspended must not act on what it remembers. So before each try its claim is checked, and before each that
// repeats another, or heals, its fence too, behind the read of the key: whatever an owner after it has entered would stand in
// what was read, and then the fence is another one (P-13). A write that is already on its way when the claim ends is not held
// back; it replaces nothing that it has not seen.

// lockOp is what one run wants of a lock.
type lockOp struct {
	place   schemas.LockPlace
	limit   int
	leave   bool
	try     bool // it enters at once or not at all
	holder  schemas.Payload
	heal    bool // nobody has just decided this: a former owner may be at work
	parent  *schemas.Execution
	kin     []schemas.Execution
	walked  bool // kin is known
	tickets []*completion
	result  locks.Result
}

// lockChange is a key that is being changed. What comes meanwhile waits, and is then written together.
type lockChange struct {
	key, lock, scope string
	queue            []*lockOp
	at               []*lockOp // what is being written
	tries            int       // that were refused in a row
}

// keyPatience is the pause behind so many tries in a row, of which the server did not carry out the last one, and not because somebody
// was faster.
func keyPatience(tries int) time.Duration {
	return min(effectRetry*time.Duration(tries+1), badLockRetry)
}

// lockRead is a key as its leader has it.
type lockRead struct {
	lock *schemas.LockRecord // nil: absent
	rev  uint64
	last uint64 // if absent, the bucket's last sequence
	size int
}

const (
	// lockMarkerTTL is how long the marker of a deleted key stays: other owners must have seen it by then.
	lockMarkerTTL = time.Hour
	// lockPlaceSize is what a place takes in the key, roughly and at most.
	lockPlaceSize = 1024
	// badLockRetry is how often it is looked whether a key that holds no lock was mended.
	badLockRetry = 5 * time.Second
)

// enterLock asks for a lock that the run waits for, or has by its history.
func (p *partition) enterLock(r *run, l *execution.Lock, t *completion, heal bool) {
	place := schemas.LockPlace{WorkflowID: r.wid, Run: l.Run, EventID: l.EventID, Fence: l.Fence, Since: l.Since, Lease: max(l.Lease, 0)}
	if l.Expires != 0 {
		place.Since = l.Expires.Add(-l.Lease)
	}
	if chain := r.state.FirstRun(); chain != l.Run {
		place.FirstRun = chain
	}
	op := &lockOp{place: place, limit: l.Limit, try: l.Try, heal: heal, parent: r.state.Start.ParentWorkflowExecution}
	p.changeLock(l.Lock, l.Scope, op, t)
}

// leaveLock gives a place back.
func (p *partition) leaveLock(lock, scope string, at lockPlace, t *completion, heal bool) {
	place := schemas.LockPlace{WorkflowID: at.wid, Run: at.asked.Run, EventID: at.asked.EventID}
	p.changeLock(lock, scope, &lockOp{place: place, leave: true, heal: heal}, t)
}

// changeLock queues a change; t is held until it is in the key.
func (p *partition) changeLock(lock, scope string, op *lockOp, t *completion) {
	if t != nil {
		t.Retain()
		op.tickets = append(op.tickets, t)
	}
	key := schemas.LockKey(scope, lock)
	c := p.lockChanges[key]
	if c != nil {
		c.queue = append(c.queue, op)
		return
	}
	c = &lockChange{key: key, lock: lock, scope: scope, queue: []*lockOp{op}}
	p.lockChanges[key] = c
	p.sends++
	p.tryLock(c)
}

// tryLock begins a try: it reads the key, and makes sure that the partition is still ours.
func (p *partition) tryLock(c *lockChange) {
	if !p.canWrite() {
		return // the next owner heals it
	}
	c.at, c.queue = append(c.at, c.queue...), nil
	careful := c.tries > 0 || slices.ContainsFunc(c.at, func(op *lockOp) bool { return op.heal })
	ops := c.at
	writeAsync(p.b, p.loop, func(ctx context.Context) (lockRead, error) {
		got, err := p.b.readLock(ctx, c.key)
		if err == nil && careful {
			err = p.fenced(ctx)
		}
		if err == nil {
			err = p.b.findKin(ctx, got.lock, ops)
		}
		return got, err
	}, func(got lockRead, err error) {
		if err == nil {
			p.writeLock(c, got)
			return
		}
		delay := keyPatience(c.tries)
		switch {
		case errors.Is(err, ErrNewerFence):
			p.fail("change lock %q: %w", c.key, err)
			return
		case unreadable(err):
			delay = badLockRetry
			p.log.WithError(err).WithField("key", c.key).Warn(noLock(err))
		default:
			p.log.WithError(err).WithField("key", c.key).Warn("a lock cannot be read; trying again")
		}
		c.tries++
		p.loop.after(delay, func() { p.tryLock(c) })
	})
}

// readLock reads a key from its leader.
func (b *Broker) readLock(ctx context.Context, key string) (got lockRead, err error) {
	bucket := b.ns.BucketLocks()
	for range 2 {
		var value []byte
		if value, got.rev, err = b.reads.KVLast(ctx, bucket, key); err != nil {
			return got, err
		}
		if value != nil {
			got.size = len(value)
			got.lock, err = schemas.ParseLock(key, value)
			b.locks.put(key, lockEntry{lock: got.lock, rev: got.rev, size: got.size}, false)
			return got, err
		}
		if got.last != 0 { // absent, and it was so when the bucket ended at last
			b.locks.put(key, lockEntry{rev: got.last}, false)
			return got, nil
		}
		if _, got.last, err = b.reads.StreamState(ctx, "KV_"+bucket); err != nil {
			return got, err
		}
		if got.last == 0 || b.locks.get(key) == nil {
			return got, nil
		}
	}
	return got, nil
}

// fenced fails with [ErrNewerFence] if somebody has fenced the partition behind us.
func (p *partition) fenced(ctx context.Context) error {
	last, err := p.b.reads.LastBySubject(ctx, p.b.ns.StreamHistory(p.n), p.b.ns.Fence(p.n))
	if err != nil {
		return fmt.Errorf("read the fence: %w", err)
	}
	if last.Seq != p.fence {
		return fmt.Errorf("%w: it is message %d, ours is %d", ErrNewerFence, last.Seq, p.fence)
	}
	return nil
}

// writeLock changes what was read, and writes it if that is still what the key holds.
func (p *partition) writeLock(c *lockChange, got lockRead) {
	if !p.canWrite() {
		return
	}
	next, changed := p.applyLocks(c, got)
	if !changed {
		p.lockDone(c)
		return
	}
	body, err := schemas.MarshalJSON(next)
	if err != nil {
		p.fail("encode the lock %q: %w", c.key, err)
		return
	}
	bucket := p.b.ns.BucketLocks()
	writeAsync(p.b, p.loop, func(ctx context.Context) (uint64, error) {
		if locks.Empty(next) {
			return p.b.conn.KVExpunge(ctx, bucket, c.key, got.rev, lockMarkerTTL)
		}
		return p.b.conn.KVUpdate(ctx, bucket, c.key, body, got.rev, 0)
	}, func(rev uint64, err error) {
		if err != nil {
			delay := keyPatience(c.tries)
			if errors.Is(err, natsconn.ErrWrongSequence) || errors.Is(err, natsconn.ErrInFlight) {
				delay = casPause + rand.N(casPause)
			} else {
				p.log.WithError(err).WithField("key", c.key).Warn("a lock cannot be written; trying again")
			}
			c.tries++
			p.loop.after(delay, func() { p.tryLock(c) })
			return
		}
		e := lockEntry{rev: rev, size: len(body)}
		if !locks.Empty(next) {
			e.lock = next
		}
		p.forgetLeft(c)
		p.b.locks.put(c.key, e, false)
		p.lockDone(c)
	})
}

// applyLocks makes what was read what the runs want of it.
func (p *partition) applyLocks(c *lockChange, got lockRead) (next *schemas.LockRecord, changed bool) {
	if got.lock != nil {
		own := *got.lock
		own.Holders, own.Waiters = slices.Clone(own.Holders), slices.Clone(own.Waiters)
		next = &own
	} else {
		next = locks.Fresh(c.lock, c.scope, got.last)
	}
	now, size := p.now(), got.size
	for _, op := range c.at {
		switch r := p.runs[op.place.WorkflowID]; {
		case op.leave:
			changed = locks.Leave(next, &op.place, now) || changed
		case r != nil && r.live() && r.state.LockOf(c.key, execution.Asked{Run: op.place.Run, EventID: op.place.EventID}) == nil:
			op.result = locks.Result{} // it has closed or let go meanwhile, and its leaving follows
		default:
			most := p.b.config().LockWaiters
			if size += lockPlaceSize; size > p.b.bodyLimit() {
				most = -1
			}
			op.result = locks.Enter(next, locks.Entry{Place: op.place, Limit: op.limit, Ancestors: op.kin, MaxWaiters: most, Try: op.try}, now)
			op.holder = holderOf(next.Holders, op.place.WorkflowID)
			changed = op.result.Changed || changed
		}
	}
	return next, changed
}

// forgetLeft drops the places that were just given back from what is seen of the key: their going is no news.
func (p *partition) forgetLeft(c *lockChange) {
	v := p.lockViews[c.key]
	if v == nil {
		return
	}
	for _, op := range c.at {
		if op.leave {
			delete(v.ours, placeOfLock(&op.place))
		}
	}
}

// lockDone tells the runs what became of what they asked, and goes on with what has come meanwhile.
func (p *partition) lockDone(c *lockChange) {
	done := c.at
	c.at, c.tries = nil, 0
	for _, op := range done {
		asked := execution.Asked{Run: op.place.Run, EventID: op.place.EventID}
		switch op.result.Outcome {
		case locks.Holds, locks.Shares:
			p.tellLock(op.place.WorkflowID, execution.Granted{Key: c.key, Asked: asked, Place: op.result.Place})
		case locks.Busy:
			p.tellLock(op.place.WorkflowID, execution.Denied{Key: c.key, Asked: asked, Cause: schemas.CauseRequirement, Value: op.holder})
		case locks.Differs:
			p.tellLock(op.place.WorkflowID, execution.Denied{
				Key: c.key, Asked: asked, Cause: schemas.CauseLockLimit, Value: op.holder,
				Details: "limit: the lock is in use with another limit: ask with that one, or when nobody holds it; drover lock list tells it",
			})
		case locks.Full:
			p.tellLock(op.place.WorkflowID, execution.Denied{
				Key: c.key, Asked: asked, Cause: schemas.CauseLockQueue, Value: op.holder,
				Details: "as many runs wait for the lock as its key can hold: ask again later, or use several locks",
			})
		case locks.Lost:
			p.tellLock(op.place.WorkflowID, execution.Lost{
				Key: c.key, Asked: asked, Cause: schemas.CauseLockLost,
				Reason: "the key of the lock was changed by hand or lost, and others hold the lock now",
			})
		case locks.Waits:
			if v := p.lockViews[c.key]; op.parent != nil && v != nil {
				if v.kin == nil {
					v.kin = make(map[lockPlace]bool)
				}
				v.kin[placeOfLock(&op.place)] = true
			}
		}
		watermark.Release(op.tickets)
	}
	if len(c.queue) > 0 {
		p.tryLock(c)
		return
	}
	delete(p.lockChanges, c.key)
	p.sends--
}

// findKin finds the ancestors of those that would have to wait: one of them may hold the lock.
func (b *Broker) findKin(ctx context.Context, r *schemas.LockRecord, ops []*lockOp) error {
	if r == nil || len(r.Holders) == 0 {
		return nil
	}
	for _, op := range ops {
		if op.leave || op.parent == nil || op.walked {
			continue
		}
		kin, err := b.ancestors(ctx, op.parent)
		if err != nil {
			return err
		}
		op.kin, op.walked = kin, true
	}
	return nil
}

// ancestors returns the chains of a run's ancestors, each by its first run, from its parent on. They end where a history is
// gone.
func (b *Broker) ancestors(ctx context.Context, parent *schemas.Execution) (chains []schemas.Execution, err error) {
	for x := parent; x != nil && len(chains) <= b.config().ChildDepth; {
		partition := b.partitionOf(x.WorkflowID)
		page, _, err := b.reads.BatchGet(ctx, b.ns.StreamHistory(partition), b.ns.History(partition, x.WorkflowID, x.Run), 1, 1)
		if err != nil {
			return nil, fmt.Errorf("read the ancestor %s: %w", x.WorkflowID, err)
		}
		if len(page) == 0 || !runs.IsRecord(&page[0]) {
			break
		}
		var first schemas.Record
		if err := schemas.Unmarshal(page[0].Data, &first); err != nil {
			return nil, fmt.Errorf("read the ancestor %s: %w", x.WorkflowID, err)
		}
		if len(first.Events) == 0 {
			break
		}
		started, ok := first.Events[0].Attributes.(*schemas.WorkflowStarted)
		if !ok {
			break
		}
		chain := x.Run
		if started.FirstExecutionRun != "" {
			chain = started.FirstExecutionRun
		}
		chains = append(chains, schemas.Execution{WorkflowID: x.WorkflowID, Run: chain})
		x = started.ParentWorkflowExecution
	}
	return chains, nil
}
