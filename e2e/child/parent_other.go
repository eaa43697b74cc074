//go:build !linux

package child

import "syscall"

// DieWithParent does nothing where the kernel knows no such thing.
func DieWithParent() *syscall.SysProcAttr { return nil }
