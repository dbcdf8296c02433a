package faults_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/must"
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

// build has the race detector in the program if it is in the tests, but not in SQLite's translated C.
func build(name string, flags ...string) (string, error) {
	program := filepath.Join(built, name)
	if raced() == "true" {
		flags = append(flags, "-race", "-gcflags=modernc.org/...=-race=false")
	}
	arguments := slices.Concat([]string{"build", "-o", program}, flags, []string{"../../cmd/mailgate"})
	if out, err := exec.Command("go", arguments...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("building mailgate: %w\n%s", err, out)
	}
	return program, nil
}

// skewed builds a mailgate whose clock can be set apart from the machine's: its wall clock is that
// of testdata/clock.go. The monotonic clock continues, as it does when a machine's clock is set.
var skewed = sync.OnceValues(func() (string, error) {
	return build("mailgate-skewed", "-overlay", "testdata/overlay.json")
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
	door    atomic.Pointer[string] // the address of its SMTP door

	*servertest.Process // since its last start
}

var servingAt = regexp.MustCompile(`"msg":"serving","address":"([^"]+)".*"smtp_address":"([^"]+)"`)

// start starts the node and returns when it serves. Call it from the test's goroutine.
func (n *node) start() {
	n.t.Helper()
	log := must.Get(os.OpenFile(n.logFile, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600))(n.t)
	defer log.Close() // the child has its own by then
	begin := must.Get(log.Seek(0, io.SeekEnd))(n.t)
	cmd := exec.Command(n.command[0], n.command[1:]...)
	cmd.Env, cmd.Stdout, cmd.Stderr = n.environ, log, log
	n.Process = servertest.Start(n.t, cmd)
	servertest.Eventually(n.t, fmt.Sprintf("node %d to serve", n.number), func() bool { return n.serves(begin) })
}

// serves looks for the address in what was logged since the start.
func (n *node) serves(begin int64) bool {
	text, err := os.ReadFile(n.logFile)
	if err != nil || int64(len(text)) < begin {
		return false
	}
	select {
	case <-n.Ended:
		n.t.Fatalf("node %d has ended at its start:\n%s", n.number, text[begin:])
	default:
	}
	found := servingAt.FindSubmatch(text[begin:])
	if found == nil {
		return false
	}
	url, door := "http://"+string(found[1]), string(found[2])
	n.url.Store(&url)
	n.door.Store(&door)
	return true
}

// dial makes one more connection to the node.
func (n *node) dial() net.Conn {
	return must.Get(net.Dial("tcp", strings.TrimPrefix(*n.url.Load(), "http://")))(n.t)
}

func (n *node) kill() { n.Stop(n.t, syscall.SIGKILL) }

// stop ends the node in good order, and complains if there is none.
func (n *node) stop() {
	n.t.Helper()
	if status := n.Stop(n.t, syscall.SIGTERM); status != 0 {
		n.t.Errorf("node %d ended with status %d:\n%s", n.number, status, n.logged())
	}
}

// logged is what the node has logged, requests left out.
func (n *node) logged() string {
	text, err := os.ReadFile(n.logFile)
	if err != nil {
		n.t.Error(err)
	}
	var rest strings.Builder
	for line := range strings.Lines(string(text)) {
		if !strings.Contains(line, `"msg":"request"`) {
			rest.WriteString(line)
		}
	}
	return rest.String()
}
