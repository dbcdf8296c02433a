package servertest

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// patience bounds the waits for a process. None takes nearly so long.
const patience = time.Minute

// Process is a program that runs as long as the test.
type Process struct {
	Cmd   *exec.Cmd
	Log   *Log            // what it writes, unless Cmd has another place for it
	Ended <-chan struct{} // closed when it has ended
}

// Start starts a program, which ends with the test. A test that fails shows its log, and a data race fails the test.
func Start(t testing.TB, cmd *exec.Cmd) *Process {
	t.Helper()
	p := &Process{Cmd: cmd, Log: &Log{}}
	if cmd.Stdout == nil {
		cmd.Stdout, cmd.Stderr = p.Log, p.Log
	}
	var err error
	if p.Ended, err = StartProcess(cmd); err != nil {
		t.Fatalf("starting %s: %v", cmd.Path, err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may be gone already
		<-p.Ended
		if p.Log.Count("DATA RACE") > 0 { // a process that was killed has no status that says so
			t.Error("the process has a data race")
		}
		if t.Failed() && p.Log.String() != "" {
			t.Logf("the log of %s:\n%s", cmd.Path, p.Log)
		}
	})
	return p
}

// AwaitListening waits until the process accepts connections at an address.
func (p *Process) AwaitListening(t testing.TB, address string) {
	t.Helper()
	Await(t, p.Cmd.Path+" to listen", patience, func() error {
		select {
		case <-p.Ended:
			t.Fatalf("%s has ended: %v", p.Cmd.Path, p.Cmd.ProcessState)
		default:
		}
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
		}
		return err
	})
}

// Signal signals the process, which may be gone.
func (p *Process) Signal(t testing.TB, s os.Signal) {
	t.Helper()
	if err := p.Cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("signalling %s: %v", p.Cmd.Path, err)
	}
}

// End waits until the process has ended and returns its exit status, -1 for a signal. One that does not end says
// what it waits for.
func (p *Process) End(t testing.TB) (status int) {
	t.Helper()
	select {
	case <-p.Ended:
	case <-time.After(patience):
		t.Errorf("%s does not end", p.Cmd.Path)
		p.Signal(t, syscall.SIGQUIT)
		<-p.Ended
	}
	return p.Cmd.ProcessState.ExitCode()
}

// Stop sends a signal and waits until the process has ended.
func (p *Process) Stop(t testing.TB, s os.Signal) (status int) {
	t.Helper()
	p.Signal(t, s)
	return p.End(t)
}

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
