package cluster_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/redistest"
	"github.com/mailgate/mailgate/internal/redisx"
	"github.com/mailgate/mailgate/internal/servertest"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

// Three processes race for the same keys: one of all callers is admitted each time.
func TestTake_ThreeProcesses_OneAdmitted(t *testing.T) {
	const rounds, callers, line = 30, 8, "round %d: %d admitted\n"
	if url := servertest.ChildArgument(); url != "" {
		l := limiter(t, open(t, redisx.Options{URL: url, Timeout: patient}), throttle.DefaultPolicy())
		for round := range rounds {
			fmt.Printf(line, round, throttletest.Race(t, l, fmt.Sprint("round", round), callers))
		}
		return
	}
	t.Parallel()
	server := redistest.Alone(t)
	var admitted [rounds]atomic.Int64
	var processes sync.WaitGroup
	for range 3 {
		processes.Go(func() {
			out, err := servertest.Child(t, server.URL()).Output()
			if err != nil {
				t.Errorf("%v: %s", err, out)
			}
			for said := range strings.Lines(string(out)) {
				var round, n int
				if _, err := fmt.Sscanf(said, line, &round, &n); err == nil {
					admitted[round].Add(int64(n))
				}
			}
		})
	}
	processes.Wait()
	for round := range rounds {
		if n := admitted[round].Load(); n != 1 {
			t.Errorf("round %d: %d admitted, want 1", round, n)
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
	if _, err := l.TakeID(ctx, mailbox, id); !errors.Is(err, throttle.ErrUnavailable) {
		t.Errorf("the error is %v", err)
	}
	v, err := l.TakeID(ctx, mailbox, id)
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
	from, admitted := servers.MasterOf(key), 2
	to := servers.Another(from)
	take(t, l, mailbox)
	take(t, l, mailbox)
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
