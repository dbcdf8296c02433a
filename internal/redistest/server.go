// Package redistest starts real Redis servers for tests.
package redistest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mailgate/mailgate/servertest"
	"github.com/redis/go-redis/v9"
)

// startLimit is generous, because a loaded machine starts a process slowly.
const startLimit = 10 * time.Second

// Server is one redis-server process.
type Server struct {
	Addr string // host:port

	client *redis.Client
	cmd    *exec.Cmd
	ended  chan struct{} // closed when the process has ended
}

// Alone starts one server and returns when it answers. Each config line is a line of
// redis.conf. By default nothing is kept on disk, and nothing is ever evicted.
func Alone(t testing.TB, config ...string) *Server {
	t.Helper()
	program, err := exec.LookPath("redis-server")
	if err != nil {
		t.Fatal("redis-server is not in PATH; install it (apt-get install redis-server)")
	}
	port, dir := servertest.Port(t), t.TempDir()
	lines := append([]string{
		"bind 127.0.0.1", fmt.Sprintf("port %d", port), "dir " + dir, "logfile redis.log",
		`save ""`, "appendonly no", "maxmemory-policy noeviction",
	}, config...)
	file := filepath.Join(dir, "redis.conf")
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &Server{Addr: fmt.Sprintf("127.0.0.1:%d", port), cmd: exec.Command(program, file), ended: make(chan struct{})}
	s.client = redis.NewClient(&redis.Options{Addr: s.Addr})
	s.start(t)
	t.Cleanup(func() {
		_ = s.client.Close()
		s.Kill()
	})
	servertest.Await(t, "the Redis server to answer", startLimit, func() error {
		return s.client.Ping(context.Background()).Err()
	})
	return s
}

// start starts the process from a thread of its own, since the kernel ends the process
// together with the thread that started it.
func (s *Server) start(t testing.TB) {
	t.Helper()
	s.cmd.SysProcAttr = servertest.DieWithParent()
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer close(s.ended)
		err := s.cmd.Start()
		started <- err
		if err == nil {
			_ = s.cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		t.Fatalf("cannot start redis-server: %v", err)
	}
}

// Client returns a plain client of the server, always the same one, closed with the test.
func (s *Server) Client() *redis.Client { return s.client }

// Kill ends the process at once.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill()
	<-s.ended
}
