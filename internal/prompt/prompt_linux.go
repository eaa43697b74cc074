package prompt

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Timer is a timer of the kernel. It belongs to one goroutine; one that is nil never wakes anybody.
type Timer struct {
	fd   int // of file, whose own method for it would make the runtime wait for it in a thread
	file *os.File
	done chan struct{} // closed when wake will not be called again
}

// New returns a timer that calls wake whenever it is over, from a goroutine of its own, until Close. The error wraps [ErrUnsupported] or that
// of the system, which may have no descriptor left.
func New(wake func()) (*Timer, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("timer: %w", os.NewSyscallError("timerfd_create", err))
	}
	t := &Timer{fd: fd, file: os.NewFile(uintptr(fd), "timer"), done: make(chan struct{})}
	go func() {
		defer close(t.done)
		var count [8]byte
		for {
			if _, err := t.file.Read(count[:]); err != nil {
				return // it was closed
			}
			wake()
		}
	}()
	return t, nil
}

// Reset lets wake be called when d has passed, and not before, in place of what was set before. A call that is on its way may still come.
func (t *Timer) Reset(d time.Duration) { t.set(max(d, 1)) } // 0 would stop it

// Stop takes back what was set.
func (t *Timer) Stop() { t.set(0) }

func (t *Timer) set(d time.Duration) {
	if t != nil { // it fails for times and descriptors that are none
		_ = unix.TimerfdSettime(t.fd, 0, &unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}, nil)
	}
}

// Close ends the timer, and returns when wake will not be called again.
func (t *Timer) Close() {
	if t == nil {
		return
	}
	_ = t.file.Close()
	<-t.done
	t.fd = -1 // the number may be that of another file by now
}
