package chaos

import "syscall"

// dieWithParent makes the kernel kill a child whose test binary was killed.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
