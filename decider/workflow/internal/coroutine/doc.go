// Package coroutine runs the code of a workflow: many coroutines, one at a time, in an order that
// depends on nothing but who wakes whom.
//
//	d := coroutine.New()
//	d.Go("main", func(c *coroutine.Coroutine) { … })
//	err := d.Run()          // until all coroutines wait
//	waiters.Wake()          // something has happened
//	err = d.Run()
//	problems := d.Evict(time.Second)
//
// It knows nothing of events, decisions or contexts. The run machine is its only user: it tells a
// [Dispatcher] what to run, and each call of the workflow API begins with [Dispatcher.Enter].
//
// A coroutine is a goroutine and two channels, over which the dispatcher and the coroutine hand the
// right to run to each other. A goroutine of its own, and not [iter.Pull]: a coroutine switch on a
// thread that is locked ends the process.
//
// Invariants:
//
//   - At most one coroutine of a dispatcher runs, and the dispatcher waits meanwhile. So what
//     coroutines and the machine share needs no lock.
//   - Those that are ready run first in, first out. A run costs what was woken, however many wait.
//   - Names are paths: the second child of main is "2", its first child "2.1". They depend on the
//     coroutine that spawns, not on what others do meanwhile.
//   - A panic or [runtime.Goexit] in user code ends its coroutine and makes the dispatcher fail: no
//     other coroutine runs after it. The dispatcher's goroutine goes on.
//   - An API call of another goroutine ends that goroutine, and the dispatcher fails. Two signs tell:
//     no coroutine runs, or the caller's stack is not that of a coroutine. Only one case is not
//     noticed: a coroutine of another dispatcher, while one of this dispatcher runs.
//   - While a coroutine panics, or ends by Goexit, its deferred functions get an error of each API
//     call: a bug runs no compensation.
//   - After [Dispatcher.Evict] no goroutine is left, but those that are reported.
//
// Deferred functions run when a coroutine is evicted, since Go cannot end a goroutine otherwise.
// Goexit ends it, so recover sees nothing. Each API call in them ends the coroutine again.
//
// Whoever makes a dispatcher evicts it: what waits is never collected as garbage.
package coroutine
