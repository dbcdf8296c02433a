package servertest

import (
	"os/exec"
	"runtime"
	"syscall"
)

// StartProcess starts a process that ends with this one, on Linux even if this one is killed. The
// channel is closed when it has ended; cmd.ProcessState then says how.
func StartProcess(cmd *exec.Cmd) (ended <-chan struct{}, err error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	endWithParent(cmd.SysProcAttr)
	done, started := make(chan struct{}), make(chan error)
	go func() {
		runtime.LockOSThread() // the kernel ends the process with the thread that started it
		defer close(done)
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
		}
	}()
	return done, <-started
}
