package machine

import (
	"github.com/droverhq/drover/decider/workflow/internal/coroutine"
	"github.com/droverhq/drover/schemas"
)

// place is what a run has of a lock: its coroutines have it one after the other.
type place struct {
	taken   bool
	waiters coroutine.Waiters
}

// Ready implements [Waitable].
func (p *place) Ready() bool                 { return !p.taken }
func (p *place) waiting() *coroutine.Waiters { return &p.waiters }

func (p *place) free() {
	p.taken = false
	p.waiters.Wake()
}

func (m *Machine) place(key string) *place {
	p := m.places[key]
	if p == nil {
		p = &place{}
		m.places[key] = p
	}
	return p
}

func lockKey(scope, lock string) string { return "lock " + schemas.LockKey(scope, lock) }

// Lock waits for a lock. What it returns has ended: if it has succeeded the run has the lock until
// Unlock, and its value is the fence.
func (m *Machine) Lock(s *Scope, a *schemas.AcquireLock) (*Future, error) {
	_, err := m.Enter("workflow.Lock")
	if f := notAsked(s, a.Lock, err); f != nil {
		return f, nil
	}
	key := lockKey(a.Scope, a.Lock)
	p := m.place(key)
	for p.taken && s.err == nil {
		err := m.WaitAny("the lock "+a.Lock+", which another coroutine has", p, s)
		if err != nil {
			return nil, err
		}
	}
	if f := notAsked(s, a.Lock, nil); f != nil {
		return f, nil
	}
	p.taken = true
	f := m.acquire(s, key, a)
	if err := m.Wait("the lock "+a.Lock, f); err != nil {
		return nil, err
	}
	if f.outcome.Kind != Succeeded {
		p.free()
	}
	return f, nil
}

// acquire asks for a lock. A coroutine that is canceled leaves the line at once.
func (m *Machine) acquire(s *Scope, key string, a *schemas.AcquireLock) *Future {
	f := &Future{Name: a.Lock}
	m.open[key] = f
	s.enter(f)
	m.ask(a)
	f.cancel = func() {
		if !m.unasked(a) {
			m.ask(&schemas.ReleaseLock{Lock: a.Lock, Scope: a.Scope})
		}
		delete(m.open, key)
		f.settle(Outcome{Kind: Canceled})
	}
	return f
}

// Unlock gives a lock back.
func (m *Machine) Unlock(a *schemas.AcquireLock) {
	if _, err := m.Enter("workflow.Held.Release"); err != nil {
		return // the decision fails in any case
	}
	m.ask(&schemas.ReleaseLock{Lock: a.Lock, Scope: a.Scope})
	m.place(lockKey(a.Scope, a.Lock)).free()
}
