//go:build unix && !linux

package redistest

import "syscall"

// dieWithParent asks for nothing: only Linux ends a child with its parent. A
// test binary that is killed elsewhere leaves its servers running.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{}
}
