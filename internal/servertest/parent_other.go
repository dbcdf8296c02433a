//go:build !linux

package servertest

import "syscall"

// DieWithParent asks for nothing: only Linux ends a child with its parent. A
// test binary that is killed elsewhere leaves its servers running.
func DieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }
