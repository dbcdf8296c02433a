package redistest

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mailgate/mailgate/servertest"
	"github.com/redis/go-redis/v9"
)

const (
	startLimit  = 10 * time.Second // loaded machines start slowly
	signalLimit = 5 * time.Second
	stopLimit   = 20 * time.Second // a master waits up to 10 s for its replicas
)

// Server is one redis-server process.
type Server struct {
	Addr string // host:port
	Dir  string // its working directory, with redis.conf and redis.log

	t        testing.TB
	command  []string // what to run, the program first
	environ  []string // beside ours
	password string
	client   *redis.Client

	mu      sync.Mutex
	process *process
}

// Alone starts one server and returns when it answers. Each config line is a
// line of redis.conf ("appendonly yes") and outdoes the defaults here: nothing
// is kept on disk, and nothing is ever evicted.
func Alone(t testing.TB, config ...string) *Server {
	t.Helper()
	s := newServer(t, append(ordinary(), config...))
	s.Restart()
	return s
}

// ordinary are the settings of a server that holds data.
func ordinary() []string {
	return []string{
		`save ""`,
		"appendonly no",
		"maxmemory-policy noeviction",
		"repl-diskless-sync-delay 0", // a replica is in step at once, not after 5 s
		"repl-ping-replica-period 1",
		"enable-debug-command yes",
	}
}

// newServer prepares a server without starting it. Its port is its own until
// the test ends.
func newServer(t testing.TB, config []string, options ...string) *Server {
	t.Helper()
	program, err := exec.LookPath("redis-server")
	if err != nil {
		t.Fatal("redis-server is not in PATH: install it (on Debian and Ubuntu `.ci/needs` or `apt-get install redis-server` does) and run the test again")
	}
	port := servertest.Port(t)
	s := &Server{
		Addr: fmt.Sprintf("127.0.0.1:%d", port),
		Dir:  t.TempDir(),
		t:    t,
	}
	// A sentinel rewrites its file as it learns, so it is written once and not
	// at every start.
	file := filepath.Join(s.Dir, "redis.conf")
	text := strings.Join(append([]string{
		"bind 127.0.0.1",
		"protected-mode no",
		"daemonize no",
		fmt.Sprintf("port %d", port),
		"dir " + s.Dir,
	}, config...), "\n") + "\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatalf("cannot write the settings of a Redis server: %v", err)
	}
	for _, line := range config {
		if password, ok := strings.CutPrefix(line, "requirepass "); ok {
			s.password = password
		}
	}
	s.command = append([]string{program, file}, options...)
	s.client = redis.NewClient(&redis.Options{Addr: s.Addr, Password: s.password, ContextTimeoutEnabled: true})
	t.Cleanup(func() {
		_ = s.client.Close()
		s.Kill()
	})
	return s
}

// URL is what a program is configured with to reach this server.
func (s *Server) URL() string {
	address := url.URL{Scheme: "redis", Host: s.Addr, Path: "/0"}
	if s.password != "" {
		address.User = url.UserPassword("", s.password)
	}
	return address.String()
}

// Client is a plain client to look into the server with, always the same one.
// It is closed with the test.
func (s *Server) Client() *redis.Client { return s.client }

// Refused says how often the server has answered with an error of this kind ("MOVED").
func (s *Server) Refused(kind string) (times int) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), onceLimit)
	defer cancel()
	info, err := s.client.InfoMap(ctx, "errorstats").Result()
	if err != nil {
		s.t.Fatalf("cannot ask the Redis server %s for its errors: %v", s.Addr, err)
	}
	told, refused := info["Errorstats"]["errorstat_"+kind]
	if !refused {
		return 0
	}
	if _, err := fmt.Sscanf(told, "count=%d", &times); err != nil {
		s.t.Fatalf("the Redis server %s says %q of its errors: %v", s.Addr, told, err)
	}
	return times
}

