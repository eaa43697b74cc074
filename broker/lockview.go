package broker

import (
	"time"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/schemas"
)

// What the owner of a partition does with what it sees of the locks (P-13): a holder that was not told is told; a holder or
// waiter that is closed, or never asked, is taken out; one that has lost its place gets it back, or learns that it is gone. So
// a lock heals whatever was cut short, by whom ever, and what is told twice does no harm.

// lockPlace names the place of a workflow of this partition.
type lockPlace struct {
	wid   string
	asked execution.Asked
}

func placeOfLock(p *schemas.LockPlace) lockPlace {
	return lockPlace{wid: p.WorkflowID, asked: execution.Asked{Run: p.Run, EventID: p.EventID}}
}

// lockView is a key that has places of this partition's workflows.
type lockView struct {
	entry lockEntry
	ours  map[lockPlace]uint64 // their fences; 0: it waits
	// kin are those that wait and have a parent: they enter when an ancestor does.
	kin   map[lockPlace]bool
	lease *timer // ends the lease of a holder that one of ours waits for
}

func (v *lockView) find(at lockPlace) *schemas.LockPlace {
	if v == nil || v.entry.lock == nil {
		return nil
	}
	for _, places := range [][]schemas.LockPlace{v.entry.lock.Holders, v.entry.lock.Waiters} {
		for i := range places {
			if placeOfLock(&places[i]) == at {
				return &places[i]
			}
		}
	}
	return nil
}

// oursIn returns the places of the partition's workflows, with their fences.
func (p *partition) oursIn(r *schemas.LockRecord) map[lockPlace]uint64 {
	var ours map[lockPlace]uint64
	for _, places := range [][]schemas.LockPlace{r.Holders, r.Waiters} {
		for i := range places {
			if p.b.partitionOf(places[i].WorkflowID) != p.n {
				continue
			}
			if ours == nil {
				ours = make(map[lockPlace]uint64)
			}
			ours[placeOfLock(&places[i])] = places[i].Fence
		}
	}
	return ours
}

// lockSeen takes the next entry of a key. Only places that have come, gone or moved are looked at.
func (p *partition) lockSeen(key string, e lockEntry) {
	v := p.keys.locks.views[key]
	if v == nil {
		v = &lockView{}
		p.keys.locks.views[key] = v
	}
	before, had := v.entry, v.ours
	v.entry, v.ours = e, nil
	if e.lock != nil {
		v.ours = p.oursIn(e.lock)
	}
	for at, fence := range v.ours {
		if old, known := had[at]; !known || old != fence {
			p.judgeLock(key, at)
		}
	}
	for at := range had {
		if _, still := v.ours[at]; !still {
			p.judgeLock(key, at)
		}
	}
	for at := range v.kin {
		switch fence, still := v.ours[at]; {
		case !still || fence != 0:
			delete(v.kin, at)
		case newHolder(before.lock, e.lock):
			p.judgeLock(key, at)
		}
	}
	p.watchLease(key, v, 0)
	if len(v.ours) == 0 {
		delete(p.keys.locks.views, key)
	}
}

func newHolder(before, now *schemas.LockRecord) bool {
	highest := func(r *schemas.LockRecord) uint64 {
		if r == nil || len(r.Holders) == 0 {
			return 0
		}
		return r.Holders[len(r.Holders)-1].Fence
	}
	return highest(now) > highest(before)
}

// watchLease wakes the first of ours that waits when a lease of a holder runs out, but not sooner than after least.
func (p *partition) watchLease(key string, v *lockView, least time.Duration) {
	if v.lease != nil {
		p.loop.cancel(v.lease)
		v.lease = nil
	}
	if v.entry.lock == nil {
		return
	}
	var first *schemas.LockPlace
	for i := range v.entry.lock.Waiters {
		if w := &v.entry.lock.Waiters[i]; p.b.partitionOf(w.WorkflowID) == p.n {
			first = w
			break
		}
	}
	if first == nil {
		return
	}
	soonest := schemas.Timestamp(0)
	for i := range v.entry.lock.Holders {
		if at := v.entry.lock.Holders[i].Expires(); at != 0 && (soonest == 0 || at < soonest) {
			soonest = at
		}
	}
	if soonest == 0 {
		return
	}
	at := placeOfLock(first)
	v.lease = p.loop.after(max(soonest.Sub(p.now())+leaseLook, least), func() {
		v.lease = nil
		p.judgeLock(key, at)
		if p.keys.locks.views[key] == v {
			p.watchLease(key, v, time.Second)
		}
	})
}

