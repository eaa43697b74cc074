package slack

import (
	"fmt"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Widen gives all threads of this process the slack [Wide]. The error says why they keep theirs,
// which is no reason to end: it is [ErrDecided], [syscall.ENOTSUP] in a process with cgo, or the
// kernel's.
func Widen() error {
	has, err := own()
	switch {
	case err != nil:
		return fmt.Errorf("read the timer slack: %w", err)
	case has != usual:
		return fmt.Errorf("%w: it is %v", ErrDecided, has)
	}
	if _, _, errno := syscall.AllThreadsSyscall(syscall.SYS_PRCTL, unix.PR_SET_TIMERSLACK,
		uintptr(Wide), 0); errno != 0 {
		return fmt.Errorf("set the timer slack: %w", errno)
	}
	return nil
}

// Begin calls start, which begins another program, so that it has the kernel's slack and not ours.
// A slack of [Wide] is taken for ours.
func Begin(start func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if has, err := own(); err != nil || has != Wide {
		return start()
	}
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(usual), 0, 0, 0); err != nil {
		return start()
	}
	// what was allowed a moment ago
	defer func() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(Wide), 0, 0, 0) }()
	return start()
}

// own is the slack of the calling thread.
func own() (time.Duration, error) {
	n, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	return time.Duration(n), err
}
