package execution

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/droverhq/drover/schemas"
)

// Lock is a lock that the run holds or waits for. Who holds it is decided by its key in the bucket;
// this is what the history knows. A lock that is given back is gone from the state, whether the key
// has heard of it or not.
type Lock struct {
	Lock  string           `json:"lock"`
	Scope string           `json:"scope,omitempty"`
	Limit int              `json:"limit,omitempty"`
	Lease schemas.Duration `json:"lease,omitempty"`
	// Fence is 0 while the run waits.
	Fence   uint64            `json:"fence,omitempty"`
	Expires schemas.Timestamp `json:"expires,omitempty"`
	// Holder is the ancestor that holds the lock, if the run enters because of it.
	Holder *schemas.Execution `json:"holder,omitempty"`
	// Try: the run asks by a SetState of the key lock-NAME, and does not stand in line.
	Try bool `json:"try,omitempty"`
	// Run and EventID name the LockRequested, or that StateRequested; the run may be an earlier one
	// of the chain.
	Run     string `json:"run"`
	EventID int64  `json:"eventId"`
	// Since is when the run asked, or when it got the lock.
	Since schemas.Timestamp `json:"since"`
	// By is the event of this run that brought it here: the request, or the start of a run that
	// continues another.
	By int64 `json:"by"`
}

// Key is the lock's key in the bucket.
func (l *Lock) Key() string { return schemas.LockKey(l.Scope, l.Lock) }

// Waits tells whether the run has asked, and has no answer.
func (l *Lock) Waits() bool { return l.Fence == 0 }

// Shared tells whether an ancestor holds the lock.
func (l *Lock) Shared() bool { return l.Holder != nil }

// Asked names the request.
func (l *Lock) Asked() Asked { return Asked{Run: l.Run, EventID: l.EventID} }

// LockOf returns the lock that a request of the run's chain has asked for, if the run still holds
// it or waits for it.
func (s *State) LockOf(key string, a Asked) *Lock {
	if l := s.Locks[key]; l != nil && l.Asked() == a {
		return l
	}
	return nil
}

// OpenLocks returns the locks that the run holds or waits for, in the order in which it got them or
// asked.
func (s *State) OpenLocks() []*Lock {
	return slices.SortedFunc(maps.Values(s.Locks), func(a, b *Lock) int {
		return cmp.Or(cmp.Compare(a.By, b.By), cmp.Compare(a.Key(), b.Key()))
	})
}

func (s *State) openLocks() []Effect {
	var open []Effect
	for _, l := range s.OpenLocks() {
		if !l.Shared() {
			open = append(open, EnterLock{Key: l.Key(), Asked: l.Asked(), By: l.By})
		}
	}
	return open
}

// heldLocks are what a run that continues this one has from it.
func (s *State) heldLocks() []schemas.HeldLock {
	var held []schemas.HeldLock
	for _, l := range s.OpenLocks() {
		if !l.Waits() {
			held = append(held, schemas.HeldLock{
				Lock: l.Lock, Scope: l.Scope, Limit: l.Limit, Lease: l.Lease, Fence: l.Fence,
				Expires: l.Expires, Holder: l.Holder,
				Run: l.Run, EventID: l.EventID,
			})
		}
	}
	return held
}

func (s *State) takeLocks(held []schemas.HeldLock, at schemas.Timestamp) {
	for _, h := range held {
		s.addLock(&Lock{
			Lock: h.Lock, Scope: h.Scope, Limit: h.Limit, Lease: h.Lease, Fence: h.Fence,
			Expires: h.Expires, Holder: h.Holder,
			Run: h.Run, EventID: h.EventID, Since: at, By: 1,
		})
	}
}

func (s *State) addLock(l *Lock) {
	if s.Locks == nil {
		s.Locks = make(map[string]*Lock)
	}
	s.Locks[l.Key()] = l
}

