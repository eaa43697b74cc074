package checker

import (
	"maps"
	"slices"
	"strings"

	"github.com/droverhq/drover/schemas"
)

// lockRecords is what a run has said of its locks.
type lockRecords struct {
	locks      map[string]uint64 // the highest fence seen of each lock
	held       map[string]holding
	lockLimits map[string]int // of the locks that were asked for
}

// holding is a lock that the run holds.
type holding struct {
	fence   uint64
	expires schemas.Timestamp
}

func (h *History) applyLock(e schemas.Event) bool {
	switch a := e.Attributes.(type) {
	case *schemas.LockAcquired:
		x := h.lockAnswer(e, a)
		key := lockKey(a.Lock, a.Scope)
		was, held := h.held[key]
		switch {
		case a.Fence < h.locks[key]:
			h.report(RuleLock, e.ID, "lock %q has fence %d after fence %d", a.Lock, a.Fence, h.locks[key])
		case held && x != nil && x.kind == schemas.EventStateRequested:
			h.report(RuleLock, e.ID, "event %d has got lock %q, or the run held it before", a.ScheduledEventID, a.Lock)
		case held && a.Fence != was.fence:
			h.report(RuleLock, e.ID, "lock %q has fence %d; the run holds it with fence %d and "+
				"has not let go", a.Lock, a.Fence, was.fence)
		}
		// Who asks again for what it holds gets the lease that it has.
		if x != nil && a.Expires != 0 && a.Expires != was.expires && a.Holder == nil && !x.leased {
			h.report(RuleLock, e.ID, "lock %q has a lease until %s; event %d asked for none",
				a.Lock, a.Expires, a.ScheduledEventID)
		}
		h.locks[key], h.held[key] = max(h.locks[key], a.Fence), holding{a.Fence, a.Expires}
	case *schemas.LockRefused:
		h.refused(e, RuleLock, a.ScheduledEventID,
			exchange{kind: schemas.EventLockRequested, name: a.Lock, scope: a.Scope})
	case *schemas.LockReleased:
		h.lockReleased(e, a)
	case *schemas.LockBroken:
		h.checkRequest(e, a.RequestID)
		key := lockKey(a.Lock, a.Scope)
		if was, held := h.held[key]; a.Fence != 0 && (!held || a.Fence != was.fence) {
			h.report(RuleLock, e.ID, "lock %q with fence %d is broken; the run holds it with "+
				"fence %d (0: it does not)", a.Lock, a.Fence, was.fence)
		}
		delete(h.held, key)
	default:
		return false
	}
	return true
}

// lockAnswer takes the request that a LockAcquired answers. That may be a SetState of the key
// lock-NAME, which is answered by a StateSet besides.
func (h *History) lockAnswer(e schemas.Event, a *schemas.LockAcquired) *exchange {
	if x := h.exchanges[a.ScheduledEventID]; x != nil && x.kind == schemas.EventStateRequested &&
		x.asked == schemas.DecideSetState {
		return h.openExchange(e, RuleLock, a.ScheduledEventID,
			exchange{kind: x.kind, name: schemas.LockState(a.Lock), scope: a.Scope})
	}
	return h.answer(e, RuleLock, a.ScheduledEventID,
		exchange{kind: schemas.EventLockRequested, name: a.Lock, scope: a.Scope})
}

// lockRequested checks that the run does not wait for the lock already.
func (h *History) lockRequested(e schemas.Event, a *schemas.LockRequested) {
	if _, held := h.held[lockKey(a.Lock, a.Scope)]; !held {
		for id, x := range h.exchanges {
			if x.kind == e.Type() && x.name == a.Lock && x.scope == a.Scope {
				h.report(RuleLock, e.ID, "event %d has asked for lock %q, and has no answer",
					id, a.Lock)
			}
		}
	}
	h.exchanges[e.ID] = &exchange{
		kind: e.Type(), name: a.Lock, scope: a.Scope, decided: a.DeciderCompletedEventID,
		leased: a.Lease.Limited(),
	}
	h.lockLimits[lockKey(a.Lock, a.Scope)] = a.Limit
}

// stateSet checks that a run which has set the key lock-NAME holds the lock.
func (h *History) stateSet(e schemas.Event, a *schemas.StateSet) {
	if lock, ok := schemas.StateLock(a.Key); ok {
		if was, held := h.held[lockKey(lock, a.Scope)]; !held || was.fence != a.Revision {
			h.report(RuleLock, e.ID,
				"the run holds lock %q with fence %d, it says; it holds it with fence %d (0: it does not)",
				lock, a.Revision, was.fence)
		}
	}
}

// inheritLocks takes the locks that a run has from the one which it continues.
func (h *History) inheritLocks(held []schemas.HeldLock) {
	for _, l := range held {
		h.locks[lockKey(l.Lock, l.Scope)] = l.Fence
	}
	maps.Copy(h.held, holdings(held))
}

func holdings(held []schemas.HeldLock) map[string]holding {
	all := make(map[string]holding, len(held))
	for _, l := range held {
		all[lockKey(l.Lock, l.Scope)] = holding{l.Fence, l.Expires}
	}
	return all
}

// lockReleased gives a lock back, or withdraws the requests for it. A release without fence may
// find neither: the lock was broken, or the decider is careful.
func (h *History) lockReleased(e schemas.Event, a *schemas.LockReleased) {
	key := lockKey(a.Lock, a.Scope)
	was, held := h.held[key]
	if a.Fence != 0 && (!held || a.Fence != was.fence) {
		h.report(RuleLock, e.ID,
			"lock %q is released with fence %d; the run holds it with fence %d (0: it does not)",
			a.Lock, a.Fence, was.fence)
	}
	if held {
		delete(h.held, key)
		return
	}
	for id, x := range h.exchanges {
		if x.kind == schemas.EventLockRequested && x.name == a.Lock && x.scope == a.Scope {
			delete(h.exchanges, id)
		}
	}
}

// checkLetGo checks that a run has given back its locks before its end, and left the lines in which
// it stood. What it holds goes on to the run that continues it.
func (h *History) checkLetGo(e schemas.Event) {
	if h.lastUnknown != 0 {
		return // it may have
	}
	if h.successor == "" {
		for _, key := range slices.Sorted(maps.Keys(h.held)) {
			h.report(RuleLock, e.ID,
				"%s, but the run holds lock %q with fence %d and has not let go",
				e.Type(), lockName(key), h.held[key].fence)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(h.exchanges)) {
		if x := h.exchanges[id]; x.kind == schemas.EventLockRequested {
			h.report(RuleLock, e.ID,
				"%s, but the run waits for lock %q, which event %d has asked for",
				e.Type(), x.name, id)
		}
	}
}

func lockName(key string) string {
	_, lock, _ := strings.Cut(key, "\x00")
	return lock
}

func lockKey(lock, scope string) string { return scope + "\x00" + lock }
