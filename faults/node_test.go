package faults_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
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

// built is where programs are built.
var built string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "faults")
	if err != nil {
		panic(err)
	}
	built = dir
	status := m.Run()
	os.RemoveAll(dir)
	os.Exit(status)
}

// mailgate builds the program once.
var mailgate = sync.OnceValues(func() (string, error) { return build("mailgate") })

// build has the race detector in the program if it is in the tests.
func build(name string, flags ...string) (string, error) {
	program := filepath.Join(built, name)
	arguments := slices.Concat([]string{"build", "-race=" + raced(), "-o", program}, flags, []string{"../cmd/mailgate"})
	if out, err := exec.Command("go", arguments...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("building mailgate: %w\n%s", err, out)
	}
	return program, nil
}

// skewed builds a mailgate whose clock can be set apart from the machine's: its wall clock is that
// of testdata/clock.go. The monotonic clock continues, as it does when a machine's clock is set.
var skewed = sync.OnceValues(func() (string, error) {
	clock, err := filepath.Abs("../cmd/mailgate/clock.go")
	if err != nil {
		return "", err
	}
	ahead, err := filepath.Abs("testdata/clock.go")
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(built, "overlay.json")
	if err := os.WriteFile(overlay, fmt.Appendf(nil, `{"Replace": {%q: %q}}`, clock, ahead), 0o600); err != nil {
		return "", err
	}
	return build("mailgate-skewed", "-overlay", overlay)
})

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
	exited <-chan struct{}
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
	if n.exited, err = servertest.StartProcess(n.cmd); err != nil {
		n.t.Fatalf("starting node %d: %v", n.number, err)
	}
	servertest.Eventually(n.t, fmt.Sprintf("node %d to serve", n.number), func() bool { return n.serves(begin) })
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

// hasEnded waits until the node has ended.
func (n *node) hasEnded(within time.Duration) bool {
	select {
	case <-n.exited:
		return true
	case <-time.After(within):
		return false
	}
}

func (n *node) kill() {
	n.signal(syscall.SIGKILL)
	if !n.hasEnded(patience) {
		n.t.Errorf("node %d does not end", n.number)
	}
}

// stop ends the node in good order, and complains if there is none.
func (n *node) stop() {
	n.t.Helper()
	n.signal(syscall.SIGTERM)
	if !n.hasEnded(stopWithin) {
		n.signal(syscall.SIGQUIT) // so that it says what it is waiting for
		n.hasEnded(patience)
		n.t.Errorf("node %d did not end within %v; in the end its log says:\n%s", n.number, stopWithin, n.logTail())
	} else if status := n.cmd.ProcessState.ExitCode(); status != 0 {
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
