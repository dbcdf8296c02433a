package servertest

import "syscall"

// DieWithParent makes the kernel end a process with the thread that starts it.
func DieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
