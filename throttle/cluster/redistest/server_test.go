package redistest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// asChild makes this test binary, started again, a program that owns a server
// and waits to be killed.
const asChild = "REDISTEST_CHILD"

func TestMain(m *testing.M) {
	if how := os.Getenv(asChild); how != "" {
		ownServer(how)
	}
	os.Exit(m.Run())
}

// ownServer prints the process id of its server, then panics or waits.
func ownServer(how string) {
	server := Alone(&recorder{dir: os.Getenv("REDISTEST_DIR")})
	fmt.Println(server.current().cmd.Process.Pid)
	_, _ = io.ReadAll(os.Stdin)
	panic(how)
}

// recorder is a testing.TB that keeps what a failing test would have said.
type recorder struct {
	testing.TB
	dir  string
	said string
}

func (r *recorder) Helper()        {}
func (r *recorder) Cleanup(func()) {}
func (r *recorder) TempDir() string {
	return r.dir
}
func (r *recorder) Fatal(args ...any) {
	r.said = fmt.Sprint(args...)
	runtime.Goexit()
}
func (r *recorder) Fatalf(format string, args ...any) { r.Fatal(fmt.Sprintf(format, args...)) }

// failing runs what must fail its test, and gives what it said.
func failing(t *testing.T, body func(testing.TB)) string {
	t.Helper()
	r := &recorder{TB: t, dir: t.TempDir()}
	done := make(chan struct{})
	go func() {
		defer close(done)
		body(r)
	}()
	<-done
	if r.said == "" {
		t.Fatal("that should have failed the test")
	}
	return r.said
}

func deadline(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func TestAloneAnswersAtItsURL(t *testing.T) {
	server := Alone(t)
	options, err := redis.ParseURL(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(options)
	defer client.Close()
	ctx := deadline(t, 5*time.Second)
	if err := client.Set(ctx, "key", "there", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if got := server.Client().Get(ctx, "key").Val(); got != "there" {
		t.Errorf("the server's own client reads %q, want what was written by URL", got)
	}
}

func TestConfigLinesOutdoTheDefaults(t *testing.T) {
	server := Alone(t, "maxmemory-policy allkeys-lru", "requirepass open")
	ctx := deadline(t, 5*time.Second)
	got, err := server.Client().ConfigGet(ctx, "maxmemory-policy").Result()
	if err != nil {
		t.Fatal(err)
	}
	if got["maxmemory-policy"] != "allkeys-lru" {
		t.Errorf("the policy is %q", got["maxmemory-policy"])
	}
	if want := "redis://:open@" + server.Addr + "/0"; server.URL() != want {
		t.Errorf("URL is %s, want %s", server.URL(), want)
	}
}

// What a server keeps over its end depends on how it ended and on its settings.
func TestRestart(t *testing.T) {
	for _, test := range []struct {
		name   string
		config []string
		end    func(*Server)
		keeps  bool
	}{
		{"killed, nothing on disk", nil, (*Server).Kill, false},
		{"stopped, nothing on disk", nil, (*Server).Stop, false},
		{"killed, every write synced", []string{"appendonly yes", "appendfsync always"}, (*Server).Kill, true},
		{"stopped, snapshots on", []string{"save 3600 1"}, (*Server).Stop, true},
		{"killed, snapshots on", []string{"save 3600 1"}, (*Server).Kill, false},
		{"stopped while paused, snapshots on", []string{"save 3600 1"}, func(s *Server) { s.Pause(); s.Stop() }, true},
		{"restarted without an end, snapshots on", []string{"save 3600 1"}, func(*Server) {}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := Alone(t, test.config...)
			before := server.Addr
			ctx := deadline(t, 30*time.Second)
			if err := server.Client().Set(ctx, "key", "kept", 0).Err(); err != nil {
				t.Fatal(err)
			}
			test.end(server)
			server.Restart()
			kept := server.Client().Exists(ctx, "key").Val() == 1
			if kept != test.keeps || server.Addr != before || !server.Running() {
				t.Errorf("kept %v, want %v; at %s, was at %s", kept, test.keeps, server.Addr, before)
			}
		})
	}
}

// While a server is dead nobody else is given its port, so it can come back.
func TestADeadServerKeepsItsPort(t *testing.T) {
	server := Alone(t)
	server.Kill()
	if server.Running() {
		t.Fatal("a killed server runs")
	}
	if err := server.answers(); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("connecting to a dead server says %v, want a refusal", err)
	}
	for range 2000 {
		port, release, err := reservePort()
		if err != nil {
			t.Fatal(err)
		}
		defer release()
		if strings.HasSuffix(server.Addr, fmt.Sprintf(":%d", port)) {
			t.Fatal("the dead server's port was given away")
		}
	}
	server.Kill() // once more does no harm
	server.Restart()
}

func TestPauseIsSilenceAndResumeCarriesOut(t *testing.T) {
	server := Alone(t)
	for range 20 { // each pause must have taken effect when it returns
		// A connection that is past its greeting, so that only the command waits.
		if err := server.Client().Ping(deadline(t, 5*time.Second)).Err(); err != nil {
			t.Fatal(err)
		}
		server.Pause()
		err := server.Client().Incr(deadline(t, 20*time.Millisecond), "count").Err()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("a paused server lets a command end with %v", err)
		}
		server.Resume()
	}
	await(t, "the commands sent during the pauses", 5*time.Second, func() error {
		if n := server.Client().Get(t.Context(), "count").Val(); n != "20" {
			return fmt.Errorf("%s were carried out", n)
		}
		return nil
	})
}

