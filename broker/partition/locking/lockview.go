package locking

import (
	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/intake"
	"github.com/droverhq/drover/broker/partition/keyed"
	"github.com/droverhq/drover/schemas"
)

// What the owner of a partition does with what it sees of the locks (P-13): a holder that was not
// told is told; a holder or waiter that is closed, or never asked, is taken out; one that has lost
// its place gets it back, or learns that it is gone. So a lock heals whatever was cut short, by
// whom ever, and what is told twice does no harm.

// Seen takes the next entry of a lock, from any goroutine.
func (l *lockKeys) Seen(key string, e keyed.Lock) {
	l.p.Loop.Post(func() { l.views.See(key, e) })
}

// JudgeLocksOf compares every place of a workflow with it.
func (ks *Keys) JudgeLocksOf(r *actor.Run) {
	for key, at := range ks.locks.views.Of(r.WorkflowID) {
		ks.judgeLock(key, at)
	}
}

// Locking tells whether a lock of the run is being changed.
func (ks *Keys) Locking(r *actor.Run) bool {
	for key, op := range ks.locks.queue.All() {
		if r.State.Locks[key] != nil || op.place.WorkflowID == r.WorkflowID {
			return true
		}
	}
	return false
}

// judgeLock compares a place with its run, once that is loaded and the history has all that is in
// memory of it: what was decided and is not written yet must change no key.
func (ks *Keys) judgeLock(key string, at keyed.Place) {
	r := ks.host.Get(at.WorkflowID)
	// the next owner looks again, or who repairs the run
	ks.host.WhenKnown(r, func() { ks.judgeLater(r, key, at) }, func() {})
}

func (ks *Keys) judgeLater(r *actor.Run, key string, at keyed.Place) {
	if r.Load.IsUnreadable() || ks.host.Leaving() {
		return // nobody knows what the run has; the next owner looks again
	}
	ks.host.AfterPending(r, func() {
		switch {
		case ks.host.InMemory(at.WorkflowID) != r || r.Load.Waits():
			ks.judgeLock(key, at)
		case !r.IsSettled():
			ks.judgeLater(r, key, at)
		default:
			ks.judgeNow(r, key, at)
		}
	})
}

func (ks *Keys) judgeNow(r *actor.Run, key string, at keyed.Place) {
	var l *execution.Lock
	if r.Live() && (r.Open() || r.Continues()) {
		l = r.State.LockOf(key, at.Asked)
	}
	child := l != nil && r.State.Start.ParentWorkflowExecution != nil
	j := ks.locks.views.Judge(key, at, l, child)
	switch j.Verdict {
	case keyed.Agree:
	case keyed.TakeOut:
		ks.Log.WithField("workflow", at.WorkflowID).WithField("lock", j.Lock.Lock).
			WithField("scope", j.Lock.Scope).
			Info("taking out of a lock a run that has closed, let go, or never asked")
		ks.LeaveLock(j.Lock.Lock, j.Lock.Scope, at, nil, true)
	case keyed.Tell:
		ks.tellLock(at.WorkflowID, execution.Granted{Key: key, Asked: at.Asked, Place: *j.Place})
	case keyed.Expire:
		ks.tellLock(at.WorkflowID, leaseOver(key, l))
	case keyed.Later:
		ks.Loop.After(j.After, func() { ks.judgeLock(key, at) })
	case keyed.Enter:
		ks.EnterLock(r, l, nil, true)
	}
}

func leaseOver(key string, l *execution.Lock) execution.Lost {
	return execution.Lost{
		Key: key, Asked: l.Asked(), Cause: schemas.CauseLeaseExpired,
		Reason: "the lease ran out at " + l.Expires.String() + ", and another run wanted the lock",
	}
}

// tellLock lets a run know of a lock. It is in no log: if it is not in the history when the owner
// ends, the next one tells it.
func (ks *Keys) tellLock(wid string, m execution.Message) {
	r := ks.host.Get(wid)
	ks.host.WhenKnown(r, func() {
		if r.Live() {
			ks.host.Deliver(r,
				&actor.Message{WorkflowID: wid, Event: m, At: ks.host.Now(), Log: intake.None})
		}
	}, func() {})
}