func (s *State) applyLock(e schemas.Event) bool {
	switch a := e.Attributes.(type) {
	case *schemas.LockRequested:
		if l := s.Locks[schemas.LockKey(a.Scope, a.Lock)]; l != nil && !l.Waits() {
			return true // asked again for what it holds
		}
		s.addLock(&Lock{
			Lock: a.Lock, Scope: a.Scope, Limit: a.Limit, Lease: a.Lease, Run: s.Run, EventID: e.ID,
			Since: e.Time, By: e.ID,
		})
	case *schemas.LockAcquired:
		if l := s.Locks[schemas.LockKey(a.Scope, a.Lock)]; l != nil && l.Waits() {
			l.Fence, l.Expires, l.Holder, l.Since, l.Try = a.Fence, a.Expires, a.Holder, e.Time, false
		}
	case *schemas.LockRefused:
		if a.ScheduledEventID != 0 {
			delete(s.Locks, schemas.LockKey(a.Scope, a.Lock))
		}
	case *schemas.LockReleased:
		delete(s.Locks, schemas.LockKey(a.Scope, a.Lock))
	case *schemas.LockBroken:
		delete(s.Locks, schemas.LockKey(a.Scope, a.Lock))
		s.rememberRequest(a.RequestID)
	default:
		return false
	}
	return true
}

func (st *step) acquireLock(a *schemas.AcquireLock, completed int64) bool {
	held := st.Locks[schemas.LockKey(a.Scope, a.Lock)]
	if cause, details := st.lockCause(a, held); cause != "" {
		st.emit(&schemas.LockRefused{
			Lock: a.Lock, Scope: a.Scope, Cause: cause, Details: details,
			DeciderCompletedEventID: completed,
		})
		return false
	}
	id := st.emit(&schemas.LockRequested{
		Lock: a.Lock, Scope: a.Scope, Limit: a.Limit, Lease: a.Lease,
		DeciderCompletedEventID: completed,
	})
	if held != nil {
		st.emit(&schemas.LockAcquired{
			Lock: held.Lock, Scope: held.Scope, Fence: held.Fence, Expires: held.Expires,
			Holder: held.Holder, ScheduledEventID: id,
		})
		return false // the decider is told, as it is of every lock that it gets
	}
	st.do(EnterLock{
		Key: schemas.LockKey(a.Scope, a.Lock), Asked: Asked{Run: st.Run, EventID: id}, By: id,
	})
	return true
}

// lockCause says why a lock cannot be asked for, "" if it can. held is what the run has of the lock
// already.
func (st *step) lockCause(
	a *schemas.AcquireLock, held *Lock,
) (cause schemas.Cause, details string) {
	err := schemas.ValidateLock(a.Lock, a.Scope)
	switch {
	case err != nil:
		return schemas.CauseInvalidAttributes, err.Error()
	case a.Limit < 0 || a.Limit > schemas.MaxLockLimit:
		return schemas.CauseInvalidAttributes, fmt.Sprintf(
			"limit: want a number from 0 to %d, where 0 means 1", schemas.MaxLockLimit)
	case a.ValidateLimits() != nil:
		return schemas.CauseInvalidAttributes, a.ValidateLimits().Error()
	case held == nil && st.retentionDisabled():
		return schemas.CauseInvalidAttributes, lockUnkept
	case held != nil && held.Waits():
		return schemas.CauseLockRequested, fmt.Sprintf(
			"event %d has asked for the lock, and the run waits for it: wait for LockAcquired, or release it first",
			held.EventID)
	case held != nil && max(held.Limit, 1) != max(a.Limit, 1):
		return schemas.CauseLockLimit, fmt.Sprintf(
			"limit: the run holds the lock with a limit of %d: release it first, or leave the limit as it is",
			max(held.Limit, 1))
	case held == nil && len(st.Locks) >= st.c.OpenLocks:
		return schemas.CauseOpenLocksLimit, fmt.Sprintf(
			"the run holds or waits for %d locks, and no run may have more: release one",
			st.c.OpenLocks)
	case st.full():
		return schemas.CauseEventLimitExceeded, st.fullDetails()
	}
	return "", ""
}

