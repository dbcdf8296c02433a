package cluster_test

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/mailgate/mailgate/clock/clocktest"
	"github.com/mailgate/mailgate/redisstore"
	"github.com/mailgate/mailgate/redisstore/redistest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/cluster"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

// TestMain lets the test binary be one of the processes that race.
func TestMain(m *testing.M) { redistest.Main(m, work) }

// A worker reads names of limiters and mailboxes, races 64 callers for each and writes
// how many were admitted.
func work(url string) error {
	clock := clocktest.New(1_800_000_000_000)
	store, err := redisstore.Open(redisstore.Options{URL: url, Clock: clock.Now, Timeout: patient})
	if err != nil {
		return err
	}
	limiter, err := cluster.New(store, threeAMinute)
	if err != nil {
		return err
	}
	meters, err := cluster.NewMeters(store)
	if err != nil {
		return err
	}
	t := new(workerT)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		name, mailbox, _ := strings.Cut(lines.Text(), " ")
		var by throttle.Limiter = limiter
		if m, found := threeMeters[name]; found {
			by = meters.Limiter(name, m)
		}
		admitted := throttletest.Race(t, by, mailbox, callers)
		fmt.Println(admitted, t.failure())
	}
	return nil
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

func admittedBy(t *testing.T, w *redistest.Worker) (n int) {
	t.Helper()
	var failure string
	answer := w.Answer()
	fmt.Sscan(answer, &n, &failure)
	if failure != "" {
		t.Fatal(strings.TrimSpace(answer))
	}
	return n
}

// Three processes, 64 callers each, one mailbox, a frozen clock: exactly the limit.
func TestThreeProcessesOneMailbox(t *testing.T) {
	t.Parallel()
	server := redistest.Alone(t)
	workers := redistest.StartWorkers(t, server.URL(), 3)
	raceProcesses(t, workers, "tiers", throttletest.Length(1000))
	for name := range threeMeters {
		raceProcesses(t, workers, name, throttletest.Length(100))
	}
}

func raceProcesses(t *testing.T, workers []*redistest.Worker, name string, rounds int) {
	for round := range rounds {
		mailbox := mailboxOf("processes")
		for _, w := range workers {
			w.Order(name, mailbox)
		}
		admitted := 0
		for _, w := range workers {
			admitted += admittedBy(t, w)
		}
		if admitted != 3 {
			t.Fatalf("%s, round %d: %d admitted, want 3", name, round, admitted)
		}
	}
}
