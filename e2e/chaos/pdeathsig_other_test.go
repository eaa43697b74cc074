//go:build !linux

package chaos

import "syscall"

// dieWithParent does nothing where the kernel knows no such thing.
func dieWithParent() *syscall.SysProcAttr { return nil }
