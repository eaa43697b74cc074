package checker

import "github.com/droverhq/drover/schemas"

func (h *History) applyLock(e schemas.Event) bool {
	switch a := e.Attributes.(type) {
	case *schemas.LockAcquired:
		h.answer(e, RuleLock, a.ScheduledEventID, exchange{kind: schemas.EventLockRequested, name: a.Lock, scope: a.Scope})
		key := lockKey(a.Lock, a.Scope)
		if a.Fence < h.locks[key] {
			h.report(RuleLock, e.ID, "lock %q has fence %d after fence %d", a.Lock, a.Fence, h.locks[key])
		}
		h.locks[key], h.held[key] = max(h.locks[key], a.Fence), a.Fence
	case *schemas.LockReleased:
		h.lockReleased(e, a)
	case *schemas.LockBroken:
		delete(h.held, lockKey(a.Lock, a.Scope))
	default:
		return false
	}
	return true
}

// lockReleased gives a lock back, or withdraws the requests for it. A release without fence may find neither: the lock
// was broken, or the decider is careful.
func (h *History) lockReleased(e schemas.Event, a *schemas.LockReleased) {
	key := lockKey(a.Lock, a.Scope)
	fence, held := h.held[key]
	if a.Fence != 0 && (!held || a.Fence != fence) {
		h.report(RuleLock, e.ID, "lock %q is released with fence %d; the run holds it with fence %d (0: it does not)", a.Lock, a.Fence, fence)
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

func lockKey(lock, scope string) string { return scope + "\x00" + lock }
