package cluster_test

import (
	"bufio"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/internal/redisx"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/cluster"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

// racerURL tells the test's binary that it is one of several processes, and on which server.
const racerURL = "MAILGATE_TEST_RACER_REDIS"

func TestMain(m *testing.M) {
	if url := os.Getenv(racerURL); url != "" {
		race(url)
		return
	}
	os.Exit(m.Run())
}

const (
	rounds = 30
	racers = 8
)

// race takes from the same keys as the other processes, and prints how many were admitted.
func race(url string) {
	client, err := redisx.Open(redisx.Options{URL: url, Timeout: patient, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		panic(err)
	}
	l, err := cluster.New(client, "test", throttle.DefaultPolicy())
	if err != nil {
		panic(err)
	}
	for round := range rounds {
		var admitted atomic.Int64
		var calls sync.WaitGroup
		for range racers {
			calls.Go(func() {
				v, err := l.Take(ctx, fmt.Sprint("round", round), throttle.NewID())
				if err != nil {
					panic(err)
				}
				if v.Allowed {
					admitted.Add(1)
				}
			})
		}
		calls.Wait()
		fmt.Println(admitted.Load())
	}
}

// Three processes race for the same keys: one of all callers is admitted each time.
func TestTake_ThreeProcesses_OneAdmitted(t *testing.T) {
	t.Parallel()
	server := redistest.Alone(t)
	var readers []*bufio.Scanner
	for range 3 {
		process := exec.Command(os.Args[0])
		process.Env = append(os.Environ(), racerURL+"="+server.URL())
		process.Stderr = os.Stderr
		out := must.Get(process.StdoutPipe())(t)
		must.OK(t, process.Start())
		t.Cleanup(func() { _ = process.Wait() })
		readers = append(readers, bufio.NewScanner(out))
	}
	for round := range rounds {
		all := 0
		for _, r := range readers {
			var admitted int
			if !r.Scan() {
				t.Fatal("a process ended")
			}
			if _, err := fmt.Sscan(r.Text(), &admitted); err != nil {
				t.Fatal(err)
			}
			all += admitted
		}
		if all != 1 {
			t.Errorf("round %d: %d admitted, want 1", round, all)
		}
	}
}

// A Take whose answer was lost is unavailable, and charged once when it is repeated.
func TestTake_ReplyLost_RepeatedChargesOnce(t *testing.T) {
	t.Parallel()
	server := redistest.Alone(t)
	proxy := redistest.Proxy(t, server.Addr)
	l := limiter(t, open(t, redisx.Options{URL: proxy.URL(), Timeout: patient}), throttletest.Policy(t, "minute=2/60s"))
	take(t, l, "another")
	id := throttle.NewID()
	proxy.CutReplies(1, "evalsha")
	if _, err := l.Take(ctx, mailbox, id); !errors.Is(err, throttle.ErrUnavailable) {
		t.Errorf("the error is %v", err)
	}
	v, err := l.Take(ctx, mailbox, id)
	if err != nil || !v.Allowed || v.Sent != 1 {
		t.Errorf("repeated: %+v, %v", v, err)
	}
}

// Scripts are flushed while callers race.
func TestTake_ScriptsFlushed_AdmitsExactly(t *testing.T) {
	t.Parallel()
	client, server := alone(t)
	l := limiter(t, client, throttletest.Policy(t, "minute=3/60s"))
	for round := range 20 {
		must.OK(t, server.Client().ScriptFlush(ctx).Err())
		if n := throttletest.Race(t, l, fmt.Sprint("round", round), 16); n != 3 {
			t.Errorf("%d admitted, want 3", n)
		}
	}
}

// A slot moves step by step while callers race for its key.
func TestTake_SlotMoves_AdmitsExactly(t *testing.T) {
	t.Parallel()
	servers := redistest.Cluster(t)
	l := limiter(t, open(t, redisx.Options{URL: servers.URL(), Timeout: patient}), throttletest.Policy(t, "minute=8/60s"))
	key := "test:tiers:{" + mailbox + "}"
	from, admitted := servers.MasterOf(key), 0
	to := servers.Masters[0]
	if to == from {
		to = servers.Masters[1]
	}
	for range 2 {
		take(t, l, mailbox)
		admitted++
	}
	for _, next := range []func(){
		func() { servers.BeginMigration(key, from, to) },
		func() { servers.MoveKeys(key, from, to) },
		func() { servers.FinishMigration(key, from, to) },
	} {
		next()
		for range 2 {
			if take(t, l, mailbox).Allowed {
				admitted++
			}
		}
	}
	admitted += throttletest.Race(t, l, mailbox, 16)
	if admitted != 8 {
		t.Errorf("%d admitted, want 8", admitted)
	}
}