// Servers do not outlive the test binary, however it ends.
func TestServersEndWithTheProgram(t *testing.T) {
	for _, test := range []struct {
		name string
		end  func(child *exec.Cmd, stdin io.Closer) error
	}{
		{"killed", func(child *exec.Cmd, _ io.Closer) error { return child.Process.Kill() }},
		{"panicked", func(_ *exec.Cmd, stdin io.Closer) error { return stdin.Close() }},
	} {
		t.Run(test.name, func(t *testing.T) {
			child := exec.Command(os.Args[0])
			child.Env = append(os.Environ(), asChild+"="+test.name, "REDISTEST_DIR="+t.TempDir())
			stdin, err := child.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := child.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := child.Start(); err != nil {
				t.Fatal(err)
			}
			var pid int
			if _, err := fmt.Fscan(bufio.NewReader(out), &pid); err != nil {
				t.Fatalf("the child did not say which server it started: %v", err)
			}
			if err := syscall.Kill(pid, 0); err != nil {
				t.Fatalf("the server is not there to begin with: %v", err)
			}
			if err := test.end(child, stdin); err != nil {
				t.Fatal(err)
			}
			_ = child.Wait() // it was made to fail
			await(t, "the server to end", 5*time.Second, func() error { return stillThere(pid) })
		})
	}
}

// stillThere is an error while the process runs. One that has ended but was not
// reaped yet by the system's first process counts as gone.
func stillThere(pid int) error {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil || strings.Contains(string(stat), ") Z ") {
		return nil
	}
	return errors.New("it still runs")
}

// To the kernel a parent is a thread. The one that asked for a server may end.
func TestAServerOutlivesTheThreadThatAskedForIt(t *testing.T) {
	var server *Server
	thread := make(chan int)
	asked := make(chan struct{})
	var ask func()
	ask = func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if syscall.Gettid() == os.Getpid() {
			go ask() // on another: the first thread of a program never ends
			<-asked
			return
		}
		server = Alone(t)
		thread <- syscall.Gettid()
		close(asked)
	}
	go ask()
	task := fmt.Sprintf("/proc/self/task/%d", <-thread)
	await(t, "the thread to end", 5*time.Second, func() error {
		if _, err := os.Stat(task); err == nil {
			return errors.New("it is still there")
		}
		return nil
	})
	if server.current().reaches(gone, 100*time.Millisecond) {
		t.Error("the server ended with the thread")
	}
}

func TestFailuresSayWhatIsWrong(t *testing.T) {
	t.Run("no redis-server", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		said := failing(t, func(tb testing.TB) { Alone(tb) })
		if !strings.Contains(said, "redis-server is not in PATH") || !strings.Contains(said, "apt-get install") {
			t.Errorf("it says %q", said)
		}
	})
	t.Run("a setting Redis does not know", func(t *testing.T) {
		said := failing(t, func(tb testing.TB) { Alone(tb, "no-such-setting 1") })
		if !strings.Contains(said, "no-such-setting") {
			t.Errorf("it says %q", said)
		}
	})
}
