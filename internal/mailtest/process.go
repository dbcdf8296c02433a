package mailtest

import (
	"os/exec"
	"runtime"
	"syscall"
)

// process is a server with all the processes it starts: one group.
type process struct {
	cmd  *exec.Cmd
	over chan struct{} // closed when the first of them has ended
}

// startProcess starts the child from a thread that stays for as long as the
// child lives: to the kernel, which ends the child with its parent, the parent
// is a thread, and Go ends threads as it likes.
func startProcess(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, over: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: no other goroutine gets this thread
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // how it ends is in its log
			close(p.over)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

func (p *process) ended() bool {
	select {
	case <-p.over:
		return true
	default:
		return false
	}
}

// kill ends the whole group and returns when its first process is gone.
func (p *process) kill() {
	// An error means that the group has ended.
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	<-p.over
}
