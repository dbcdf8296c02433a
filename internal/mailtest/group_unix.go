//go:build unix

package mailtest

import (
	"os"
	"os/exec"
	"syscall"
)

// ownGroup has a command run as the server's user, in a group of its own.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if uid, gid := account(); os.Getuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
}

// endGroup ends the processes of a group. An error means that it has ended.
func endGroup(leader int) { _ = syscall.Kill(-leader, syscall.SIGKILL) }
