package mailtest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/servertest"
)

// asChild makes this test binary, started again, a program that owns a server
// and waits to be killed.
const asChild = "MAILTEST_CHILD"

func TestMain(m *testing.M) {
	if how := os.Getenv(asChild); how != "" {
		ownServer(how)
	}
	os.Exit(m.Run())
}

// ownServer prints where its server is, then panics or waits.
func ownServer(how string) {
	server := Start(&recorder{}, Options{})
	fmt.Println(server.process.cmd.Process.Pid, server.Addr, server.dir)
	_, _ = io.ReadAll(os.Stdin)
	panic(how)
}

// Servers do not outlive the test binary, however it ends, even while they are
// being spoken to.
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
			child.Env = append(os.Environ(), asChild+"="+test.name)
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
			var addr, dir string
			if _, err := fmt.Fscan(bufio.NewReader(out), &pid, &addr, &dir); err != nil {
				t.Fatalf("the child did not say which server it started: %v", err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			conn, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatalf("the server is not there to begin with: %v", err)
			}
			if err := test.end(child, stdin); err != nil {
				t.Fatal(err)
			}
			_ = child.Wait() // it was made to fail
			_ = conn.Close() // the last that keeps the session's own process
			servertest.Await(t, "the server to end", endLimit, func() error { return stillThere(pid) })
			servertest.Await(t, "every process of the server to end", endLimit, func() error { return runsFrom(dir) })
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

// runsFrom is an error while any process has a program in this directory.
func runsFrom(dir string) error {
	processes, err := os.ReadDir("/proc")
	if err != nil {
		return err
	}
	for _, process := range processes {
		program, err := os.Readlink("/proc/" + process.Name() + "/exe")
		if err == nil && strings.HasPrefix(program, dir) {
			return fmt.Errorf("process %s still runs", process.Name())
		}
	}
	return nil
}

// The end of a test leaves neither a process nor a file, even if a client is
// still connected.
func TestNothingIsLeft(t *testing.T) {
	var server *Server
	t.Run("of a test", func(t *testing.T) {
		server = Start(t, Options{})
		conn, err := net.Dial("tcp", server.Addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
	})
	servertest.Await(t, "every process of the server to end", endLimit, func() error { return runsFrom(server.dir) })
	if _, err := os.Stat(server.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the server's directory: %v", err)
	}
	if conn, err := net.Dial("tcp", server.Addr); err == nil {
		_ = conn.Close()
		t.Error("somebody still listens")
	}
}
