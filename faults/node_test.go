package faults_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/servertest"
)

// patience bounds every wait here. Nothing takes nearly so long.
const patience = time.Minute

// The secrets of every node, and a word that is in each of them and in passwords.
const (
	apiKey        = "app-Hush-7f3b-9d21-c460"
	adminKey      = "ops-Hush-7f3b-9d21-c460"
	secret        = "all-Hush-7f3b-9d21-c460"
	inEverySecret = "Hush"
)

// mailgate builds the program once.
var mailgate = sync.OnceValues(func() (string, error) { return build("mailgate") })

// built is where programs are built; TestMain makes and removes it.
var built string

// build has the race detector in the program if it is in the tests.
func build(name string, flags ...string) (string, error) {
	program := filepath.Join(built, name)
	arguments := append(append([]string{"build", "-race=" + raced(), "-o", program}, flags...), "../cmd/mailgate")
	if out, err := exec.Command("go", arguments...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("building mailgate: %w\n%s", err, out)
	}
	return program, nil
}

func raced() string {
	info, _ := debug.ReadBuildInfo()
	for _, setting := range info.Settings {
		if setting.Key == "-race" {
			return setting.Value
		}
	}
	return "false"
}

// A node is one mailgate serve, which can be started again. Its address changes with
// each start, and its log continues.
type node struct {
	t       testing.TB
	number  int
	command []string
	environ []string
	logFile string
	url     atomic.Pointer[string]

	cmd    *exec.Cmd
	exited chan struct{}
}

var servingAt = regexp.MustCompile(`"msg":"serving","address":"([^"]+)"`)

// start starts the node and returns when it serves. Call it from the test's goroutine.
func (n *node) start() {
	n.t.Helper()
	log, err := os.OpenFile(n.logFile, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		n.t.Fatal(err)
	}
	defer log.Close() // the child has its own by then
	begin, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		n.t.Fatal(err)
	}
	n.cmd = exec.Command(n.command[0], n.command[1:]...)
	n.cmd.Env, n.cmd.Stdout, n.cmd.Stderr = n.environ, log, log
	n.exited = make(chan struct{})
	started := make(chan error)
	go live(n.cmd, started, n.exited)
	if err := <-started; err != nil {
		n.t.Fatalf("starting node %d: %v", n.number, err)
	}
	servertest.Eventually(n.t, fmt.Sprintf("node %d to serve", n.number), func() bool { return n.serves(begin) })
}

// live starts a process and stays with it until it has ended. The process dies with the
// thread that started it, which this goroutine keeps to itself: a campaign that is killed
// leaves nothing behind.
func live(cmd *exec.Cmd, started chan<- error, exited chan<- struct{}) {
	runtime.LockOSThread()
	cmd.SysProcAttr = servertest.DieWithParent()
	err := cmd.Start()
	started <- err
	if err != nil {
		return
	}
	_ = cmd.Wait() // the status is asked for where it matters
	close(exited)
}

// serves looks for the address in what was logged since the start.
func (n *node) serves(begin int64) bool {
	text, err := os.ReadFile(n.logFile)
	if err != nil || int64(len(text)) < begin {
		return false
	}
	select {
	case <-n.exited:
		n.t.Fatalf("node %d has ended at its start:\n%s", n.number, text[begin:])
	default:
	}
	found := servingAt.FindSubmatch(text[begin:])
	if found == nil {
		return false
	}
	url := "http://" + string(found[1])
	n.url.Store(&url)
	return true
}

// signal signals the node, which may be gone.
func (n *node) signal(signal os.Signal) {
	if err := n.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		n.t.Errorf("signalling node %d: %v", n.number, err)
	}
}

// end waits for the node's end and returns its exit status, -1 for a signal.
func (n *node) end() int {
	n.t.Helper()
	select {
	case <-n.exited:
		return n.cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		n.t.Errorf("node %d does not end", n.number)
		return -2
	}
}

func (n *node) kill() {
	n.signal(syscall.SIGKILL)
	n.end()
}

// stop ends the node in good order, and complains if there is none.
func (n *node) stop() {
	n.t.Helper()
	n.signal(syscall.SIGTERM)
	select {
	case <-n.exited:
	case <-time.After(stopWithin):
		n.signal(syscall.SIGQUIT) // so that it says what it is waiting for
		n.end()
		n.t.Errorf("node %d did not end within %v; in the end its log says:\n%s", n.number, stopWithin, n.logTail())
		return
	}
	if status := n.end(); status != 0 {
		n.t.Errorf("node %d ended with status %d:\n%s", n.number, status, n.logTail())
	}
}

// stopWithin is more than the grace of a node that is told to end.
const stopWithin = 45 * time.Second

// logTail is the end of the log.
func (n *node) logTail() string {
	text, err := os.ReadFile(n.logFile)
	if err != nil {
		n.t.Error(err)
	}
	return string(text[max(0, len(text)-20_000):])
}
