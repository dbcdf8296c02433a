package cluster_test

import (
	"bufio"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/internal/redisx"
	"github.com/mailgate/mailgate/internal/servertest"
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
	server := redistest.Alone(t)
	var readers []*bufio.Scanner
	for range 3 {
		process := exec.Command(os.Args[0])
		process.Env = append(os.Environ(), racerURL+"="+server.URL())
		process.Stderr = os.Stderr
		out, err := process.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := process.Start(); err != nil {
			t.Fatal(err)
		}
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
	client, server := alone(t)
	l := limiter(t, client, throttletest.Policy(t, "minute=3/60s"))
	for round := range 20 {
		if err := server.Client().ScriptFlush(ctx).Err(); err != nil {
			t.Fatal(err)
		}
		if n := throttletest.Race(t, l, fmt.Sprint("round", round), 16); n != 3 {
			t.Errorf("%d admitted, want 3", n)
		}
	}
}

// A slot moves step by step while callers race for its key.
func TestTake_SlotMoves_AdmitsExactly(t *testing.T) {
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

// Confirmed admissions survive the master, and the client finds the new one.
func TestTake_SentinelFailover_ConfirmedSendsCount(t *testing.T) {
	servers := redistest.Sentinel(t)
	l := limiter(t, open(t, redisx.Options{URL: servers.URL(), Timeout: 2 * time.Second, Confirm: 1}), throttle.DefaultPolicy())
	for i := range 20 {
		take(t, l, fmt.Sprint("mailbox", i))
	}
	servers.Failover()
	for i := range 20 {
		v := redistest.Healed(t, func() (throttle.Verdict, error) { return l.Peek(ctx, fmt.Sprint("mailbox", i)) })
		if v.Allowed || v.Sent != 1 {
			t.Errorf("mailbox%d after the failover: %+v", i, v)
		}
	}
	// The new master has no replica to confirm a send.
	if _, err := l.Take(ctx, mailbox, throttle.NewID()); !errors.Is(err, throttle.ErrUnavailable) || !errors.Is(err, redisx.ErrUnconfirmed) {
		t.Errorf("without a replica: %v", err)
	}
	servers.Replica.Restart()
	servers.AwaitReplica()
	redistest.Healed(t, func() (throttle.Verdict, error) { return l.Take(ctx, "new", throttle.NewID()) })
}

// An id that is on record is confirmed again, as the first Take may not have been.
func TestTake_Unconfirmed_RepeatedWaitsAgain(t *testing.T) {
	master := redistest.Alone(t)
	l := limiter(t, open(t, redisx.Options{URL: master.URL(), Timeout: time.Second, Confirm: 1}), throttle.DefaultPolicy())
	id := throttle.NewID()
	for range 2 {
		if _, err := l.Take(ctx, mailbox, id); !errors.Is(err, redisx.ErrUnconfirmed) {
			t.Errorf("without a replica: %v", err)
		}
	}
	host, port, _ := net.SplitHostPort(master.Addr)
	replica := redistest.Alone(t, "replicaof "+host+" "+port)
	redistest.Healed(t, func() (throttle.Verdict, error) { return l.Take(ctx, "another", throttle.NewID()) })
	replica.Pause()
	id = throttle.NewID()
	// WAIT knows only the writes of its connection: the second client has not written yet.
	again := limiter(t, open(t, redisx.Options{URL: master.URL(), Timeout: time.Second, Confirm: 1}), throttle.DefaultPolicy())
	for _, l := range []*cluster.Limiter{l, again} {
		if _, err := l.Take(ctx, mailbox+"2", id); !errors.Is(err, throttle.ErrUnavailable) {
			t.Errorf("with the replica stopped: %v", err)
		}
	}
	replica.Resume()
	v := redistest.Healed(t, func() (throttle.Verdict, error) { return again.Take(ctx, mailbox+"2", id) })
	if !v.Allowed || v.Sent != 1 {
		t.Errorf("%+v", v)
	}
}

// Each Take at a server that hangs ends in time, and when the server goes on it
// charges nothing for callers that have gone.
func TestTake_ServerHangs_EndsInTimeAndChargesNothing(t *testing.T) {
	const timeout, late = 400 * time.Millisecond, 2 * time.Second
	server := redistest.Alone(t)
	l := limiter(t, open(t, redisx.Options{URL: server.URL(), Timeout: timeout}), throttle.DefaultPolicy())
	redistest.Healed(t, func() (throttle.Verdict, error) { return l.Take(ctx, "warm", throttle.NewID()) })
	server.Pause()
	var calls sync.WaitGroup
	for i := range 20 {
		calls.Go(func() {
			begin := time.Now()
			_, err := l.Take(ctx, fmt.Sprint("mailbox", i), throttle.NewID())
			if took := time.Since(begin); !errors.Is(err, throttle.ErrUnavailable) || took > late {
				t.Errorf("%v after %v", err, took)
			}
		})
	}
	calls.Wait()
	// The clock of the first answer may have been off by as long as that answer took.
	over := time.Now().Add(timeout)
	servertest.Await(t, "the calls' time to be over", patient, func() error {
		if time.Now().Before(over) {
			return errors.New("it is not")
		}
		return nil
	})
	server.Resume()
	for i := range 20 {
		v := redistest.Healed(t, func() (throttle.Verdict, error) { return l.Peek(ctx, fmt.Sprint("mailbox", i)) })
		if v.Sent != 0 {
			t.Errorf("mailbox%d was charged", i)
		}
	}
}
