package kit

import "syscall"

// DieWithParent makes the kernel kill a child whose test binary was killed.
func DieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
