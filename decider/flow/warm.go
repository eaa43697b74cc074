package flow

import (
	"sync"

	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/decider/flow/machine"
	"github.com/droverhq/drover/decider/flow/run"
	"github.com/droverhq/drover/schemas"
)

// warmRun is a run as its last decision left it. It belongs to whoever has taken it.
type warmRun struct {
	token string // of the task of that decision
	s     *saved
	p     *machine.Program
	state *run.State
}

// warmRuns are runs that this process decided upon last. A run is taken out for a decision and put
// back after it, so that a decision that fails, or the same task answered twice, finds nothing and
// reads the context.
type warmRuns struct {
	mu   sync.Mutex
	most int
	hits int
	runs map[warmKey]*warmRun
}

type warmKey struct {
	namespace string
	run       schemas.Execution
}

func keyOf(t *decider.Task) warmKey { return warmKey{t.Namespace(), t.Execution()} }

// take returns the run of a task, if the last committed answer is the one that left it. The token
// tells: a decision that was made ahead, or for an owner that died, may have had the same
// DeciderStarted and other events.
func (w *warmRuns) take(t *decider.Task) *warmRun {
	w.mu.Lock()
	defer w.mu.Unlock()
	run := w.runs[keyOf(t)]
	delete(w.runs, keyOf(t))
	if run == nil || !t.Continues() || run.token != t.Continued() {
		return nil
	}
	w.hits++
	return run
}

// forget lets go of all runs.
func (w *warmRuns) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.runs)
}

func (w *warmRuns) keep(t *decider.Task, run *warmRun) {
	run.token = t.Token()
	run.s.State = nil // it is written anew
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.most == 0 {
		return
	}
	if w.runs == nil {
		w.runs = map[warmKey]*warmRun{}
	}
	for other := range w.runs {
		if len(w.runs) < w.most {
			break
		}
		delete(w.runs, other) // any: its context is read again when it is needed
	}
	w.runs[keyOf(t)] = run
}
