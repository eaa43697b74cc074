// Package virtual runs tests in virtual time that use NATS connections.
//
// The client library keeps a pool of timers for the whole process, and uses it when it reconnects. A timer that was made in one synctest
// bubble ends the process when another one resets it. So the pool is emptied on both sides of a bubble: two collections do that to a
// [sync.Pool].
//
// It is for test files, and for package drovertest, which is.
package virtual

import (
	"runtime"
	"testing"
	"testing/synctest"
)

// Run runs fn in a bubble of its own, as [synctest.Test] does.
func Run(t *testing.T, fn func(t *testing.T)) {
	t.Helper()
	empty()
	defer empty()
	synctest.Test(t, fn)
}

func empty() {
	runtime.GC()
	runtime.GC()
}
