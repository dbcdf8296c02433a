package cluster_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/mailgate/mailgate/idempotency"
	"github.com/mailgate/mailgate/idempotency/cluster"
	"github.com/mailgate/mailgate/redisstore"
	"github.com/mailgate/mailgate/redisstore/redistest"
)

// TestMain lets the test binary be one of the processes that race, or that die.
func TestMain(m *testing.M) { redistest.Main(m, work) }

// shortLease is one to live on with after the process that has it dies.
var shortLease = idempotency.Terms{Lease: 5000, Keep: 60_000}

// A worker reads keys, each with its lease if that is not as usual, lets 64 begin under it
// at once, writes how many were told to go on, and leaves it at that.
func work(url string) error {
	store, err := redisstore.Open(redisstore.Options{URL: url, Timeout: patient})
	if err != nil {
		return err
	}
	defer store.Close()
	t := new(workerT)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		key, terms := "", idempotency.DefaultTerms()
		fmt.Sscan(lines.Text(), &key, &terms.Lease)
		keeper, err := cluster.New(store, terms)
		if err != nil {
			return err
		}
		started, _ := race(t, keeper, key)
		fmt.Println(started)
	}
	return nil
}

// workerT makes a failure one of the process.
type workerT struct{ testing.TB }

func (*workerT) Helper() {}

func (*workerT) Errorf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
	os.Exit(1)
}

func started(t *testing.T, w *redistest.Worker) (n int) {
	t.Helper()
	if _, err := fmt.Sscan(w.Answer(), &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// Three processes, 64 callers each, one key: one of them is told to go on.
func TestThreeProcessesOneKey(t *testing.T) {
	t.Parallel()
	url := redistest.Alone(t).URL()
	workers := redistest.StartWorkers(t, url, 3)
	for n, w := range workers { // none races before all are up
		w.Order(fmt.Sprint("warm-", n))
		started(t, w)
	}
	for round := range 60 {
		key := fmt.Sprint("processes-", round)
		for _, w := range workers {
			w.Order(key)
		}
		all := 0
		for _, w := range workers {
			all += started(t, w)
		}
		if all != 1 {
			t.Fatalf("round %d: %d were told to go on, want 1", round, all)
		}
	}
}

// A process is killed between Begin and Finish. The key is in flight until the lease ends,
// by the server's clock, and free from then on; another process does the request.
func TestKilledBetweenBeginAndFinish(t *testing.T) {
	t.Parallel()
	server := redistest.Alone(t)
	keeper := open(t, shortLease, redisstore.Options{URL: server.URL(), Timeout: patient})
	w := redistest.StartWorker(t, server.URL())
	before, _ := server.Client().Time(context.Background()).Result()
	w.Order(fmt.Sprint("killed ", shortLease.Lease))
	if started(t, w) != 1 {
		t.Fatal("the worker was not told to go on")
	}
	begun, _ := server.Client().Time(context.Background()).Result()
	w.Kill()
	for met := false; ; {
		asked, _ := server.Client().Time(context.Background()).Result()
		o := begin(t, keeper, "killed")
		answered, _ := server.Client().Time(context.Background()).Result()
		if o.State == idempotency.Started {
			if answered.Sub(before) < time.Duration(shortLease.Lease-1)*time.Millisecond || !met {
				t.Errorf("a lease that had not ended was given to another: met %t", met)
			}
			if kept, err := keeper.Finish(context.Background(), o.Lease, sent); !kept || err != nil {
				t.Errorf("finish: %t, %v", kept, err)
			}
			break
		}
		met = true
		if o.State != idempotency.InFlight || o.RetryAfter > shortLease.Lease {
			t.Fatalf("%v, retry after %d", o.State, o.RetryAfter)
		}
		if asked.Sub(begun) > time.Duration(shortLease.Lease+1)*time.Millisecond {
			t.Fatal("a lease that has ended still holds")
		}
	}
	expect(t, keeper, "killed", idempotency.Replay)
}
