package redistest

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/mailgate/mailgate/servertest"
)

type processState int

const (
	running processState = iota
	stopped              // by SIGSTOP
	gone                 // ended and reaped
)

// process is a child and what the kernel last said of it.
type process struct {
	cmd *exec.Cmd

	mu      sync.Mutex
	state   processState
	changed chan struct{} // closed, and replaced, when state changes
}

func startProcess(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, changed: make(chan struct{})}
	started := make(chan error)
	go p.live(started)
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// live starts the child and stays with it until it has ended.
//
// The child asks the kernel to be killed when its parent dies, so that a test
// binary that panics or is killed leaves no server behind. To the kernel the
// parent is the *thread* that started the child, and Go ends threads as it
// likes. Hence the lock: this goroutine keeps its thread to itself, waits on it
// for as long as the child lives, and never gives it back.
func (p *process) live(started chan<- error) {
	runtime.LockOSThread()
	p.cmd.SysProcAttr = servertest.DieWithParent()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	for state := running; state != gone; {
		state = nextState(p.cmd.Process.Pid)
		p.mu.Lock()
		p.state = state
		close(p.changed)
		p.changed = make(chan struct{})
		p.mu.Unlock()
	}
}

// nextState blocks until the kernel reports something of the child. Unlike
// exec.Cmd.Wait it also hears of stops, so that a pause can be known to have
// taken effect rather than only asked for.
func nextState(pid int) processState {
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(pid, &status, syscall.WUNTRACED|syscall.WCONTINUED, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return gone
		case status.Stopped():
			return stopped
		case status.Continued():
			return running
		default:
			return gone
		}
	}
}

// signal says whether there was still a process to be signalled.
func (p *process) signal(sig syscall.Signal) (bool, error) {
	err := p.cmd.Process.Signal(sig)
	if errors.Is(err, os.ErrProcessDone) {
		return false, nil
	}
	return err == nil, err
}

func (p *process) is(state processState) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state == state
}

// reaches waits for a state and says whether it came before the limit, and
// before the process ended.
func (p *process) reaches(want processState, limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		p.mu.Lock()
		state, changed := p.state, p.changed
		p.mu.Unlock()
		if state == want || state == gone {
			return state == want
		}
		select {
		case <-changed:
		case <-timer.C:
			return false
		}
	}
}
