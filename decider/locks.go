package decider

import (
	"fmt"
	"time"

	"github.com/droverhq/drover/schemas"
)

// What the options of lock decisions may be.
type (
	// LockOption changes how a lock is asked for.
	LockOption interface{ forLock(*schemas.AcquireLock) }
	// ScopeOption says which lock of a name is meant.
	ScopeOption interface {
		LockOption
		forRelease(*schemas.ReleaseLock)
	}
)

type lockOption func(*schemas.AcquireLock)

func (o lockOption) forLock(a *schemas.AcquireLock) { o(a) }

type scopeOption string

func (o scopeOption) forLock(a *schemas.AcquireLock)    { a.Scope = string(o) }
func (o scopeOption) forRelease(r *schemas.ReleaseLock) { r.Scope = string(o) }

// Scope names the scope of a lock: locks of one name in two scopes are two locks. Without it the
// scope is the namespace.
func Scope(name string) ScopeOption { return scopeOption(name) }

// Limit lets so many runs hold the lock at a time, from 1 to [schemas.MaxLockLimit]; without it,
// one. All who use a lock at a time must say the same.
func Limit(n int) LockOption { return lockOption(func(a *schemas.AcquireLock) { a.Limit = n }) }

// Lease lets another run that wants the lock have it once d has passed since it was acquired;
// without it a lock is held until it is released or the run closes.
func Lease(d time.Duration) LockOption {
	return lockOption(func(a *schemas.AcquireLock) { a.Lease = schemas.Duration(d) })
}

// AcquireLock asks for a lock, which goes to those who ask in their order. The run is asked again
// when it holds the lock or is refused; see [View.Lock]. It holds the lock over every crash, until
// it releases it or closes; a run that continues it has the lock from it. A run whose ancestor
// holds the lock enters at once. To ask for a lock that the run holds does no harm.
//
// Causes of a refusal are [schemas.CauseLockLimit], [schemas.CauseLockQueue],
// [schemas.CauseLockRequested], [schemas.CauseOpenLocksLimit] and [schemas.CauseInvalidAttributes].
func AcquireLock(name string, opts ...LockOption) schemas.Decision {
	a := &schemas.AcquireLock{Lock: name}
	for _, opt := range opts {
		opt.forLock(a)
	}
	return schemas.Decide(a)
}

// ReleaseLock gives a lock back, or leaves the line of those who wait for it. To release what the
// run does not have does no harm.
func ReleaseLock(name string, opts ...ScopeOption) schemas.Decision {
	r := &schemas.ReleaseLock{Lock: name}
	for _, opt := range opts {
		opt.forRelease(r)
	}
	return schemas.Decide(r)
}

// LockStatus says where a lock of a run stands. The zero value means that the run never asked for
// it. Values are append-only.
type LockStatus int

const (
	// LockWaiting stands in line.
	LockWaiting LockStatus = iota + 1
	// LockHeld is the run's, or an ancestor's.
	LockHeld
	// LockReleased was given back.
	LockReleased
	// LockRefused was not to be had, and the run does not stand in line.
	LockRefused
	// LockBroken was taken from the run.
	LockBroken
)

var lockStatuses = [...]string{"not asked for", "waiting", "held", "released", "refused", "broken"}

// String returns a word or two.
func (s LockStatus) String() string {
	if s < 0 || int(s) >= len(lockStatuses) {
		return fmt.Sprintf("LockStatus(%d)", int(s))
	}
	return lockStatuses[s]
}

// Lock is a lock as the run knows of it.
type Lock struct {
	Status LockStatus
	// Fence grows with every holder of the lock. Whatever the lock guards should refuse one that is
	// lower than the highest it has seen: the run may have lost the lock since.
	Fence uint64
	// Expires is when the lease runs out, by the server's clock; 0 if there is none.
	Expires schemas.Timestamp
	// Holder is the ancestor that holds the lock; nil if it is the run itself.
	Holder *schemas.Execution
	// Cause says why the lock was refused or broken, Reason what is known besides.
	Cause  schemas.Cause
	Reason string
}

type lockName struct{ lock, scope string }

func (v *View) addLock(e schemas.Event) {
	switch a := e.Attributes.(type) {
	case *schemas.LockRequested:
		if v.Lock(a.Lock, a.Scope).Status != LockHeld {
			v.setLock(a.Lock, a.Scope, Lock{Status: LockWaiting})
		}
	case *schemas.LockAcquired:
		v.setLock(a.Lock, a.Scope, Lock{Status: LockHeld, Fence: a.Fence, Expires: a.Expires, Holder: a.Holder})
	case *schemas.LockRefused:
		// A request that is refused at once changes nothing about a lock that the run has, or
		// stands in line for, and one to give it back changes nothing at all.
		if a.Decision == schemas.DecideReleaseLock {
			return
		}
		if s := v.Lock(a.Lock, a.Scope).Status; a.ScheduledEventID != 0 || s != LockHeld && s != LockWaiting {
			v.setLock(a.Lock, a.Scope, Lock{Status: LockRefused, Cause: a.Cause, Reason: a.Details})
		}
	case *schemas.LockReleased:
		v.setLock(a.Lock, a.Scope, Lock{Status: LockReleased, Fence: a.Fence})
	case *schemas.LockBroken:
		v.setLock(a.Lock, a.Scope, Lock{Status: LockBroken, Fence: a.Fence, Cause: a.Cause, Reason: a.Reason})
	}
}

// inheritLocks takes the locks that a run has from the one it continues.
func (v *View) inheritLocks(held []schemas.HeldLock) {
	for _, h := range held {
		v.setLock(h.Lock, h.Scope,
			Lock{Status: LockHeld, Fence: h.Fence, Expires: h.Expires, Holder: h.Holder})
	}
}

func (v *View) setLock(lock, scope string, l Lock) {
	if v.locks == nil {
		v.locks = make(map[lockName]Lock)
	}
	v.locks[lockName{lock, scope}] = l
}

// Lock returns where a lock stands; scope is empty for the namespace's own.
func (v *View) Lock(name, scope string) Lock { return v.locks[lockName{name, scope}] }
