package locking

import (
	"context"
	"fmt"
	"slices"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/locks"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/partition/keyed"
	"github.com/droverhq/drover/broker/partition/watermark"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/schemas"
)

// A lock is one key of a bucket, and is changed by compare-and-set alone (package keyed): the owner
// of the run that asks, or lets go, reads it from the leader, changes the record (package locks),
// and writes it if nobody has done so meanwhile. Whoever comes next is let in by the same write;
// its owner sees that in the bucket and tells its run (lockview.go).
//
// An owner that was suspended must not act on what it remembers. Package keyed checks its claim,
// and its fence where that is needed (P-13).

// lockOp is what one run wants of a lock.
type lockOp struct {
	lock, scope string
	place       schemas.LockPlace
	limit       int
	leave       bool
	try         bool // it enters at once or not at all
	holder      schemas.Payload
	parent      *schemas.Execution
	kin         []schemas.Execution
	walked      bool // kin is known
	completion  *watermark.Completion
	result      locks.Result
}

// lockKeys are the locks that runs of a partition want or have.
type lockKeys struct {
	p *Keys
	// queue has the locks that are being changed.
	queue *keyed.Queue[*lockOp, schemas.LockRecord]
	// views are the locks in which workflows of the partition have places.
	views *keyed.Views
}

func newLockKeys(ks *Keys) *lockKeys {
	l := &lockKeys{p: ks}
	l.queue, l.views = keyed.New(keyHost{ks}, l), keyed.NewViews(keyHost{ks})
	return l
}

// lockPlaceSize is what a place takes in the key, roughly and at most.
const lockPlaceSize = 1024

// EnterLock asks for a lock that the run waits for, or has by its history.
func (ks *Keys) EnterLock(r *actor.Run, l *execution.Lock, t *watermark.Completion, heal bool) {
	place := schemas.LockPlace{
		WorkflowID: r.WorkflowID, Run: l.Run, EventID: l.EventID, Fence: l.Fence, Since: l.Since,
		Lease: max(l.Lease, 0),
	}
	if l.Expires != 0 {
		place.Since = l.Expires.Add(-l.Lease)
	}
	if chain := r.State.FirstRun(); chain != l.Run {
		place.FirstRun = chain
	}
	op := &lockOp{
		lock: l.Lock, scope: l.Scope, place: place, limit: l.Limit, try: l.Try,
		parent: r.State.Start.ParentWorkflowExecution,
	}
	ks.changeLock(op, t, heal)
}

// LeaveLock gives a place back.
func (ks *Keys) LeaveLock(lock, scope string, at keyed.Place, t *watermark.Completion, heal bool) {
	place := schemas.LockPlace{
		WorkflowID: at.WorkflowID, Run: at.Asked.Run, EventID: at.Asked.EventID,
	}
	ks.changeLock(&lockOp{lock: lock, scope: scope, place: place, leave: true}, t, heal)
}

// changeLock queues a change; t is retained until it is in the key. With heal, nobody has just
// decided it: a former owner may be at work.
func (ks *Keys) changeLock(op *lockOp, t *watermark.Completion, heal bool) {
	t.Retain()
	op.completion = t
	ks.locks.queue.Add(schemas.LockKey(op.scope, op.lock), op, heal)
}

// Name is part of [keyed.Bucket].
func (l *lockKeys) Name() string { return "lock" }

// Read reads a lock, and finds the ancestors of those that it might let in.
func (l *lockKeys) Read(ctx context.Context, key string, ops []*lockOp) (keyed.Lock, error) {
	got, err := l.p.Env.ReadLock(ctx, key)
	if err == nil {
		err = findKin(l.p.Env, ctx, got.Record, ops)
	}
	return got, err
}

// Advice is part of [keyed.Bucket].
func (l *lockKeys) Advice(err error) string {
	if env.Undecodable(err) {
		return env.NoLock(err)
	}
	return ""
}

// Empty is part of [keyed.Bucket].
func (l *lockKeys) Empty(r *schemas.LockRecord) bool { return locks.Empty(r) }

// Pending is part of [keyed.Bucket]: a lock changes only because a run wants it to.
func (l *lockKeys) Pending(string) bool { return false }

// Write is part of [keyed.Bucket].
func (l *lockKeys) Write(ctx context.Context, key string, body []byte, rev uint64) (uint64, error) {
	return l.p.Env.WriteKey(ctx, l.p.Env.NS.BucketLocks(), key, body, rev)
}

