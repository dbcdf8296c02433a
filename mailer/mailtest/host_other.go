//go:build unix && !linux

package mailtest

import "syscall"

// attributes make a server the head of a group of its own, with the rights of
// the account. Only Linux ends it with the test's process: elsewhere a test
// binary that is killed leaves it running.
func (a account) attributes() *syscall.SysProcAttr {
	attributes := &syscall.SysProcAttr{Setpgid: true}
	if a.switched {
		attributes.Credential = &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}
	}
	return attributes
}
