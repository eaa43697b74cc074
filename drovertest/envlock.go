package drovertest

import (
	"sync/atomic"
	"time"
)

// envLock is the lock of an Env. It is held while server, roles or workers start or stop, and all
// through a leap. Who wants in interrupts the leap.
type envLock struct {
	turn       turn
	waiting    atomic.Int32
	interrupts chan struct{}
}

func newEnvLock() *envLock { return &envLock{turn: make(turn, 1), interrupts: make(chan struct{}, 1)} }

func (h *envLock) enter() {
	h.waiting.Add(1)
	h.interrupt()
	h.turn.lock()
	h.waiting.Add(-1)
}

func (h *envLock) leave() { h.turn.unlock() }

func (h *envLock) interrupt() {
	select {
	case h.interrupts <- struct{}{}:
	default:
	}
}

// enterToLeap enters unless somebody else is in, which may be for a leap, or wants in. It then
// waits until they have left, or until a time has come, and reports false.
func (h *envLock) enterToLeap(until time.Time) bool {
	select {
	case h.turn <- struct{}{}:
		select { // what was interrupted is over, or is counted as waiting
		case <-h.interrupts:
		default:
		}
		if h.waiting.Load() == 0 {
			return true
		}
		h.leave()
		return false
	default:
	}
	enough := time.NewTimer(time.Until(until))
	defer enough.Stop()
	select {
	case h.turn <- struct{}{}:
		h.leave()
	case <-enough.C:
	}
	return false
}
