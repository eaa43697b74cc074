package timers

import (
	"sync"
	"time"
)

// restShare is how many times as long as the last purge took the next one waits. What a purge
// removes costs the same whenever it is removed; the block that is loaded for it and the state that
// is written after it are each purge's own.
const restShare = 16

// purgeScheduler lets the partitions of a worker purge one after the other. They are woken at the
// same pace, so that all of them would purge at once: each purge takes a core for some 20 ms of a
// burst, with the block that the server loads and the state that it writes, and with four of them
// nobody else would have one (ADR 0045).
type purgeScheduler struct {
	mu   sync.Mutex
	busy bool
	next time.Time
}

// take tells whether a purge may begin now; done must follow then.
func (t *purgeScheduler) take(now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.busy || now.Before(t.next) {
		return false
	}
	t.busy = true
	return true
}

func (t *purgeScheduler) done(began, ended time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.busy, t.next = false, ended.Add(restShare*ended.Sub(began))
}
