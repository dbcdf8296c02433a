// Package redistest gives tests real Redis: one server ([Alone]), a master watched by
// sentinels ([Sentinel]), a [Cluster], and a [Proxy] that loses replies on purpose.
//
// A server is ready in some ten milliseconds, Sentinel in a second and a Cluster in two; a
// failover takes some seconds. All of it ends with the test.
package redistest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/need"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/redis/go-redis/v9"
)

const (
	startLimit = 20 * time.Second // a loaded machine starts a process slowly
	askLimit   = time.Second      // for the answer to one question of a test
)

// Server is one redis-server process.
type Server struct {
	Addr string // host:port
	Dir  string // where its files are

	t       testing.TB
	command []string
	environ []string // besides that of the test
	client  *redis.Client
	cmd     *exec.Cmd
	ended   <-chan struct{} // closed when the process has ended
	paused  bool
}

// Alone starts one server and returns when it answers. Each config line is a line of
// redis.conf. By default nothing is kept on disk, and nothing is ever evicted.
func Alone(t testing.TB, config ...string) *Server {
	t.Helper()
	s := newServer(t, slices.Concat(defaults, config))
	s.Restart()
	return s
}

// Durable starts one server that keeps across a kill all that it has answered: it writes that
// first. One that flushes every second may put the writing off while the drive is busy.
func Durable(t testing.TB, config ...string) *Server {
	t.Helper()
	return Alone(t, append([]string{"appendonly yes", "appendfsync no"}, config...)...)
}

// defaults are the settings of a server that holds data.
var defaults = []string{`save ""`, "appendonly no", "maxmemory-policy noeviction", "repl-diskless-sync-delay 0", "repl-ping-replica-period 1"}

// newServer prepares a server without starting it. Its port is its own until the test ends.
func newServer(t testing.TB, config []string, options ...string) *Server {
	t.Helper()
	program := need.Program(t, "redis-server")
	port, dir := servertest.Port(t), t.TempDir()
	s := &Server{Addr: fmt.Sprintf("127.0.0.1:%d", port), Dir: dir, t: t}
	lines := []string{"bind 127.0.0.1", "protected-mode no", fmt.Sprintf("port %d", port), "dir " + dir, "logfile " + filepath.Join(dir, "redis.log")}
	lines = append(lines, config...)
	file := filepath.Join(dir, "redis.conf")
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.command = append([]string{program, file}, options...)
	s.client = redis.NewClient(&redis.Options{Addr: s.Addr, ContextTimeoutEnabled: true})
	t.Cleanup(func() {
		_ = s.client.Close()
		s.Kill()
	})
	return s
}

// URL returns what a program is configured with to reach the server.
func (s *Server) URL() string { return "redis://" + s.Addr + "/0" }

// Client returns a plain client of the server, always the same one, closed with the test.
func (s *Server) Client() *redis.Client { return s.client }

// Info returns one field of INFO.
func (s *Server) Info(section, field string) string {
	s.t.Helper()
	return infoField(s.must("INFO", section), field)
}

func infoField(text, field string) string {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// must carries out a command at the server, or fails the test.
func (s *Server) must(command ...any) string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	answer, err := s.client.Do(ctx, command...).Result()
	if err != nil {
		s.t.Fatalf("%s refuses %v: %v", s.Addr, command, err)
	}
	return fmt.Sprint(answer)
}

// running reports whether the process lives; a paused one does.
func (s *Server) running() bool {
	if s.cmd == nil {
		return false
	}
	select {
	case <-s.ended:
		return false
	default:
		return true
	}
}

func (s *Server) live() bool { return s.running() && !s.paused }

// Kill ends the process as a crash would. What it had not written to disk is lost.
func (s *Server) Kill() {
	if s.running() {
		_ = s.cmd.Process.Kill()
		<-s.ended
	}
	s.paused = false
}

// Pause freezes the process (SIGSTOP): its connections stay open and nothing answers.
func (s *Server) Pause() {
	s.t.Helper()
	s.signal(stopped)
	s.paused = true
	servertest.Await(s.t, s.Addr+" to stop", startLimit, func() error {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
		if err == nil && !strings.Contains(string(status), "State:\tT") {
			return errors.New("it runs")
		}
		return nil // on other systems than Linux this is not known
	})
}

// Resume continues a paused process; it then carries out what it was sent meanwhile.
func (s *Server) Resume() {
	s.t.Helper()
	s.signal(continued)
	s.paused = false
}

func (s *Server) signal(signal syscall.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(signal); err != nil {
		s.t.Fatalf("cannot send %v to %s: %v", signal, s.Addr, err)
	}
}

// Restart starts the server on the same port and directory, after a Kill if it still runs,
// and returns when it answers and has read its files.
func (s *Server) Restart() {
	s.t.Helper()
	s.Kill()
	s.cmd = exec.Command(s.command[0], s.command[1:]...)
	s.cmd.Env = append(os.Environ(), s.environ...)
	var err error
	if s.ended, err = servertest.StartProcess(s.cmd); err != nil {
		s.t.Fatalf("cannot start redis-server: %v", err)
	}
	servertest.Await(s.t, "the Redis server "+s.Addr+" to answer", startLimit, s.answers)
}

// answers asks without the library, which would log each failure.
func (s *Server) answers() error {
	if !s.running() {
		log, _ := os.ReadFile(filepath.Join(s.Dir, "redis.log"))
		return fmt.Errorf("redis-server ended; its log is\n%s", log)
	}
	conn, err := net.DialTimeout("tcp", s.Addr, askLimit)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(askLimit))
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	reply := make([]byte, 64)
	n, err := conn.Read(reply)
	if text := string(reply[:n]); err == nil && !strings.HasPrefix(text, "+PONG") && !strings.HasPrefix(text, "-NOAUTH") {
		return fmt.Errorf("it answers %q", text)
	}
	return err
}

// inSync reports what is missing while a replica, or a replica of this master, has not all data.
func (s *Server) inSync() error {
	ctx, cancel := context.WithTimeout(context.Background(), askLimit)
	defer cancel()
	text, err := s.client.Info(ctx, "replication").Result()
	switch {
	case err != nil:
		return err
	case infoField(text, "role") == "slave" && infoField(text, "master_link_status") != "up":
		return fmt.Errorf("the replica %s is not in sync", s.Addr)
	case strings.Count(text, "state=") != strings.Count(text, "state=online"):
		return fmt.Errorf("a replica of %s is not in sync", s.Addr)
	}
	return nil
}

// Healed asks until there is an answer, such as of a client whose server has failed over.
func Healed[T any](t testing.TB, ask func() (T, error)) (answer T) {
	t.Helper()
	servertest.Await(t, "an answer", 30*time.Second, func() (err error) {
		answer, err = ask()
		return err
	})
	return answer
}
