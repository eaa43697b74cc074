package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/droverhq/drover/internal/slack"
)

// widen gives this process the timer slack that drover server and drover worker have. go run builds with cgo, where there is a C compiler, and then Go
// does not reach all threads: the process begins anew with a thread that has it.
func widen() {
	err := slack.Widen()
	if errors.Is(err, syscall.ENOTSUP) {
		runtime.LockOSThread()
		if err = unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(slack.Wide), 0, 0, 0); err == nil {
			err = syscall.Exec("/proc/self/exe", os.Args, os.Environ())
		}
	}
	if err != nil && !errors.Is(err, slack.ErrDecided) {
		fmt.Fprintln(os.Stderr, "bench: the timer slack is not that of drover worker:", err)
	}
}