// releaseLock gives a lock back, or leaves the line. To release what the run does not have does no
// harm: it may have been broken a moment ago.
func (st *step) releaseLock(a *schemas.ReleaseLock, completed int64) bool {
	if err := schemas.ValidateLock(a.Lock, a.Scope); err != nil {
		st.emit(&schemas.LockRefused{
			Lock: a.Lock, Scope: a.Scope, Cause: schemas.CauseInvalidAttributes,
			DeciderCompletedEventID: completed, Details: err.Error(), Decision: a.DecisionType(),
		})
		return false
	}
	l := st.Locks[schemas.LockKey(a.Scope, a.Lock)]
	if l != nil && l.Try {
		st.emit(&schemas.LockRefused{
			Lock: a.Lock, Scope: a.Scope, Cause: schemas.CauseLockRequested,
			DeciderCompletedEventID: completed,
			Details: fmt.Sprintf(
				"event %d tries to take the lock: wait for StateSet or StateRefused", l.EventID),
			Decision: a.DecisionType(),
		})
		return false
	}
	ev := &schemas.LockReleased{Lock: a.Lock, Scope: a.Scope, DeciderCompletedEventID: completed}
	if l != nil {
		ev.Fence = l.Fence
	}
	st.emit(ev)
	st.leave(l)
	return true
}

func (st *step) leave(l *Lock) {
	if l != nil && !l.Shared() {
		st.do(LeaveLock{Lock: l.Lock, Scope: l.Scope, Asked: l.Asked()})
	}
}

// letGo gives back every lock of a run that is about to close with event. What it holds goes to the
// run that continues it, if one does; where it stands in line it leaves, since the next run would
// not know of the request.
func (st *step) letGo(event schemas.Attributes) {
	if len(st.Locks) == 0 {
		return
	}
	_, continues := event.(*schemas.WorkflowContinuedAsNew)
	for _, l := range st.OpenLocks() {
		if continues && !l.Waits() {
			continue
		}
		if !l.Try {
			st.emit(&schemas.LockReleased{Lock: l.Lock, Scope: l.Scope, Fence: l.Fence})
		}
		st.leave(l)
	}
}

// granted notes that the run has a lock. Word of it may come twice, and late.
func (st *step) granted(m Granted) {
	l := st.LockOf(m.Key, m.Asked)
	if l == nil || !l.Waits() {
		return
	}
	try := l.Try
	ev := &schemas.LockAcquired{
		Lock: l.Lock, Scope: l.Scope, Fence: m.Place.Fence, Expires: m.Place.Expires(),
		ScheduledEventID: l.EventID,
	}
	if (m.Asked != Asked{Run: m.Place.Run, EventID: m.Place.EventID}) ||
		m.Place.WorkflowID != st.WorkflowID {
		ev.Holder = &schemas.Execution{WorkflowID: m.Place.WorkflowID, Run: m.Place.Run}
	}
	st.emit(ev)
	if try {
		st.emit(&schemas.StateSet{
			Key: schemas.LockState(l.Lock), Scope: l.Scope, Revision: ev.Fence,
			ScheduledEventID: l.EventID,
		})
	}
	st.wake()
}

func (st *step) denied(m Denied) {
	if l := st.LockOf(m.Key, m.Asked); l != nil && l.Try {
		if q := st.Requests[l.EventID]; q != nil {
			st.refuseAsked(q, m.Cause, m.Value, m.Details)
			st.wake()
		}
	} else if l != nil && l.Waits() {
		st.emit(&schemas.LockRefused{
			Lock: l.Lock, Scope: l.Scope, Cause: m.Cause, Details: m.Details,
			ScheduledEventID: l.EventID,
		})
		st.wake()
	}
}

func (st *step) lockLost(m Lost) {
	if l := st.LockOf(m.Key, m.Asked); l != nil && !l.Waits() {
		st.emit(&schemas.LockBroken{
			Lock: l.Lock, Scope: l.Scope, Fence: l.Fence, Cause: m.Cause, Reason: m.Reason,
		})
	}
}

// breakLock takes a lock from the run because an operator says so, or a workflow that clears the
// key. The run goes on.
func (st *step) breakLock(r *schemas.ExecutionRequest) {
	l := st.Locks[schemas.LockKey(r.Scope, r.Lock)]
	if !st.Means(r) || st.Repeated(r) || l == nil || l.Waits() || l.Shared() {
		return
	}
	cause := schemas.CauseOperatorInitiated
	if r.Origin != nil {
		cause = cmp.Or(r.Origin.Cause, cause)
	}
	st.emit(&schemas.LockBroken{
		Lock: l.Lock, Scope: l.Scope, Fence: l.Fence, Cause: cause, Reason: r.Reason,
		RequestID: r.RequestID, Identity: r.Identity,
	})
	st.leave(l)
}
