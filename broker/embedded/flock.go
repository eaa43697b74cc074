//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package embedded

import (
	"errors"
	"os"
	"syscall"
)

var errLocked = errors.New("locked by somebody else")

// flock takes the whole file for this open descriptor, without waiting. It is not fcntl's lock,
// which belongs to the process: a second server of the same process would not notice the first, and
// closing any descriptor would drop it.
func flock(f *os.File) error {
	for {
		switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
		case err == nil:
			return nil
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return errLocked
		default:
			return err
		}
	}
}
