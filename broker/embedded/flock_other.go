//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package embedded

import (
	"errors"
	"os"
)

var errLocked = errors.New("locked by somebody else")

// flock refuses: a store without a lock could get two servers. A memory store needs none and works.
func flock(*os.File) error { return errors.ErrUnsupported }