// Running says whether the process lives; a paused one does.
func (s *Server) Running() bool {
	p := s.current()
	return p != nil && !p.is(gone)
}

// Kill ends the server as a crash would (SIGKILL) and returns when it is gone.
// What it had not written to disk is lost. A dead server stays dead.
func (s *Server) Kill() {
	s.send(syscall.SIGKILL, gone, signalLimit)
}

// Stop asks the server to end (SIGTERM), as an operator would, and returns when
// it has.
func (s *Server) Stop() {
	s.Resume() // a paused process does not hear the request
	s.send(syscall.SIGTERM, gone, stopLimit)
}

// Pause freezes the server (SIGSTOP) and returns when it stands still: its
// connections stay open, new ones are accepted by the kernel, nothing answers.
func (s *Server) Pause() {
	s.send(syscall.SIGSTOP, stopped, signalLimit)
}

// Resume lets a paused server go on; it then carries out what it was sent
// meanwhile. A server that is not paused does not notice.
func (s *Server) Resume() {
	if p := s.current(); p != nil && p.is(stopped) {
		s.send(syscall.SIGCONT, running, signalLimit)
	}
}

// Restart starts the server again on the same port and directory, after a Stop
// if it still runs, and returns when it answers and has read its files.
func (s *Server) Restart() {
	s.t.Helper()
	s.Stop()
	s.launch()
	s.awaitAnswer()
}

// Begin starts a server that does not run, and does not wait: it may still be reading its
// files, and says LOADING to whoever asks.
func (s *Server) Begin() {
	s.t.Helper()
	s.launch()
}

func (s *Server) launch() {
	s.t.Helper()
	log, err := os.OpenFile(filepath.Join(s.Dir, "redis.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatalf("cannot open the log of a Redis server: %v", err)
	}
	defer func() { _ = log.Close() }() // the child has its own by then
	cmd := exec.Command(s.command[0], s.command[1:]...)
	cmd.Dir, cmd.Env = s.Dir, append(os.Environ(), s.environ...)
	cmd.Stdout, cmd.Stderr = log, log
	p, err := startProcess(cmd)
	if err != nil {
		s.t.Fatalf("cannot start redis-server: %v", err)
	}
	s.mu.Lock()
	s.process = p
	s.mu.Unlock()
}

func (s *Server) current() *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process
}

// send signals the process and waits for what the signal leads to. It does not
// end the test's goroutine, so that any goroutine may call it.
func (s *Server) send(sig syscall.Signal, leadsTo processState, limit time.Duration) {
	p := s.current()
	if p == nil {
		return
	}
	if alive, err := p.signal(sig); err != nil {
		s.t.Errorf("cannot send %v to the Redis server %s: %v", sig, s.Addr, err)
	} else if alive && !p.reaches(leadsTo, limit) {
		s.t.Errorf("the Redis server %s did not obey %v within %v", s.Addr, sig, limit)
	}
}

func (s *Server) awaitAnswer() {
	s.t.Helper()
	process := s.current()
	servertest.Await(s.t, "the Redis server "+s.Addr+" to answer", startLimit, func() error {
		if process.is(gone) {
			s.t.Fatalf("redis-server ended at its start; its log says:\n%s", s.lastWords())
		}
		return s.answers()
	})
}

// answers asks with bare hands: a client's pool would remember the failures of
// the first moments and back off.
func (s *Server) answers() error {
	conn, err := net.DialTimeout("tcp", s.Addr, time.Second)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return err
	}
	if !strings.HasPrefix(line, "+PONG") && !strings.HasPrefix(line, "-NOAUTH") {
		return fmt.Errorf("it says %q", strings.TrimSpace(line))
	}
	return nil
}

// lastWords is the end of the log.
func (s *Server) lastWords() string {
	log, err := os.ReadFile(filepath.Join(s.Dir, "redis.log"))
	if err != nil || len(log) == 0 {
		return "(nothing)"
	}
	return string(log[max(0, len(log)-2000):])
}
