package cluster_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/mailgate/mailgate/redisstore"
	"github.com/mailgate/mailgate/redisstore/redistest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/cluster"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

const workerURL = "MAILGATE_TEST_WORKER_REDIS"

// TestMain lets the test binary be one of the processes that race.
func TestMain(m *testing.M) {
	if url := os.Getenv(workerURL); url != "" {
		work(url)
		return
	}
	os.Exit(m.Run())
}

// A worker reads names of limiters and mailboxes, races 64 callers for each and writes
// how many were admitted.
func work(url string) {
	clock := throttletest.NewClock(1_800_000_000_000)
	store, err := redisstore.Open(redisstore.Options{URL: url, Clock: clock.Now, Timeout: patient})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	limiter, err := cluster.New(store, threeAMinute)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	t := new(workerT)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		name, mailbox, _ := strings.Cut(lines.Text(), " ")
		var by throttle.Limiter = limiter
		if m, found := threeMeters[name]; found {
			by = limiter.Meter(name, m)
		}
		admitted := throttletest.Race(t, by, mailbox, callers)
		fmt.Println(admitted, t.failure())
	}
}

// workerT carries a failure of a worker to the test.
type workerT struct {
	testing.TB
	mu   sync.Mutex
	last string
}

func (t *workerT) Errorf(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = fmt.Sprintf(format, args...)
}

func (t *workerT) Helper() {}

func (t *workerT) failure() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last
}

type worker struct {
	t   *testing.T
	in  io.WriteCloser
	out *bufio.Scanner
}

func startWorker(t *testing.T, url string) worker {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), workerURL+"="+url)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		cmd.Wait()
	})
	return worker{t, in, bufio.NewScanner(out)}
}

func (w worker) begin(name, mailbox string) { fmt.Fprintln(w.in, name, mailbox) }

func (w worker) admitted() (n int) {
	w.t.Helper()
	var failure string
	if !w.out.Scan() {
		w.t.Fatal("a worker died")
	}
	fmt.Sscan(w.out.Text(), &n, &failure)
	if failure != "" {
		w.t.Fatal(strings.TrimSpace(w.out.Text()))
	}
	return n
}

// Three processes, 64 callers each, one mailbox, a frozen clock: exactly the limit.
func TestThreeProcessesOneMailbox(t *testing.T) {
	t.Parallel()
	server := redistest.Alone(t)
	workers := []worker{startWorker(t, server.URL()), startWorker(t, server.URL()), startWorker(t, server.URL())}
	raceProcesses(t, workers, "tiers", 600)
	for name := range threeMeters {
		raceProcesses(t, workers, name, 50)
	}
}

func raceProcesses(t *testing.T, workers []worker, name string, rounds int) {
	for round := range rounds {
		mailbox := mailboxOf("processes")
		for _, w := range workers {
			w.begin(name, mailbox)
		}
		admitted := 0
		for _, w := range workers {
			admitted += w.admitted()
		}
		if admitted != 3 {
			t.Fatalf("%s, round %d: %d admitted, want 3", name, round, admitted)
		}
	}
}
