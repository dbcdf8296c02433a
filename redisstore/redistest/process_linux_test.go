package redistest

import (
	"bufio"
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

	"github.com/mailgate/mailgate/servertest"
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
		if strings.HasSuffix(server.Addr, fmt.Sprintf(":%d", servertest.Port(t))) {
			t.Fatal("the dead server's port was given away")
		}
	}
	server.Kill() // once more does no harm
	server.Restart()
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
			servertest.Await(t, "the server to end", 5*time.Second, func() error { return stillThere(pid) })
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
	servertest.Await(t, "the thread to end", 5*time.Second, func() error {
		if _, err := os.Stat(task); err == nil {
			return errors.New("it is still there")
		}
		return nil
	})
	if server.current().reaches(gone, 100*time.Millisecond) {
		t.Error("the server ended with the thread")
	}
}
