package redistest

import (
	"os/exec"
	"syscall"
	"testing"

	"github.com/mailgate/mailgate/servertest"
)

// Restart starts the process again where it was, after Kill, and returns when it answers.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	s.cmd, s.ended = exec.Command(s.cmd.Path, s.cmd.Args[1:]...), make(chan struct{})
	s.start(t)
	servertest.Await(t, "the Redis server to answer", startLimit, func() error { return s.client.Ping(t.Context()).Err() })
}

// Stop has the process hang until Continue.
func (s *Server) Stop() { _ = s.cmd.Process.Signal(syscall.SIGSTOP) }

// Continue ends Stop.
func (s *Server) Continue() { _ = s.cmd.Process.Signal(syscall.SIGCONT) }