// Apply makes what was read what the runs want of it.
func (l *lockKeys) Apply(
	key string, ops []*lockOp, got keyed.Lock,
) (next *schemas.LockRecord, changed bool) {
	ks := l.p
	if got.Record != nil {
		own := *got.Record
		own.Holders, own.Waiters = slices.Clone(own.Holders), slices.Clone(own.Waiters)
		next = &own
	} else {
		next = locks.Fresh(ops[0].lock, ops[0].scope, got.Last)
	}
	now, size := ks.host.Now(), got.Size
	for _, op := range ops {
		switch r := ks.host.InMemory(op.place.WorkflowID); {
		case op.leave:
			changed = locks.Leave(next, &op.place, now) || changed
		case r != nil && r.Live() && r.State.LockOf(key, op.asked()) == nil:
			op.result = locks.Result{} // it has closed or let go meanwhile, and its leaving follows
		default:
			most := ks.Env.Config().LockWaiters
			if size += lockPlaceSize; size > ks.Env.BodyLimit() {
				most = -1
			}
			op.result = locks.Enter(next, locks.Entry{
				Place: op.place, Limit: op.limit, Ancestors: op.kin, MaxWaiters: most, Try: op.try,
			}, now)
			op.holder = holderOf(next.Holders, op.place.WorkflowID)
			changed = op.result.Changed || changed
		}
	}
	return next, changed
}

// Done tells the runs what became of what they asked.
func (l *lockKeys) Done(key string, ops []*lockOp, e keyed.Lock, stored bool) []*lockOp {
	if stored {
		l.seeWritten(key, ops, e)
	}
	for _, op := range ops {
		if m := op.outcome(key); m != nil {
			l.p.tellLock(op.place.WorkflowID, m)
		}
		if op.result.Outcome == locks.Waits && op.parent != nil {
			l.views.WaitsForKin(key, keyed.PlaceOf(&op.place))
		}
		op.completion.Release()
	}
	return nil
}

// seeWritten puts what was just written into the table. The places that were given back are
// dropped from the view first: their going is no news.
func (l *lockKeys) seeWritten(key string, ops []*lockOp, e keyed.Lock) {
	for _, op := range ops {
		if op.leave {
			l.views.Left(key, keyed.PlaceOf(&op.place))
		}
	}
	if locks.Empty(e.Record) {
		e.Record = nil
	}
	l.p.Env.Locks.Put(key, e)
}

func (op *lockOp) asked() execution.Asked {
	return execution.Asked{Run: op.place.Run, EventID: op.place.EventID}
}

// outcome is what the run is told; nil if there is nothing to tell.
func (op *lockOp) outcome(key string) execution.Message {
	denied := execution.Denied{Key: key, Asked: op.asked(), Value: op.holder}
	switch op.result.Outcome {
	case locks.Holds, locks.Shares:
		return execution.Granted{Key: key, Asked: op.asked(), Place: op.result.Place}
	case locks.Busy:
		denied.Cause = schemas.CauseRequirement
		return denied
	case locks.Differs:
		denied.Cause = schemas.CauseLockLimit
		denied.Details = "limit: the lock is in use with another limit: ask with that one, or when nobody holds it; " +
			"drover lock list tells it"
		return denied
	case locks.Full:
		denied.Cause = schemas.CauseLockQueue
		denied.Details = "as many runs wait for the lock as its key can hold: ask again later, or use several locks"
		return denied
	case locks.Lost:
		return execution.Lost{
			Key: key, Asked: op.asked(), Cause: schemas.CauseLockLost,
			Reason: "the key of the lock was changed by hand or lost, and others hold the lock now",
		}
	}
	return nil
}

// findKin finds the ancestors of those that would have to wait: one of them may hold the lock.
func findKin(b *env.Env, ctx context.Context, r *schemas.LockRecord, ops []*lockOp) error {
	if r == nil || len(r.Holders) == 0 {
		return nil
	}
	for _, op := range ops {
		if op.leave || op.parent == nil || op.walked {
			continue
		}
		kin, err := ancestors(b, ctx, op.parent)
		if err != nil {
			return err
		}
		op.kin, op.walked = kin, true
	}
	return nil
}

// ancestors returns the chains of a run's ancestors, each by its first run, from its parent on.
// They end where a history is gone.
func ancestors(
	b *env.Env, ctx context.Context, parent *schemas.Execution,
) (chains []schemas.Execution, err error) {
	for x := parent; x != nil && len(chains) <= b.Config().ChildDepth; {
		partition := b.PartitionOf(x.WorkflowID)
		page, _, err := b.Reads.BatchGet(ctx, b.NS.StreamHistory(partition),
			b.NS.History(partition, x.WorkflowID, x.Run), 1, 1)
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

// Own lets the requests about locks in this process look at those of this owner, until
// Disown.
func (ks *Keys) Own() { ks.Env.Locks.Own(ks.Partition, ks.locks) }

// Disown undoes Own.
func (ks *Keys) Disown() { ks.Env.Locks.Disown(ks.Partition, ks.locks) }
