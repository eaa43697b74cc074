//go:build !linux

package kit

import "syscall"

// DieWithParent does nothing where the kernel knows no such thing.
func DieWithParent() *syscall.SysProcAttr { return nil }
