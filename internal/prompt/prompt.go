// Package prompt wakes sooner than the runtime does while that collects garbage.
//
// A timer of Go's fires when a thread is done with a goroutine and looks for the next one. While garbage is collected the runtime lets threads
// that have nothing else to do mark what is alive. They stop for a message from the network, for which they look all the time, and not for a timer: if every thread
// marks, what is due waits until one of them has marked for 10 milliseconds. A timer of the kernel is a file that becomes readable, which is found as a message is.
// Threads that have to mark their share, and not because nothing else is to be done, look for neither.
//
// It is for a process that has to be on time and keeps much alive, beside a timer of Go's and not in place of it: only Linux has one, and a
// descriptor may not be had. It counts real time, so it must not be used in a bubble of testing/synctest.
package prompt

import "errors"

// ErrUnsupported says that the system has no such timer.
var ErrUnsupported = errors.New("the system has no timers that are files")
