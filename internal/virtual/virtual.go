// Package virtual runs tests in virtual time that use NATS connections.
//
// The client library keeps one pool of timers for the whole process: of requests, flushes and waits
// for the next message. A timer that was made in one synctest bubble ends the process when somebody
// outside resets it, in a test that may be a stranger to the one before. So the pool is emptied on
// both sides of a bubble: two collections do that to a [sync.Pool]. Every bubble of the module is
// made here, also those of tests that use no connection today; the test of floors sees to it.
//
// It is for test files, and for package drovertest, which is.
package virtual

import (
	"os"
	"os/signal"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/droverhq/drover/internal/sample"
)

// Run runs fn in a bubble, or skips t where package sample leaves tests out.
func Run(t *testing.T, fn func(t *testing.T)) {
	t.Helper()
	sample.OneOfEight(t)
	Bubble(t, fn)
}

// Bubble runs fn in a bubble of its own, as [synctest.Test] does.
func Bubble(t *testing.T, fn func(t *testing.T)) {
	t.Helper()
	signals()
	empty()
	defer empty()
	synctest.Test(t, fn)
}

// signals lets the goroutine begin that serves package os/signal for the whole process. If it began
// in a bubble, the next signal that somebody asks for would end the process.
var signals = sync.OnceFunc(func() {
	c := make(chan os.Signal, 1)
	signal.Notify(c, os.Interrupt)
	signal.Stop(c)
})

func empty() {
	runtime.GC()
	runtime.GC()
}
