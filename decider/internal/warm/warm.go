// Package warm holds what deciders keep in memory of their runs between two decisions.
//
// A run is taken out for a decision and put back after it, so that a decision that fails, or the
// same task answered twice, finds nothing and reads the history.
package warm

import (
	"container/list"
	"sync"

	"github.com/droverhq/drover/schemas"
)

// Task is what is asked of a decider.Task.
type Task interface {
	Namespace() string
	Execution() schemas.Execution
	Token() string
	Continues() bool
	Continued() string
}

// Runs are what a decider keeps: an R of each run.
type Runs[R any] struct {
	most int
	drop func(R)

	mu   sync.Mutex
	runs map[key]*list.Element // of *entry[R]
	used list.List             // the least recently used first
}

type key struct {
	namespace string
	run       schemas.Execution
}

type entry[R any] struct {
	key
	token string // of the task of its last decision
	r     R
}

// New keeps at most so many runs. What it lets go of is handed to drop, which may be nil, and must
// not wait for anything.
func New[R any](most int, drop func(R)) *Runs[R] {
	if drop == nil {
		drop = func(R) {}
	}
	return &Runs[R]{most: most, drop: drop, runs: make(map[key]*list.Element)}
}

// Take returns what is kept of the run of a task, if the last committed answer is the one that left
// it. The token tells: a decision that was made ahead, or for an owner that died, may have had the
// same DeciderStarted and other events.
func (k *Runs[R]) Take(t Task) (r R, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.runs[keyOf(t)]
	if e == nil {
		return r, false
	}
	found := k.remove(e)
	if !t.Continues() || found.token != t.Continued() {
		k.drop(found.r)
		return r, false
	}
	return found.r, true
}

// Keep keeps r of the run of a task that was answered, and lets go of the least recently used one.
// It returns false if none is kept at all: r stays the caller's.
func (k *Runs[R]) Keep(t Task, r R) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if old := k.runs[keyOf(t)]; old != nil { // the same task was answered twice
		k.drop(k.remove(old).r)
	}
	if k.most <= 0 {
		return false
	}
	for len(k.runs) >= k.most {
		k.drop(k.remove(k.used.Front()).r)
	}
	k.runs[keyOf(t)] = k.used.PushBack(&entry[R]{key: keyOf(t), token: t.Token(), r: r})
	return true
}

// Clear lets go of all, and returns them.
func (k *Runs[R]) Clear() (all []R) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for len(k.runs) > 0 {
		all = append(all, k.remove(k.used.Front()).r)
	}
	return all
}

// Len is how many runs there are.
func (k *Runs[R]) Len() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.runs)
}

func (k *Runs[R]) remove(e *list.Element) *entry[R] {
	found, _ := k.used.Remove(e).(*entry[R])
	delete(k.runs, found.key)
	return found
}

func keyOf(t Task) key { return key{t.Namespace(), t.Execution()} }
