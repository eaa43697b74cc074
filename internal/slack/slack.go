// Package slack lets the kernel wake this process's threads a little later than asked, so that it
// does so less often.
//
// Go's scheduler sleeps for microseconds in two places: a thread of its own that looks after the
// others does so 50 times whenever work begins after a rest, and a thread without work does so
// before it takes the next goroutine of one that works. Linux adds 50 µs to each such sleep, its
// slack. Where messages go from process to process, each of which rests in between, these sleeps
// take a quarter of the CPU, and what is taken from a thread that would have come to it in a moment
// wakes another one for nothing (ADR 0060). With a slack of [Wide] both are rare.
//
// Invariants:
//   - All threads have it, those of the runtime and those that come later: a new thread has the
//     slack of the one that began it.
//   - Whoever has given the process a slack has decided, and keeps it (TimerSlackNSec of systemd,
//     for one). So does who built it with cgo, where Go has no way to reach the threads.
//   - Timers are late by it at most, those of alarms too.
//   - Programs of others that the process runs have what they would have had: [Begin].
//   - It is for the main function of a process, once. How the threads of somebody else's process
//     sleep is not the library's to decide.
package slack

import (
	"errors"
	"time"
)

const (
	// Wide is the slack of a process of Drover. Workflows one at a time (W2) took 0.94 of the time
	// with 0.1 ms, 0.91 with 0.2, 0.85 with 0.5 and 0.80 with 1, which is twice the lateness of
	// timers for a third more of the gain (ADR 0060).
	Wide = 500 * time.Microsecond
	// usual is the kernel's.
	usual = 50 * time.Microsecond
)

// ErrDecided says that the process has a slack of somebody's choice.
var ErrDecided = errors.New("the timer slack of this process was set by somebody")
