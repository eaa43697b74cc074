package drovertest

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/internal/virtual"
)

// running is held by the one Run that is under way, and inside is the test within it.
var (
	running sync.Mutex
	inside  atomic.Pointer[testing.T]
)

// Run calls f in virtual time with a Drover of its own, which ends with f, and checks all
// histories. Nil options mean all defaults. The t of f is that of the bubble: use it instead of the
// outer one.
//
// It fails t if anything cannot be started, if a worker of [Env.Go] ends by itself, or if a history
// breaks a rule. It panics inside another Run.
func Run(t *testing.T, o *Options, f func(t *testing.T, e *Env)) {
	t.Helper()
	if inside.Load() == t {
		panic(
			"drovertest: Run inside another Run: one Env serves any number of workflows and workers")
	}
	running.Lock()
	defer running.Unlock()
	// The server's stores share a ticker of the whole process, which must live outside all bubbles.
	defer embedded.RegisterTicker()()
	defer inside.Store(nil)
	virtual.Bubble(t, func(t *testing.T) {
		inside.Store(t)
		f(t, open(t, o, true))
	})
}

// Start starts a Drover in real time, on a random loopback port, which ends with the test. Nil
// options mean all defaults. It fails t if anything cannot be started. Any number of them may run
// at a time.
func Start(t testing.TB, o *Options) *Env {
	t.Helper()
	return open(t, o, false)
}
