package workflow

import (
	"container/list"
	"sync"

	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/schemas"
)

// kept are runs that this process has decided upon last, with their coroutines. A run is taken out
// for a decision and put back after it, so that a decision that fails, or the same task answered
// twice, finds nothing and reads the history.
type kept struct {
	mu   sync.Mutex
	most int
	runs map[keptKey]*list.Element // of *keptRun
	used list.List                 // the least recently used first
}

type keptKey struct {
	namespace string
	run       schemas.Execution
}

type keptRun struct {
	key   keptKey
	token string // of the task of its last decision
	r     *run
}

func keyOf(t *decider.Task) keptKey { return keptKey{t.Namespace(), t.Execution()} }

// take returns the run of a task, if the last committed answer is the one that left it; else nil.
func (k *kept) take(t *decider.Task) *run {
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.runs[keyOf(t)]
	if e == nil {
		return nil
	}
	found := k.remove(e)
	if !t.Continues() || found.token != t.Continued() {
		go found.r.close()
		return nil
	}
	return found.r
}

// keep keeps the run of a task that was answered, and lets go of the least recently used one.
func (k *kept) keep(t *decider.Task, r *run) {
	if k.most == 0 {
		r.close()
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.runs == nil {
		k.runs = map[keptKey]*list.Element{}
	}
	if old := k.runs[keyOf(t)]; old != nil { // the same task was answered twice
		go k.remove(old).r.close()
	}
	for len(k.runs) >= k.most {
		go k.remove(k.used.Front()).r.close()
	}
	k.runs[keyOf(t)] = k.used.PushBack(&keptRun{key: keyOf(t), token: t.Token(), r: r})
}

func (k *kept) remove(e *list.Element) *keptRun {
	found, _ := k.used.Remove(e).(*keptRun)
	delete(k.runs, found.key)
	return found
}

// rest lets go of all runs: the worker stops.
func (k *kept) rest() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for len(k.runs) > 0 {
		k.remove(k.used.Front()).r.close()
	}
}