// leaseLook is how long behind the end of a lease, by our estimate of the server's clock, we look: the estimate is never ahead,
// so the lease is over by then, and a clock that stands still does not make us look without pause.
const leaseLook = 20 * time.Millisecond

// judgeLocksOf compares every place of a workflow with it.
func (p *partition) judgeLocksOf(r *run) {
	for key, v := range p.keys.locks.views {
		for at := range v.ours {
			if at.wid == r.wid {
				p.judgeLock(key, at)
			}
		}
	}
}

// locking tells whether a lock of the run is being changed.
func (p *partition) locking(r *run) bool {
	for key, op := range p.keys.locks.queue.All() {
		if r.state.Locks[key] != nil || op.place.WorkflowID == r.wid {
			return true
		}
	}
	return false
}

// judgeLock compares a place with its run, once that is loaded and the history has all that is in memory of it: what was
// decided and is not written yet must change no key.
func (p *partition) judgeLock(key string, at lockPlace) {
	r := p.get(at.wid)
	p.whenKnown(r, func() { p.judgeBehind(r, key, at) }, func() {}) // the next owner looks again, or who repairs the run
}

func (p *partition) judgeBehind(r *run, key string, at lockPlace) {
	if r.broken != nil || p.leaving != nil {
		return // nobody knows what the run has; the next owner looks again
	}
	p.behind(r, func() {
		switch {
		case p.runs[at.wid] != r || r.loading:
			p.judgeLock(key, at)
		case !r.isSettled():
			p.judgeBehind(r, key, at)
		default:
			p.judgeNow(r, key, at)
		}
	})
}

func (p *partition) judgeNow(r *run, key string, at lockPlace) {
	v := p.keys.locks.views[key]
	place := v.find(at)
	var l *execution.Lock
	if r.live() && (r.open() || r.continues()) {
		l = r.state.LockOf(key, at.asked)
	}
	switch {
	case place == nil && (l == nil || l.Shared()):
	case l == nil || l.Shared():
		p.log.WithField("workflow", at.wid).WithField("lock", v.entry.lock.Lock).WithField("scope", v.entry.lock.Scope).Info("taking out of a lock a run that has closed, let go, or never asked")
		p.leaveLock(v.entry.lock.Lock, v.entry.lock.Scope, at, nil, true)
	case place != nil && place.Fence != 0 && l.Waits():
		p.tellLock(at.wid, execution.Granted{Key: key, Asked: at.asked, Place: *place})
	case place != nil && place.Fence != 0:
	case place != nil && l.Waits() && !v.wants(at, r, p.now()):
	case l.Expires != 0 && l.Expires <= p.now():
		p.tellLock(at.wid, leaseOver(key, l))
	case l.Expires != 0 && l.Expires.Sub(p.now()) < leaseNear && place == nil:
		// Another owner's clock may be ahead of ours: then it was the lease.
		p.loop.after(l.Expires.Sub(p.now())+leaseLook, func() { p.judgeLock(key, at) })
	default:
		p.enterLock(r, l, nil, true)
	}
}

// leaseNear is how far the estimates of two owners may be apart.
const leaseNear = 2 * time.Second

// wants tells whether a run that waits has a reason to try again, and remembers that it may have one when the holder changes.
func (v *lockView) wants(at lockPlace, r *run, now schemas.Timestamp) bool {
	again := false
	if r.state.Start.ParentWorkflowExecution != nil {
		again = true
		if v.kin == nil {
			v.kin = make(map[lockPlace]bool)
		}
		v.kin[at] = true
	}
	for i := range v.entry.lock.Holders {
		if at := v.entry.lock.Holders[i].Expires(); at != 0 && at <= now {
			again = true
		}
	}
	return again
}

func leaseOver(key string, l *execution.Lock) execution.Lost {
	return execution.Lost{
		Key: key, Asked: l.Asked(), Cause: schemas.CauseLeaseExpired,
		Reason: "the lease ran out at " + l.Expires.String() + ", and another run wanted the lock",
	}
}

// tellLock lets a run know of a lock. It is in no log: if it is not in the history when the owner ends, the next one tells it.
func (p *partition) tellLock(wid string, m execution.Message) {
	r := p.get(wid)
	p.whenKnown(r, func() {
		if r.live() {
			p.deliver(r, &message{wid: wid, event: m, at: p.now(), log: noLog})
		}
	}, func() {})
}
