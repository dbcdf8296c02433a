//go:build !linux

package servertest

import "syscall"

// DieWithParent does nothing: only Linux ends a child with its parent.
func DieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }
